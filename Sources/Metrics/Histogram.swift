/// A histogram with fixed bounds.
package struct Histogram: Sendable {
    private let bounds: [Double]
    /// How many values are in each bucket, and above the last bound.
    private var counts: [UInt64]
    package private(set) var sum = 0.0

    /// - Parameter bounds: the upper bounds of the buckets, ascending.
    package init(bounds: [Double]) {
        self.bounds = bounds
        counts = Array(repeating: 0, count: bounds.count + 1)
    }

    /// Seconds. A freeze and a thaw take some 100µs (docs/BENCH.md), a launch up to its deadline.
    package static let durationBounds = [
        0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
    ]
    /// Seconds: what is left of deadlines of 5s to 30s.
    package static let marginBounds = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

    /// A value that is negative, because two times were read in another order, counts as 0.
    package mutating func observe(_ value: Double) {
        let value = max(0, value)
        counts[bounds.firstIndex { value <= $0 } ?? bounds.count] += 1
        sum += value
    }

    package var count: UInt64 { counts.reduce(0, +) }

    /// The bounds with the numbers of values that are not greater, up to infinity.
    package var buckets: [(bound: Double, count: UInt64)] {
        var total: UInt64 = 0
        return zip(bounds + [.infinity], counts).map { bound, count in
            total += count
            return (bound, total)
        }
    }
}
