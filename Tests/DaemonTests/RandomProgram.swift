import Glibc
import Linux
import Posix
import TestKit

/// A small random program of sh or python3, and what its client does meanwhile. What it writes and how it ends depends on nothing else.
struct RandomProgram {
    enum Step {
        /// It reads so many bytes of its input and writes them to its output.
        case echo(Int)
        /// It writes bytes of the file `blob` to a stream, 1 or 2.
        case write(stream: Int, offset: Int, count: Int)
    }

    enum End {
        case exit(Int32)
        /// It sends a signal to itself; if it survives that, it exits with 77.
        case own(Int32)
        /// It says that it waits, and its client sends a signal. `handled`: it exits then with this status.
        case sent(Int32, handled: Int32?)
        /// It copies what is left of its input to its output.
        case copy(rest: Int, status: Int32)
        /// It writes until its output has no reader any more, after so many bytes.
        case noReader(Int)
    }

    static let blobSize = 256 << 10
    private static let marker = "waits\n"
    /// Those that a program may send to itself. Not those that stop it, which nothing would continue.
    private static let ownSignals: [Int32] =
        Array(1...31).filter { ![SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU].contains($0) } + [34, 50, 64]
    /// Those that its client sends. SIGCHLD is the relay's own, and SIGCONT, SIGURG and SIGWINCH end no program.
    private static let sentSignals: [Int32] = [
        SIGHUP, SIGINT, SIGQUIT, SIGABRT, SIGKILL, SIGUSR1, SIGSEGV, SIGUSR2, SIGPIPE, SIGALRM, SIGTERM, SIGXCPU,
        SIGVTALRM, SIGIO,
    ]

    let steps: [Step]
    let end: End
    let isPython: Bool
    /// Before which writes of the client it waits until the command is suspended: the position of a step that reads, or their number for
    /// the end.
    let rest: Int?
    let options: [String]
    /// What the client writes, from the beginning of the blob.
    let inputOffset: Int

    init(_ random: inout Dice, hasPython: Bool) {
        isPython = hasPython && random.below(4) == 0
        steps = (0..<random.below(6)).map { _ in
            if random.below(2) == 0 { return .echo(random.size()) }
            let count = random.size()
            return .write(stream: 1 + random.below(2), offset: random.below(Self.blobSize - count), count: count)
        }
        end =
            switch random.below(6) {
            case 0, 1: .exit(Int32(random.below(256)))
            case 2: .own(random.pick(Self.ownSignals))
            case 3:
                .sent(random.pick(Self.sentSignals), handled: random.below(2) == 0 ? Int32(random.below(120)) : nil)
            case 4: .copy(rest: random.size(), status: Int32(random.below(256)))
            default: .noReader(random.size())
            }
        options = random.pick([[], [], ["--protocol=jsonrpc"], ["--protocol=mcp"]])
        // With a protocol a line without an end keeps it awake.
        rest = !options.isEmpty || random.below(4) == 0 ? nil : random.below(steps.count + 1)
        inputOffset = random.below(Self.blobSize / 4)
    }

    // MARK: The program

    /// - Parameter blob: the path of a file with random bytes.
    func command(_ blob: String) -> [String] {
        isPython ? [TrafficStage.python, "-c", python(blob)] : ["/bin/sh", "-c", shell(blob)]
    }

    private func shell(_ blob: String) -> String {
        var lines = ["ulimit -c 0"]
        for step in steps {
            switch step {
            case .echo(let count): lines.append("head -c \(count)")
            case .write(let stream, let offset, let count):
                lines.append("tail -c +\(offset + 1) \(blob) | head -c \(count) >&\(stream)")
            }
        }
        switch end {
        case .exit(let status): lines.append("exit \(status)")
        case .own(let signal): lines += ["kill -\(signal) $$", "exit 77"]
        case .sent(let signal, let handled):
            if let handled { lines.append("trap 'exit \(handled)' \(signal)") }
            lines += ["echo waits", "while :; do read -r line; done"]
        case .copy(_, let status): lines += ["cat", "exit \(status)"]
        case .noReader: lines.append("while :; do cat \(blob) 2>/dev/null || exit 3; done")
        }
        return lines.joined(separator: "\n")
    }

