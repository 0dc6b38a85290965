import Glibc
import LifecycleCore
import Linux
import LoopPolicy
import Manifest
import Posix
import Systemd

/// Takes over commands of `greenroomctl run` (L54). Their relays connect to a socket of their own: only root and the daemon's user can
/// reach it.
///
/// Messages of a relay, words that each end in a NUL:
///
/// - `run`: a new command. The answer is `G` with the run's number, the folder of its group and cgroup.procs; `R`: it is executed
///   without the daemon; `E`: it is not executed. Both have a sentence.
/// - `P`, with a pidfd: the command is in the group. The answer is `M` with cgroup.freeze and cgroup.kill.
/// - `again`: a command that the previous daemon had. The answer is `M`.
/// - `X` with a number: how the command ended, as wait(2) encodes it. `W`: a signal has arrived, so the command is to be thawed.
/// - `t`: the terminal is returned, as `T` asked for. Before, `F` has said that the command is frozen.
/// - `L`: the relay can start the command again. After `X` it expects `U`, if the daemon has ended the command for its memory while it
///   slept, or the end of the connection.
/// - `B`: a request has no answer; `I`: there is none any more.
final class RelayServer {
    private unowned let service: ControlService
    private let answers: AnswerTable
    private var context: DaemonContext { service.context }
    private var socket: SharedDescriptor?
    private var source: EventSource?
    private var file: FileStamp?
    private var timer: Systemd.Timer?
    /// Those that have no run yet, by their numbers.
    private var waiting: [Int: Relay] = [:]
    /// Those whose launch the core decides on.
    private var launching: [AppID: Relay] = [:]
    /// Those whose command has ended and may be started again.
    private var ended: [RunID: Relay] = [:]
    private var last = 0

    /// The name of the template that the commands are instances of. It has no file.
    static let template = "run"
    /// The most commands at a time. Each has a connection, and a process of the caller that waits.
    static let maximumCommands = 1024
    private static let pauseTime = Duration.milliseconds(100)
    /// The most relays that have connected and have no run yet.
    private static let maximumWaiting = 256

    init(service: ControlService, answers: AnswerTable) {
        self.service = service
        self.answers = answers
        service.context.relays = self
    }

    /// Without the socket commands are executed directly.
    func listen() {
        source = nil
        do {
            let path = context.folders.relaySocket
            // The previous listener is gone with its program. Relays look for the next one.
            _ = try? removeFile(at: path)
            let socket = SharedDescriptor(try UnixSocket.listen(at: path, mode: 0o600, kind: .messages))
            self.socket = socket
            file = FileStamp(path)
            source = try service.loop.addDescriptor(socket, events: .readable, kind: .controlListener) {
                [weak self] _ in TurnResult(self?.accept() ?? true)
            }
        } catch {
            context.journal.logWarning("greenroomctl run is not served: \(error)")
        }
    }

    /// Removes the socket at the end of a daemon that has ended all commands. Relays of commands that run look for the next daemon there.
    func close() {
        guard socket != nil, isInPlace else { return }
        (source, socket) = (nil, nil)
        _ = try? removeFile(at: context.folders.relaySocket)
    }

    /// Whether relays that connect to the path reach this daemon.
    var isInPlace: Bool { socket == nil || file != nil && FileStamp(context.folders.relaySocket) == file }

    private func accept() -> Bool {
        guard let socket else { return true }
        switch UnixSocket.accept(on: socket.descriptor) {
        case .none: return false
        case .outOfDescriptors:
            pause()
            return true
        case .connection(let connection):
            guard waiting.count < Self.maximumWaiting, let peer = try? PeerCredentials(ofSocket: connection) else {
                return true
            }
            last += 1
            let number = last
            let relay = Relay(connection, peer, loop: service.loop)
            waiting[number] = relay
            relay.begin { [weak self] message in
                self?.waiting[number] = nil
                if let message { self?.introduced(relay, message) }
            }
            return true
        }
    }

    /// Until descriptors are free again. Relays that wait too long execute their commands directly.
    private func pause() {
        source?.isEnabled = false
        timer = try? service.loop.makeTimer(kind: .controlTimer) { [weak self] _ in self?.source?.isEnabled = true }
        timer?.arm(at: service.loop.now() + Self.pauseTime)
    }

    // MARK: Introduction

