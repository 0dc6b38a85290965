import Control
import Glibc
import LifecycleCore
import Linux
import Posix
import Systemd

/// A program of the caller that makes the requests of the step "requests". It reads a line with the number of a round, and writes a line
/// with `ok`, or with what is wrong. It ends at the end of its input.
final class CertifyClient: CertifyRequester {
    private let process: Linux.Process
    private var input: SharedDescriptor?
    private let output: SharedDescriptor
    private let timeout: Duration
    private var lines = ClientLines()
    /// What it wrote after the last `ok`.
    private var remark = ""

    /// How long it has for its end once its input has ended, or for its end to be reported.
    private static let endTime = Duration.seconds(2)

    /// Starts the client, in the folder and with the environment and the standard error of this program.
    init(_ command: String, _ timeout: Duration) throws(Failure) {
        self.timeout = timeout
        do throws(SystemError) {
            let toClient = try Pipe()
            let fromClient = try Pipe()
            // It need not know that a descriptor may not block.
            try toClient.read.setNonBlocking(false)
            try fromClient.write.setNonBlocking(false)
            input = SharedDescriptor(try toClient.write.duplicate())
            output = SharedDescriptor(try fromClient.read.duplicate())
            let mask = umask(0)
            umask(mask)
            var starting = try startProcess(
                SpawnRequest(
                    executable: "/bin/sh", arguments: ["-c", command], environment: Self.environment, umask: mask,
                    standardInput: SharedDescriptor(try toClient.read.duplicate()),
                    standardOutput: SharedDescriptor(try fromClient.write.duplicate()), standardError: .standardError))
            process = starting.process
            while try starting.outcome() == .pending {
                _ = isReadable(starting.outcomeDescriptor.raw, within: .seconds(1))
            }
        } catch {
            throw Failure("certify: cannot start the client: \(error)")
        }
    }

    private static var environment: [String] {
        var (variables, next): ([String], _) = ([], environ)
        while let entry = next.pointee {
            variables.append(String(cString: entry))
            next += 1
        }
        return variables
    }

    /// Ends the client, and the processes that it has started in its session.
    func stop() {
        input = nil
        _ = isReadable(process.descriptor.raw, within: Self.endTime)
        kill(-process.pid, SIGKILL)
        _ = try? process.signal(SIGKILL)
        while (try? process.reap()) ?? nil == nil { _ = isReadable(process.descriptor.raw, within: .seconds(1)) }
    }

    // MARK: Rounds

    func prepare() -> String? { nil }

    func send(_ round: Int) -> String? {
        _ = readArrived()
        if lines.hasText { return "the client wrote a line before it was asked: “\(lines.rest)”" }
        guard let input else { return nil }
        let line = Array("\(round)\n".utf8)
        // A client that has ended must not end this program.
        let earlier = signal(SIGPIPE, SIG_IGN)
        defer { signal(SIGPIPE, earlier) }
        let count = write(input.raw, line, line.count)
        if count == line.count { return nil }
        return count >= 0 || errno == EAGAIN ? "the client does not read its input" : end(round)
    }

    func answer(to round: Int, _ app: Rehearsal) throws(Failure) -> String? {
        let limit = EventLoop.now() + timeout
        while true {
            if let line = lines.next() { return problem(line, round) }
            if lines.isTooLong {
                return
                    "the client wrote more than \(ClientLines.longest) bytes without the end of a line \(Self.when(round))"
            }
            try app.stopIfInterrupted()
            try app.readArrived()
            if app.last(.ended) != nil { return "the app has ended" }
            let now = EventLoop.now()
            guard now < limit else { return "the client did not answer within \(timeout.timeSpan) \(Self.when(round))" }
            let hasEnded = process.isOver
            _ = isReadable(output.raw, within: hasEnded ? .zero : min(limit - now, Rehearsal.slice))
            switch readArrived() {
            case .bytes: break
            case .nothing: if hasEnded { return end(round) }
            case .end: return end(round)
            }
        }
    }

    func finding(_ rounds: Int) -> String {
        let last = remark.isEmpty ? "" : ", and of the last one “\(remark)”"
        return "the client found each answer right, before and after \(Self.freezes(rounds))\(last)"
    }

    /// - Parameter line: the client's answer.
    private func problem(_ line: String, _ round: Int) -> String? {
        let words = line.split(separator: " ", maxSplits: 1)
        guard words.first == "ok", line.hasPrefix("ok") else {
            return "the client found \(Self.when(round)): " + (line.isEmpty ? "an empty line" : "“\(line)”")
        }
        remark = words.count > 1 ? String(words[1]) : ""
        return nil
    }

    private static func when(_ round: Int) -> String { round == 0 ? "before the first round" : "in round \(round)" }

    /// A sentence about the end of the client, or of its output.
    private func end(_ round: Int) -> String {
        _ = isReadable(process.descriptor.raw, within: Self.endTime)
        let how =
            switch (try? process.exitStatus()) ?? nil {
            case .exited(let status)?: "exited with status \(status)"
            case .signaled(let number, _)?: "was ended by \(signalName(number))"
            case nil: "closed its output"
            }
        return "the client \(how) \(Self.when(round))"
    }

    // MARK: Output

    private enum Arrival { case bytes, nothing, end }

    private func readArrived() -> Arrival {
        guard !lines.isTooLong else { return .nothing }
        var chunk = [UInt8](repeating: 0, count: ClientLines.longest + 1)
        let count = retryInterrupted { read(output.raw, &chunk, chunk.count) }
        if count > 0 { lines.add(chunk[..<count]) }
        return count > 0 ? .bytes : count == 0 ? .end : .nothing
    }
}

/// The lines that a client writes. They are its own: no longer than `longest`.
struct ClientLines {
    static let longest = 1024

    private var bytes: [UInt8] = []

    var hasText: Bool { !bytes.isEmpty }
    /// Whether more has arrived than a line may have.
    var isTooLong: Bool { bytes.count > Self.longest && !bytes.prefix(Self.longest + 1).contains(0x0A) }
    /// What has arrived, up to the end of a line.
    var rest: String { Self.text(bytes.prefix { $0 != 0x0A }.prefix(Self.longest)) }

    mutating func add(_ more: ArraySlice<UInt8>) { bytes += more }

    /// The next whole line, without its end.
    mutating func next() -> String? {
        guard let end = bytes.prefix(Self.longest + 1).firstIndex(of: 0x0A) else { return nil }
        defer { bytes.removeSubrange(...end) }
        return Self.text(bytes[..<end])
    }

    private static func text(_ bytes: ArraySlice<UInt8>) -> String {
        String(decoding: bytes.last == 0x0D ? bytes.dropLast() : bytes, as: UTF8.self)
    }
}
