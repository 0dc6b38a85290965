import Glibc

/// The time of CLOCK_MONOTONIC in nanoseconds, which the bench app uses too.
func clockNow() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

/// Sleeps.
func rest(microseconds: Int) {
    usleep(UInt32(microseconds))
}

/// Waits until a condition holds. It polls rarely enough not to disturb the measured programs.
///
/// - Throws: after this time.
func eventually(
    _ what: String, everyMicroseconds pace: Int = 100, seconds: UInt64 = 20, _ isSo: () throws -> Bool
) throws {
    let end = clockNow() + seconds * 1_000_000_000
    while try !isSo() {
        guard clockNow() < end else { throw BenchFailure("timeout after \(seconds) s: \(what)") }
        rest(microseconds: pace)
    }
}

/// The reason why a measurement failed.
struct BenchFailure: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

/// The measured values of one kind, in seconds.
struct Samples {
    private(set) var seconds: [Double] = []
    private var isSorted = true

    var count: Int { seconds.count }

    mutating func add(from start: UInt64, to end: UInt64) {
        // The clocks of two processors may differ by some nanoseconds.
        seconds.append(end > start ? Double(end - start) / 1e9 : 0)
        isSorted = false
    }

    mutating func add(_ value: Double) {
        seconds.append(value)
        isSorted = false
    }

    /// The percentile by nearest rank. A `share` of 1 is the maximum. The result is 0 if there are no values.
    mutating func percentile(_ share: Double) -> Double {
        if !isSorted { seconds.sort() }
        isSorted = true
        guard !seconds.isEmpty else { return 0 }
        let rank = Int((share * Double(seconds.count)).rounded(.up))
        return seconds[min(max(rank, 1), seconds.count) - 1]
    }
}
