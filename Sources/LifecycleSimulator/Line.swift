import LifecycleCore

/// Builds one line of the trace. It only appends, because every event of every seed is formatted: the digest covers all
/// lines.
struct Line {
    private(set) var text = ""

    init() { text.reserveCapacity(200) }

    mutating func clear() { text.removeAll(keepingCapacity: true) }
    mutating func add(_ word: String) { text += word }
    mutating func add(_ number: some BinaryInteger) { text += String(number) }

    /// Adds a time, for example "12.000345 s".
    mutating func add(seconds time: Microseconds) {
        let (whole, rest) = time.quotientAndRemainder(dividingBy: .second)
        text += String(whole)
        if rest != 0 {
            let digits = String(abs(rest))
            text += "."
            for _ in digits.utf8.count..<6 { text += "0" }
            text += digits
        }
        text += " s"
    }

    mutating func add(_ time: Duration) { add(seconds: time.microseconds) }

    /// Adds a size, for example "12 MiB" or "340 KiB".
    mutating func add(bytes: UInt64) {
        if bytes >= 10 << 20 {
            text += String(bytes >> 20)
            text += " MiB"
        } else {
            text += String(bytes >> 10)
            text += " KiB"
        }
    }

    mutating func add(_ status: ExitStatus) {
        switch status {
        case .exited(let code):
            text += "with status "
            add(code)
        case .signaled(let signal, let coreDumped):
            text += "by signal "
            add(signal)
            if coreDumped { text += " (core dumped)" }
        case .unknown: text += "with unknown status"
        case .lost: text += "with the machine"
        }
    }
}
