import Glibc
import Linux
import Systemd
import Testing

/// A journal whose entries tests read.
final class TestLog {
    let journal: Journal
    private let file: Descriptor

    init() throws {
        file = try MemoryFile.empty("log")
        journal = Journal(level: .debug, usesJournald: false, errorStyle: .plain, errorDescriptor: file.raw)
    }

    var text: String {
        let bytes = (try? MemoryFile.contents(file.raw, limit: 1 << 20)) ?? []
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Entries, with the time and the level in front.
    var lines: [Substring] { text.split(separator: "\n") }
}
