/// A timer descriptor as /proc/PID/fdinfo shows it (proc_pid_fdinfo(5)).
struct TimerDescriptor: Equatable {
    /// Until it is readable; `nil`: it is not armed.
    let rest: Duration?
    /// `nil`: it is armed once.
    let interval: Duration?

    /// - Returns: `nil` if the bytes are not such a file.
    init?(parsing bytes: [UInt8]) {
        guard let rest = Self.time(bytes, "it_value:"), let interval = Self.time(bytes, "it_interval:") else {
            return nil
        }
        self.rest = rest == .zero ? nil : rest
        self.interval = interval == .zero ? nil : interval
    }

    /// `it_value: (49, 406829290)`: seconds and nanoseconds.
    private static func time(_ bytes: [UInt8], _ name: String) -> Duration? {
        var scanner = ByteScanner(bytes)
        while let line = scanner.line() {
            guard line.starts(with: name.utf8) else { continue }
            let numbers = line.dropFirst(name.utf8.count).split {
                !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
            }
            guard numbers.count == 2, let seconds: UInt32 = parseNumber(numbers[0]),
                let nanoseconds: UInt32 = parseNumber(numbers[1])
            else { return nil }
            return .seconds(seconds) + .nanoseconds(nanoseconds)
        }
        return nil
    }
}

/// A timer descriptor in which a program waits in ticks.
package struct TimerTick: Hashable, Sendable {
    let process: Int32
    let number: Int32
}
