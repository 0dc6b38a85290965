extension Duration {
    /// The time span as systemd writes it (systemd.time(7)): `400us`, `310ms`, `5s`, `5.210s`, `1min 30s`, `2h 5min`, `3d 4h`.
    ///
    /// Milliseconds are shown below a minute, and at most two units from there. A negative span is `0s`.
    package var timeSpan: String { timeSpan(digits: 3) }

    /// The time span with fewer digits, for countdowns: `3.2s` with one digit, `28s` with none.
    ///
    /// - Parameter digits: decimals of the seconds below a minute, 0 to 3.
    package func timeSpan(digits: Int) -> String {
        let microseconds = wholeMicroseconds
        if microseconds == 0 { return "0s" }
        if digits >= 3, microseconds < 1000 { return "\(microseconds)us" }
        let unit: UInt64 = [1_000_000, 100_000, 10_000, 1000][max(0, min(3, digits))]
        let rounded = (microseconds + unit / 2) / unit * unit
        if digits >= 3, rounded < 1_000_000 { return "\(rounded / 1000)ms" }
        guard rounded >= 60_000_000 else {
            let fraction = rounded % 1_000_000
            if fraction == 0 { return "\(rounded / 1_000_000)s" }
            return "\(rounded / 1_000_000).\(String(1_000_000 + fraction).dropFirst().prefix(digits))s"
        }
        let seconds = (microseconds + 500_000) / 1_000_000
        func pair(_ large: UInt64, _ unit: String, _ small: UInt64, _ smallUnit: String) -> String {
            "\(large)\(unit)" + (small == 0 ? "" : " \(small)\(smallUnit)")
        }
        if seconds < 3600 { return pair(seconds / 60, "min", seconds % 60, "s") }
        if seconds < 86400 { return pair(seconds / 3600, "h", seconds % 3600 / 60, "min") }
        return pair(seconds / 86400, "d", seconds % 86400 / 3600, "h")
    }

    /// Microseconds, rounded to the nearest; 0 for a negative span. A longer span than 10¹² seconds counts as that.
    var wholeMicroseconds: UInt64 {
        guard self > .zero else { return 0 }
        let (seconds, attoseconds) = min(self, .seconds(1_000_000_000_000)).components
        return UInt64(seconds) * 1_000_000 + UInt64((attoseconds + 500_000_000_000) / 1_000_000_000_000)
    }
}
