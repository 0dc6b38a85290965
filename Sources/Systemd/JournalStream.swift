import CSystemd
import Glibc
package import Posix

/// A connection to journald for the output of a program; each line is an entry (sd_journal_stream_fd(3)).
package enum JournalStream {
    /// Opens a connection. It blocks only while some thousand others wait (journald's backlog).
    /// - Parameters:
    ///   - identifier: the entries' `SYSLOG_IDENTIFIER=`; without line ends.
    ///   - level: of lines that do not begin with a level (`<3>`, sd-daemon(3)).
    /// - Returns: the connection, close-on-exec; `nil` without journald.
    package static func open(identifier: String, level: LogLevel = .info) throws(SystemError) -> Descriptor? {
        // journald reads the header by lines: a line end in the name would change other settings.
        guard !identifier.utf8.contains(where: { $0 < 0x20 || $0 == 0x7f }) else {
            throw SystemError(call: "sd_journal_stream_fd", errno: EINVAL, path: "identifier")
        }
        let result = sd_journal_stream_fd(identifier, level.rawValue, 1)
        if result == -ENOENT || result == -ECONNREFUSED { return nil }
        return Descriptor(adopting: try check(result, "sd_journal_stream_fd", identifier))
    }
}
