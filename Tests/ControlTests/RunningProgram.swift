import Glibc
import Posix
import Systemd
import TestKit
import Testing

/// How a program ended, and its output.
struct Outcome {
    /// The exit status, or minus the signal that ended the program.
    let status: Int32
    let output: String
    /// Standard error. Empty on a terminal, where it is in `output`.
    let errors: String
}

/// greenroomctl in its own process, on pipes or on its own terminal.
final class RunningProgram {
    let pid: pid_t
    private var ends: [Int32]
    private(set) var texts: [[UInt8]]
    /// The master side of the terminal.
    private let keyboard: Int32?

    var output: String { String(decoding: texts[0], as: UTF8.self) }

    /// - Parameter wrapper: a program and its arguments, to which the command is appended. Then `program` is the path of a copy.
    init(
        _ arguments: [String], environment: [String], terminal: Bool, wrapper: [String] = [],
        program copy: String? = nil
    ) throws {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // Test threads block signals, and the test runner may ignore some; the program starts with the defaults.
        var (none, some) = (sigset_t(), sigset_t())
        sigemptyset(&none)
        for set in [SIGINT, SIGPIPE] { sigaddset(&some, set) }
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setsigdefault(&attributes, &some)
        var flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF
        var childEnds: [Int32] = []
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        if terminal {
            let (master, path) = try openTerminal()
            // POSIX_SPAWN_SETSID: in its own session the first terminal that is opened becomes the controlling one, so that
            // Ctrl-C sends a signal.
            flags |= 0x80
            for descriptor: Int32 in 0...2 { posix_spawn_file_actions_addopen(&actions, descriptor, path, O_RDWR, 0) }
            (ends, keyboard) = ([master], master)
        } else {
            let (output, errors) = (try Self.makePipe(), try Self.makePipe())
            posix_spawn_file_actions_adddup2(&actions, output.write, 1)
            posix_spawn_file_actions_adddup2(&actions, errors.write, 2)
            childEnds = [output.write, errors.write]
            (ends, keyboard) = ([output.read, errors.read], nil)
        }
        defer { for descriptor in childEnds { close(descriptor) } }
        texts = ends.map { _ in [] }
        posix_spawnattr_setflags(&attributes, Int16(flags))
        let own = copy ?? programFolder() + "/greenroomctl"
        let program = wrapper.first ?? own
        let words =
            (wrapper.isEmpty ? ["greenroomctl"] + arguments : wrapper + [own] + arguments).map { strdup($0) } + [nil]
        let path = environment.contains { $0.hasPrefix("PATH=") } ? [] : ["PATH=/usr/bin:/bin"]
        let variables = (["TZ=UTC"] + path + environment).map { strdup($0) } + [nil]
        defer { for word in words + variables { free(word) } }
        var pid: pid_t = 0
        let result = posix_spawn(&pid, program, &actions, &attributes, words, variables)
        try #require(result == 0, "posix_spawn \(program): \(result)")
        self.pid = pid
    }

    /// A socket pair instead of a pipe: it is created close-on-exec, so that programs which other tests start at the same
    /// time do not hold it open.
    private static func makePipe() throws -> (read: Int32, write: Int32) {
        var ends: [Int32] = [-1, -1]
        let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        try #require(socketpair(AF_UNIX, type, 0, &ends) == 0)
        return (ends[0], ends[1])
    }

    deinit {
        for end in ends { close(end) }
    }

    /// Ends it, as `kill` does.
    func terminate() { kill(pid, SIGTERM) }

    func type(_ text: String) {
        if let keyboard { _ = Glibc.write(keyboard, text, text.utf8.count) }
    }

    /// Serves the loop until the program has closed its output; calls `during` after each piece of output.
    func finish(in loop: EventLoop, during: ((RunningProgram) -> Void)? = nil) throws -> Outcome {
        var open = Set(ends)
        var sources: [EventSource] = []
        for (index, end) in ends.enumerated() {
            sources.append(
                try loop.addDescriptor(SharedDescriptor(Descriptor.duplicate(of: end)), events: .readable) {
                    [unowned self] _ in
                    var chunk = [UInt8](repeating: 0, count: 4096)
                    let count = read(end, &chunk, chunk.count)
                    // A terminal whose other side is closed returns EIO.
                    if count <= 0 {
                        open.remove(end)
                        sources[index].cancel()
                    } else {
                        self.texts[index] += chunk.prefix(count)
                        during?(self)
                    }
                })
        }
        let deadline = loop.now() + timeout
        while !open.isEmpty {
            if loop.now() > deadline {
                kill(pid, SIGKILL)
                Issue.record("the program did not end; so far: \(output)")
                break
            }
            _ = try loop.runOnce(timeout: .milliseconds(100))
        }
        var status: Int32 = 0
        waitpid(pid, &status, 0)
        let signal = status & 0x7F
        return Outcome(
            status: signal == 0 ? (status >> 8) & 0xFF : -signal, output: output,
            errors: texts.count > 1 ? String(decoding: texts[1], as: UTF8.self) : "")
    }
}