    private func introduced(_ relay: Relay, _ message: [UInt8]) {
        let words = message.split(separator: 0, omittingEmptySubsequences: false).dropLast()
            .map { String(decoding: $0, as: UTF8.self) }
        switch words.first {
        case "run" where words.count >= 4:
            let command = RunSettings(command: words[3].printable(upTo: 256), assignments: Array(words[4...]))
            relay.hasTerminal = words[1] == "terminal"
            begin(relay, name: words[2], command)
        case "again" where words.count == 2: resume(relay, words[1])
        default: relay.refuse("greenroomd is of another version")
        }
    }

    /// Creates the app of a command, and requests its launch: `take` follows.
    private func begin(_ relay: Relay, name: String, _ command: RunSettings) {
        guard context.containment.mode.root != nil else {
            return relay.refuse("greenroomd has no control groups here, and cannot freeze it")
        }
        guard relay.peer.pid > 0, relay.startTime > 0 else {
            return relay.refuse("its process is not visible to greenroomd")
        }
        guard !service.library.hasTemplate(Self.template) else {
            return relay.refuse("there is a template '\(Self.template)@', whose instances would have its name")
        }
        let count = service.library.transient.values.count { $0.command != nil }
        guard count < Self.maximumCommands, let id = freeID(name.isEmpty ? command.command : name) else {
            return relay.refuse("greenroomd has \(count) commands already; the limit is \(Self.maximumCommands)")
        }
        launching[id] = relay
        let request = answers.expect { [weak self] in self?.answered(id, $0) }
        do throws(InstanceProblem) {
            try context.instances.create(id, command: command) {
                context.events.send(
                    .requested(request, id, .launch(.background, reason: .user, url: nil, environment: [])))
            }
        } catch {
            launching[id] = nil
            _ = answers.withdraw(request)
            switch error {
            case .error(let sentence): relay.fail(sentence)
            case .tooMany(let limit): relay.refuse("there are \(limit) apps, which is the limit")
            case .noTemplate: relay.refuse("greenroomd is starting")
            }
        }
    }

    /// The first of `run@NAME`, `run@NAME-2`, … that is free.
    private func freeID(_ name: String) -> AppID? {
        let bytes = name.utf8.prefix(100).map { byte in
            let isKept = AppID("\(Self.template)@x" + String(decoding: [byte], as: UTF8.self)) != nil
            return isKept ? byte : UInt8(ascii: "_")
        }
        let base = bytes.isEmpty ? "command" : String(decoding: bytes, as: UTF8.self)
        for number in 1...Self.maximumCommands + 1 {
            guard let id = AppID("\(Self.template)@\(base)" + (number == 1 ? "" : "-\(number)")) else { return nil }
            if service.library.isFree(id), launching[id] == nil, service.driver.core.state(of: id) == nil,
                !context.instances.isRegistering(id)
            {
                return id
            }
        }
        return nil
    }

    private func answered(_ id: AppID, _ answer: Answer) {
        // The launch has taken it, as a rule.
        guard let relay = launching.removeValue(forKey: id) else { return }
        switch answer {
        case .refused(.shuttingDown): relay.refuse("greenroomd is stopping")
        case .ended(let receipt): relay.refuse(receipt.explanation)
        case .refused, .done, .superseded, .simulated: relay.refuse("greenroomd did not launch it")
        }
    }

    /// The relay whose command is launched now.
    func take(_ app: AppID) -> Relay? { launching.removeValue(forKey: app) }

    /// The relay of a run that the previous daemon had taken over.
    private func resume(_ relay: Relay, _ number: String) {
        guard let id = UInt64(number).map(RunID.init), let link = context.runs[id]?.relay,
            link.record.pid == relay.peer.pid, link.record.startTime == relay.startTime
        else { return relay.close() }
        link.connect(relay)
    }

    func awaitReceipt(of run: RunID, _ relay: Relay) {
        if ended.count < Self.maximumCommands { ended[run] = relay }
    }

    /// The receipt says why the command has ended.
    func recorded(_ receipt: Receipt) {
        context.runs[receipt.run]?.relay?.recorded(receipt)
        ended.removeValue(forKey: receipt.run)?.end(after: receipt)
    }

    /// Terminates a command whose caller is gone.
    func terminate(_ app: AppID) {
        context.events.send(.requested(answers.expect { _ in }, app, .terminate))
    }
}
