import Glibc
import Linux
import Posix
import Systemd
import Testing

/// A journal whose entries tests read.
final class TestLog {
    let journal: Journal
    private let file: SharedDescriptor

    init() throws {
        file = SharedDescriptor(try MemoryFile.empty("log"))
        journal = Journal(level: .debug, usesJournald: false, errorStyle: .plain, errorDescriptor: file)
    }

    var text: String {
        let bytes = (try? MemoryFile.contents(file.descriptor, limit: 1 << 20)) ?? []
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Entries, with the time and the level in front.
    var lines: [Substring] { text.split(separator: "\n") }
}
