import Glibc

/// Nanoseconds of CLOCK_MONOTONIC, as the bench app's.
func clockNow() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

/// Leaves the processor to others.
func rest(microseconds: Int) {
    usleep(UInt32(microseconds))
}

/// Looks again and again until it is so, seldom enough to leave the processors to what is measured.
/// - Throws: after 20 s.
func eventually(_ what: String, everyMicroseconds pace: Int = 100, _ isSo: () throws -> Bool) throws {
    let end = clockNow() + 20_000_000_000
    while try !isSo() {
        guard clockNow() < end else { throw BenchFailure("waited 20 s in vain: \(what)") }
        rest(microseconds: pace)
    }
}

/// What can't be measured, in a sentence.
struct BenchFailure: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

/// Measurements of one kind, in seconds.
struct Samples {
    private(set) var seconds: [Double] = []
    private var isSorted = true

    var count: Int { seconds.count }

    mutating func add(from start: UInt64, to end: UInt64) {
        // Two processors' clocks may differ by some nanoseconds.
        seconds.append(end > start ? Double(end - start) / 1e9 : 0)
        isSorted = false
    }

    mutating func add(_ value: Double) {
        seconds.append(value)
        isSorted = false
    }

    /// Nearest rank; `share` of 1 is the largest. Zero where nothing was measured.
    mutating func percentile(_ share: Double) -> Double {
        if !isSorted { seconds.sort() }
        isSorted = true
        guard !seconds.isEmpty else { return 0 }
        let rank = Int((share * Double(seconds.count)).rounded(.up))
        return seconds[min(max(rank, 1), seconds.count) - 1]
    }
}
