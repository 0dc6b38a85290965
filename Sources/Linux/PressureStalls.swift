import Glibc
package import Posix

/// The contents of a memory.pressure file (kernel: accounting/psi.rst).
package struct PressureStalls: Equatable {
    package struct Line: Equatable {
        /// The share of the last 10 s in which tasks stalled, in hundredths of a percent.
        package var recent: UInt64
        /// Since the machine or the group was started.
        package var total: Duration

        package init(recent: UInt64, total: Duration) {
            self.recent = recent
            self.total = total
        }
    }

    /// At least one task stalled.
    package var some: Line
    /// All tasks that could run stalled.
    package var full: Line

    package init(some: Line, full: Line) {
        self.some = some
        self.full = full
    }

    /// "some avg10=0.12 avg60=0.00 avg300=0.00 total=MICROSECONDS", and the same for "full".
    package init?(parsing bytes: [UInt8]) {
        var lines: [PressureKind: Line] = [:]
        var scanner = ByteScanner(bytes)
        while let line = scanner.line() {
            var words = ByteScanner(line)
            guard let kind = words.word().flatMap({ PressureKind(rawValue: $0.text) }) else { continue }
            var recent: UInt64?
            var total: Int64?
            while let word = words.word() {
                if word.starts(with: "avg10=".utf8) { recent = Self.hundredths(word.dropFirst(6)) }
                if word.starts(with: "total=".utf8) { total = parseNumber(word.dropFirst(6)) }
            }
            guard let recent, let total, total >= 0 else { return nil }
            lines[kind] = Line(recent: recent, total: .microseconds(total))
        }
        guard let some = lines[.some], let full = lines[.full] else { return nil }
        self.init(some: some, full: full)
    }

    /// Parses "12.34"; at most 100.00 is possible.
    private static func hundredths(_ text: ArraySlice<UInt8>) -> UInt64? {
        let parts = text.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 2, parts[1].count == 2, let whole: UInt8 = parseNumber(parts[0]),
            let rest: UInt8 = parseNumber(parts[1])
        else { return nil }
        return UInt64(whole) * 100 + UInt64(rest)
    }
}

/// A file of the kernel that may be missing, appear and vanish. It is opened at the first read and stays open.
package final class ReopenedFile {
    package let path: String
    private var kept: KeptFile?

    package init(_ path: String) { self.path = path }

    /// The descriptor of the last read that succeeded.
    package var descriptor: SharedDescriptor? { kept?.descriptor }

    /// Reads from the start. `nil`: the file does not exist now; the next call opens it again.
    package func read(limit: Int = 8192) throws(SystemError) -> [UInt8]? {
        if kept == nil {
            do {
                kept = try KeptFile(path)
            } catch {
                if error.meansGone { return nil }
                throw error
            }
        }
        let bytes = try kept?.readIfPresent(limit: limit)
        if bytes == nil { kept = nil }
        return bytes
    }
}
