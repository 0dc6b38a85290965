import Glibc
import Linux
import Posix
import TestKit

/// A caller of `greenroomctl run`: it has the other ends of the command's standard streams.
final class RunClient {
    /// What it has started: greenroomctl, which becomes the relay.
    let process: Linux.Process
    private var input: SharedDescriptor?
    private var output: SharedDescriptor?
    private var rest: [UInt8] = []

    /// Suspended soon.
    static let soon = ["-p", "IdleSec=100ms", "-p", "StartupSec=0"]

    /// - Parameters:
    ///   - options: of `run`.
    ///   - input: standard input; `nil`: a pipe to this client.
    ///   - starter: a program that starts what follows its arguments; empty: this client does.
    ///   - errors: the file for standard error.
    ///   - isBare: the command is executed without `run`.
    init(
        _ daemon: TestDaemon, _ command: [String], options: [String] = RunClient.soon, variables: [String] = [],
        runtime: String? = nil, input: SharedDescriptor? = nil, by starter: [String] = [], errors path: String? = nil,
        isBare: Bool = false
    ) throws {
        let fromClient = try Pipe()
        let toClient = try Pipe()
        for end in [fromClient.read.raw, fromClient.write.raw, toClient.write.raw] { _ = fcntl(end, F_SETFL, 0) }
        output = SharedDescriptor(try toClient.read.duplicate())
        self.input = input == nil ? SharedDescriptor(try fromClient.write.duplicate()) : nil
        let errors = SharedDescriptor(
            try Descriptor.open(path ?? daemon.root + "/errors", O_WRONLY | O_CREAT | O_APPEND, mode: 0o600))
        let run =
            [TestDaemon.binaries + "/greenroomctl", "--runtime", runtime ?? daemon.runtime, "run"] + options + ["--"]
        let words = starter + (isBare ? [] : run) + command
        let request = SpawnRequest(
            executable: words[0], arguments: Array(words.dropFirst()),
            environment: ["PATH=/usr/bin:/bin", "HOME=/"] + variables,
            standardInput: try input ?? SharedDescriptor(fromClient.read.duplicate()),
            standardOutput: SharedDescriptor(try toClient.write.duplicate()), standardError: errors)
        var starting = try startProcess(request)
        process = starting.process
        while try starting.outcome() == .pending { waitForReadable([starting.outcomeDescriptor]) }
    }

    deinit {
        _ = try? process.signal(SIGKILL)
        waitForReadable([process.descriptor])
        _ = try? process.reap()
    }

    func write(_ bytes: [UInt8]) throws { if let input { try writeAll(bytes, to: input.descriptor) } }
    func write(_ text: String) throws { try write(Array(text.utf8)) }
    func closeInput() { input = nil }
    func closeOutput() { output = nil }

    /// Whether there is something to read, or the end, within a minute.
    private func fill() throws -> Bool {
        guard let output, isReadable(output.raw, within: .seconds(60)) else {
            throw TestFailure("the command writes nothing")
        }
        var piece = [UInt8](repeating: 0, count: 65_536)
        let count = read(output.raw, &piece, piece.count)
        rest += piece[..<max(0, count)]
        return count > 0
    }

    /// The next line, without its end.
    func line() throws -> String {
        while true {
            if let end = rest.firstIndex(of: 10) {
                defer { rest.removeFirst(end + 1) }
                return String(decoding: rest[..<end], as: UTF8.self)
            }
            guard try fill() else {
                throw TestFailure("the output ends with '\(String(decoding: rest, as: UTF8.self))'")
            }
        }
    }

    /// Exactly so many bytes, or all up to the end.
    func bytes(_ count: Int = .max) throws -> [UInt8] {
        while rest.count < count, try fill() {}
        defer { rest.removeFirst(min(count, rest.count)) }
        return Array(rest.prefix(count))
    }

    /// Sends a line, and expects it back.
    func exchange(_ text: String) throws {
        try write(text + "\n")
        let answer = try line()
        guard answer == text else { throw TestFailure("'\(answer)' instead of '\(text)'") }
    }

    /// Waits for the end of what was started.
    func end() throws -> EndStatus? {
        guard isReadable(process.descriptor.raw, within: .seconds(60)) else { throw TestFailure("it does not end") }
        return try process.reap()?.status
    }
}

extension TestDaemon {
    /// The group of the command, also when its main process has ended.
    func isPopulated(command app: String) -> Bool {
        guard let root = groupRoot else { return false }
        return entries(of: root).filter { $0.hasPrefix(app + ".run") }
            .contains { !TestDaemon.text(of: "\(root)/\($0)/cgroup.procs").isEmpty }
    }

    var errors: String { TestDaemon.text(of: root + "/errors") }
}
