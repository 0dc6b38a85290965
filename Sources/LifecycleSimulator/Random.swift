/// The generator xoshiro256++ (Blackman and Vigna): small, fast and the same on every machine. Each part of the
/// simulation has a stream of its own, so that another draw in one part does not change the others and traces stay
/// comparable.
package struct Random: Sendable {
    private var a: UInt64
    private var b: UInt64
    private var c: UInt64
    private var d: UInt64

    /// Creates a generator from any seed. splitmix64 distributes it over the state.
    package init(seed: UInt64) {
        var state = seed
        func spread() -> UInt64 {
            state &+= 0x9e37_79b9_7f4a_7c15
            var z = state
            z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
            z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
            return z ^ (z >> 31)
        }
        a = spread()
        b = spread()
        c = spread()
        d = spread()
    }

    package mutating func next() -> UInt64 {
        func rotate(_ x: UInt64, by k: UInt64) -> UInt64 { (x << k) | (x >> (64 - k)) }
        let result = rotate(a &+ d, by: 23) &+ a
        let t = b << 17
        c ^= a
        d ^= b
        b ^= c
        a ^= d
        c ^= t
        d = rotate(d, by: 45)
        return result
    }

    /// Creates an independent stream for `name`.
    package mutating func stream(_ name: UInt64) -> Random {
        Random(seed: next() ^ (name &* 0xd6e8_feb8_6659_fd93))
    }

    /// A number in 0 ..< `limit`; 0 if `limit` is not positive.
    package mutating func below(_ limit: Int) -> Int {
        guard limit > 0 else { return 0 }
        return Int(truncatingIfNeeded: next().multipliedFullWidth(by: UInt64(limit)).high)
    }

    package mutating func within(_ range: ClosedRange<Int64>) -> Int64 {
        range.lowerBound + Int64(below(Int(range.upperBound - range.lowerBound) + 1))
    }

    /// `true` with this probability.
    package mutating func chance(_ perMille: Int) -> Bool { below(1000) < perMille }

    package mutating func pick<Element>(_ elements: [Element]) -> Element { elements[below(elements.count)] }

    /// An index into `weights`, with a probability proportional to the weight.
    package mutating func weighted(_ weights: [Int]) -> Int {
        var left = below(weights.reduce(0, +))
        for (index, weight) in weights.enumerated() {
            if left < weight { return index }
            left -= weight
        }
        return 0
    }
}