    private func python(_ blob: String) -> String {
        var lines = [
            "import os, resource, signal, sys", "resource.setrlimit(resource.RLIMIT_CORE, (0, 0))",
            "signal.signal(signal.SIGPIPE, signal.SIG_DFL); signal.signal(signal.SIGINT, signal.SIG_DFL)",
            "blob = open('\(blob)', 'rb').read()",
            "def put(fd, data):", "    while data: data = data[os.write(fd, data):]",
            "def echo(count):", "    while count:", "        data = os.read(0, min(count, 5000))",
            "        put(1, data)", "        count -= len(data)",
        ]
        for step in steps {
            switch step {
            case .echo(let count): lines.append("echo(\(count))")
            case .write(let stream, let offset, let count):
                lines.append("put(\(stream), blob[\(offset):\(offset + count)])")
            }
        }
        switch end {
        case .exit(let status): lines.append("os._exit(\(status))")
        case .own(let signal): lines += ["os.kill(os.getpid(), \(signal))", "os._exit(77)"]
        case .sent(let signal, let handled):
            // The kernel lets no program handle SIGKILL.
            if let handled, signal != SIGKILL {
                lines.append("signal.signal(\(signal), lambda *_: os._exit(\(handled)))")
            }
            lines += ["put(1, b'waits\\n')", "while True: os.read(0, 1)"]
        case .copy(_, let status):
            lines += ["while True:", "    data = os.read(0, 5000)", "    if not data: break", "    put(1, data)"]
            lines.append("os._exit(\(status))")
        case .noReader: lines.append("while True: put(1, blob)")
        }
        return lines.joined(separator: "\n")
    }

    // MARK: Its client

    struct Outcome: Equatable, CustomStringConvertible {
        var status: Int32?
        var output: [UInt8]
        var errors: [UInt8]

        var description: String {
            "status \(status.map { "\($0)" } ?? "?"), \(output.count) bytes (\(Self.sum(output))) of output, "
                + "\(errors.count) (\(Self.sum(errors))) of errors"
        }

        private static func sum(_ bytes: [UInt8]) -> String {
            String(bytes.reduce(UInt32(0)) { $0 &* 31 &+ UInt32($1) }, radix: 16)
        }
    }

    /// Talks to the program until it has ended.
    /// - Parameters:
    ///   - errors: the file that has its standard error.
    ///   - awaitRest: waits until the command is suspended; not called for the program without run.
    func play(_ client: RunClient, _ blob: [UInt8], errors: String, awaitRest: () throws -> Void) throws -> Outcome {
        var output: [UInt8] = []
        var position = inputOffset
        func write(_ count: Int) throws {
            // The pipes of input and output together hold it, so it needs no reader meanwhile: head(1) writes its last bytes at its end.
            try client.write((position..<position + count).map { blob[$0 % blob.count] })
            output += try client.bytes(count)
            position += count
        }
        for (index, step) in steps.enumerated() {
            switch step {
            case .echo(let count):
                if index == rest, count > 0 { try awaitRest() }
                try write(count)
            case .write(stream: 1, _, let count): output += try client.bytes(count)
            case .write: break
            }
        }
        switch end {
        case .exit, .own: break
        case .sent(let signal, _):
            output += try client.bytes(Self.marker.utf8.count)
            if rest == steps.count { try awaitRest() }
            try client.process.signal(signal)
            waitForReadable([client.process.descriptor])
        case .copy(let count, _):
            if rest == steps.count { try awaitRest() }
            try write(count)
        case .noReader(let count):
            output += try client.bytes(count)
            client.closeOutput()
        }
        client.closeInput()
        if case .noReader = end {} else { output += try client.bytes() }
        let status: Int32? =
            switch try client.end() {
            case .exited(let status): status
            case .signaled(let signal, _): 128 + signal
            default: nil
            }
        return Outcome(status: status, output: output, errors: try readFile(at: errors, limit: 16 << 20))
    }
}

extension Dice {
    /// A number of bytes: mostly few, sometimes more than a pipe holds.
    fileprivate mutating func size() -> Int {
        let limit = pick([0, 1, 10, 1000, 5000, 70_000, 100_000])
        return limit < 2 ? limit : below(limit)
    }
}
