/// Random numbers that depend only on the seed (SplitMix64).
struct Dice {
    private var state: UInt64
    init(_ seed: UInt64) { state = seed }

    mutating func below(_ limit: Int) -> Int {
        state &+= 0x9e37_79b9_7f4a_7c15
        var z = state
        z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
        z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
        return Int(truncatingIfNeeded: (z ^ (z >> 31)) >> 33) % max(1, limit)
    }

    mutating func pick<Value>(_ values: [Value]) -> Value { values[below(values.count)] }
}
