import Glibc
import Posix

/// greenroomctl, whose output a page shows. It has no terminal, so that it asks for no password.
final class ChildProgram {
    private let pid: pid_t
    private let output: SharedDescriptor
    /// The bytes of a line that has no end yet.
    private var rest: [UInt8] = []
    private(set) var isAtEnd = false
    private var isReaped = false

    /// A longer line is divided.
    private static let longestLine = 1 << 12
    /// What is read in one go, so that keys are served while a long log arrives.
    private static let chunk = 1 << 16

    /// - Parameter columns: the width of the screen, by which greenroomctl wraps.
    init?(_ program: String, _ arguments: [String], columns: Int) {
        guard let pipe = try? Pipe() else { return nil }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, pipe.write.raw, STDOUT_FILENO)
        posix_spawn_file_actions_adddup2(&actions, pipe.write.raw, STDERR_FILENO)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // Ctrl-C is for this program.
        posix_spawnattr_setpgroup(&attributes, 0)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETPGROUP))
        var variables: [UnsafeMutablePointer<CChar>?] = []
        var entry = environ
        while let text = entry.pointee {
            if strncmp(text, "COLUMNS=", 8) != 0 { variables.append(strdup(text)) }
            entry += 1
        }
        variables += [strdup("COLUMNS=\(columns)"), nil]
        let words = ([program] + arguments).map { strdup($0) } + [nil]
        defer { for word in words + variables { free(word) } }
        var pid: pid_t = 0
        guard posix_spawn(&pid, program, &actions, &attributes, words, variables) == 0 else { return nil }
        self.pid = pid
        output = SharedDescriptor(pipe.closingWrite())
        _ = fcntl(output.raw, F_SETFL, O_NONBLOCK)
    }

    deinit {
        guard !isReaped else { return }
        kill(pid, SIGKILL)
        while waitpid(pid, nil, 0) < 0, errno == EINTR {}
    }

    var descriptor: Int32 { output.raw }

    /// The whole lines that have arrived; at the end also the last one.
    func read() -> [String] {
        var bytes = [UInt8](repeating: 0, count: Self.chunk)
        let count = Glibc.read(output.raw, &bytes, bytes.count)
        if count < 0, errno == EAGAIN || errno == EINTR { return [] }
        rest += bytes.prefix(max(0, count))
        if count <= 0 { finish() }
        var lines: [String] = []
        var start = 0
        for index in rest.indices where rest[index] == UInt8(ascii: "\n") {
            lines.append(Self.text(rest[start..<index]))
            start = index + 1
        }
        rest.removeFirst(start)
        if !rest.isEmpty, isAtEnd || rest.count > Self.longestLine {
            lines.append(Self.text(rest[...]))
            rest = []
        }
        return lines
    }

    private func finish() {
        isAtEnd = true
        kill(pid, SIGKILL)
        while waitpid(pid, nil, 0) < 0, errno == EINTR {}
        isReaped = true
    }

    /// A line for the screen: tabs are spaces. Control characters are escaped when it is drawn.
    private static func text(_ bytes: ArraySlice<UInt8>) -> String {
        let text = String(decoding: bytes, as: UTF8.self)
        guard text.utf8.contains(UInt8(ascii: "\t")) else { return text }
        return text.split(separator: "\t", omittingEmptySubsequences: false).joined(separator: "    ")
    }
}
