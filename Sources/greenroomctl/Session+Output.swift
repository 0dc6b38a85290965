import Control
import Glibc
import Posix
import Systemd

/// The last lines that an app wrote before it failed: from its receipt, or from the journal.
extension Session {
    /// As systemctl shows of a unit.
    private static let lastLines = 10

    /// - Parameter client: asks for the whole receipt. A status has it without the lines, which not every user may read. `nil`: it is
    ///   whole.
    func lastLines(before receipt: ReceiptRecord, _ client: Client? = nil) -> [String] {
        guard receipt.isFailure else { return [] }
        let whole = try? client?.call("Receipt", [.uint64(receipt.id)], as: ReceiptRecord.self)
        let lines = (whole ?? receipt).output
        guard lines.isEmpty, isJournaldRunning, access(JournalQuery.program, X_OK) == 0 else { return lines }
        return outputLines(of: JournalQuery.arguments(endOf: receipt, lines: Self.lastLines)).suffix(Self.lastLines).map
        {
            escaped($0)
        }
    }

    var isJournaldRunning: Bool { access("/run/systemd/journal/socket", F_OK) == 0 }
}

extension JournalQuery {
    /// journald may get the last lines after the daemon has noted the end.
    private static let delay = Duration.milliseconds(100)

    /// The arguments that select the last output of a run that has ended.
    static func arguments(endOf receipt: ReceiptRecord, lines: Int) -> [String] {
        func seconds(_ time: Timestamp) -> String {
            let fraction = String(1_000_000 + time.microseconds % 1_000_000).dropFirst()
            return "@\(time.microseconds / 1_000_000).\(fraction)"
        }
        return [
            "--quiet", "--no-pager", "--output=cat", "--lines=\(lines)",
            "--since=" + seconds(receipt.time - receipt.wall),
            "--until=" + seconds(receipt.time - (.zero - delay)), "_TRANSPORT=stdout",
            "SYSLOG_IDENTIFIER=\(receipt.app)",
        ]
    }
}

/// Runs journalctl, and returns the lines of its output. A journal that takes longer than 2 s to read, as one of many gigabytes on a slow
/// disk, gives none.
private func outputLines(of arguments: [String]) -> [String] {
    guard let pipe = try? Pipe() else { return [] }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, pipe.write.raw, STDOUT_FILENO)
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0)
    let words = ([JournalQuery.program] + arguments).map { strdup($0) } + [nil]
    defer { for word in words { free(word) } }
    var pid: pid_t = 0
    guard posix_spawn(&pid, JournalQuery.program, &actions, nil, words, environ) == 0 else { return [] }
    let reader = pipe.closingWrite()
    var bytes: [UInt8] = []
    let limit = EventLoop.now() + .seconds(2)
    while bytes.count < 1 << 20, EventLoop.now() < limit {
        guard isReadable(reader.raw, within: limit - EventLoop.now()) else { continue }
        var chunk = [UInt8](repeating: 0, count: 1 << 16)
        let count = read(reader.raw, &chunk, chunk.count)
        if count < 0, errno == EINTR || errno == EAGAIN { continue }
        if count <= 0 { break }
        bytes += chunk.prefix(count)
    }
    kill(pid, SIGKILL)
    while waitpid(pid, nil, 0) < 0, errno == EINTR {}
    return bytes.split(separator: UInt8(ascii: "\n")).map { String(decoding: $0, as: UTF8.self) }
}
