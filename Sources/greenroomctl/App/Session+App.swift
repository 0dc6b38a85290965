import Control
import Glibc
import JSON
import LifecycleCore
import Linux
import Manifest
import Posix
import Systemd

/// `app`: what the processes of an app say to greenroomd, and what it says to them.
extension Session {
    /// The exit status if `--timeout` is over, as of timeout(1).
    private static let timedOut: Int32 = 124
    /// The exit status of `restore` without a state.
    private static let noState: Int32 = 3
    /// The largest restoration state in bytes.
    private static let maximumState = 1 << 20
    /// The largest snapshot in bytes.
    private static let maximumSnapshot = 8 << 20

    func app() throws(Failure) -> Int32 {
        guard let command = operands.first.flatMap(AppCommand.init(rawValue:)) else { throw Failure("app: no command") }
        let client: AppClient
        do throws(Failure) {
            client = try AppClient(environment)
        } catch {
            var failure = error
            if command == .task { failure.status = TaskRun.failed }
            throw failure
        }
        let rest = Array(operands.dropFirst())
        switch command {
        case .events: return try printEvents(client, rest)
        case .wait: return try waitForEvent(client, rest)
        case .answer: try answer(client, UInt64(rest[0]) ?? 0)
        case .task:
            let serial = invocation.options[.answer].flatMap { UInt64($0) }
            return try TaskRun(client, name: rest[0], Array(rest.dropFirst()), answering: serial, screen).run()
        case .remaining: try remaining(client)
        case .save:
            let state = try Variant.descriptor(sealed(rest[0], command))
            if rest.count > 1 {
                try client.call("SaveSceneState", [.string(rest[1]), state])
            } else {
                try client.call("SaveState", [state])
            }
        case .snapshot:
            let arguments: [Variant] = [
                .string(rest.count > 1 ? rest[1] : MediaType.png), .descriptor(try sealed(rest[0], command)),
            ]
            if rest.count > 2 {
                try client.call("SaveSceneSnapshot", [.string(rest[2])] + arguments)
            } else {
                try client.call("SaveSnapshotAs", arguments)
            }
        case .restore: return try restore(client, rest.first ?? "-", scene: rest.count > 1 ? rest[1] : nil)
        case .status: try client.call("SetStatus", [.string(rest[0])])
        case .summary: try client.call("SetStateSummary", [.string(rest[0])])
        case .progress:
            let numbers = rest[1...2].map { Variant.uint64(UInt64($0) ?? 0) }
            try client.call("SetTaskProgress", [.string(rest[0])] + numbers + [.string(rest.count > 3 ? rest[3] : "")])
        case .mode: try client.call(rest[1] == "yes" ? "BeginMode" : "EndMode", [.string(rest[0])])
        case .scene:
            let isEnd = rest[1] == "no"
            let arguments: [Variant] = [.string(rest[0])] + (isEnd ? [] : [.string(rest[1])])
            try client.call(isEnd ? "EndScene" : "BeginScene", arguments)
        case .idle: try hint(isIdle: rest[0] == "yes")
        case .launch: try launch(client, rest.first)
        }
        return 0
    }

    // MARK: Events

    /// Prints events until standard output is closed. Each is printed once, whatever becomes of the daemon.
    private func printEvents(_ client: AppClient, _ kinds: [String]) throws(Failure) -> Int32 {
        var position = try begin(client, kinds, once: false)
        while true {
            switch next(client, until: nil) {
            case .event(let event):
                // A daemon may send an event again.
                guard event.serial > position else { continue }
                guard try isShown(event) else { return 0 }
                position = event.serial
            case .over: return 0
            case .failed(let error):
                guard error.isOfLostConnection else { throw AppClient.failure(error) }
                while try !client.reconnectIfListening() { if isOutputClosed(after: 200) { return 0 } }
                _ = try client.attach(handled(kinds), after: position)
            }
        }
    }

    private enum Next {
        case event(AppEvent)
        /// The time is over, or standard output is closed.
        case over
        case failed(BusError)
    }

    private func next(_ client: AppClient, until deadline: Duration?) -> Next {
        do throws(BusError) {
            while true {
                while let signal = try client.bus.nextSignal(until: EventLoop.now()) {
                    if let event = AppEvent(signal) { return .event(event) }
                }
                if let deadline, EventLoop.now() >= deadline { return .over }
                let found = try client.bus.waitForInput(or: [(STDOUT_FILENO, 0)], until: deadline)
                if found[0] & Int16(POLLERR | POLLHUP | POLLNVAL) != 0 { return .over }
            }
        } catch {
            return .failed(error)
        }
    }

    private func isOutputClosed(after milliseconds: Int32) -> Bool {
        var polled = pollfd(fd: STDOUT_FILENO, events: 0, revents: 0)
        return poll(&polled, 1, milliseconds) > 0
    }

    /// Prints an event.
    /// - Returns: false if the reader has ended, which is how a script ends.
    private func isShown(_ event: AppEvent) throws(Failure) -> Bool {
        do throws(Failure) {
            try show((wantsJSON ? event.json.serialized(pretty: false) : event.line) + "\n")
            return true
        } catch {
            guard error.sentence.isEmpty else { throw error }
            return false
        }
    }

    private func handled(_ kinds: [String]) -> [String] { kinds.isEmpty ? AppEvent.kinds : kinds }

    /// Takes part. An app that waits for its events has been launched.
    /// - Returns: the serial after which events follow.
    private func begin(_ client: AppClient, _ kinds: [String], once: Bool) throws(Failure) -> UInt64 {
        let after = invocation.options[.after].flatMap { UInt64($0) } ?? 0
        let launch = try client.attach(handled(kinds), after: after, once: once)
        if launch["state"]?.stringValue == "launching" { try client.call("Ready") }
        return launch["serial"]?.uintValue ?? after
    }

    private func waitForEvent(_ client: AppClient, _ kinds: [String]) throws(Failure) -> Int32 {
        let time = invocation.options[.timeout].flatMap { parseTimeSpan($0) } ?? nil
        let deadline = time.map { EventLoop.now() + $0 }
        while true {
            _ = try begin(client, kinds, once: true)
            switch next(client, until: deadline) {
            case .event(let event): return try isShown(event) ? 0 : 1
            case .over: return Self.timedOut
            case .failed(let error):
                guard error.isOfLostConnection else { throw AppClient.failure(error) }
                while try !client.reconnectIfListening() {
                    if let deadline, EventLoop.now() >= deadline { return Self.timedOut }
                    if isOutputClosed(after: 200) { return 1 }
                }
            }
        }
    }

    private func answer(_ client: AppClient, _ serial: UInt64) throws(Failure) {
        let result = invocation.options[.result] ?? WakeResult.newData.rawValue
        try client.call(
            "Answer", [.uint64(serial), .dictionary([("result", .string(result))])], mayBeOver: true)
    }

    // MARK: Time, state and status

    private func remaining(_ client: AppClient) throws(Failure) {
        let microseconds = try client.call("RemainingTime").first?.uintValue ?? 0
        guard !wantsJSON else {
            let seconds = microseconds == .max ? JSONValue.null : .number(Double(microseconds) / 1e6)
            return try show(.object([("remainingSeconds", seconds)]))
        }
        try show(microseconds == .max ? "infinity\n" : "\(microseconds / 1_000_000)\n")
    }

    /// A sealed memfd with the contents of a file.
    private func sealed(_ name: String, _ command: AppCommand) throws(Failure) -> SharedDescriptor {
        let isState = command == .save
        let limit = isState ? Self.maximumState : Self.maximumSnapshot
        let bytes: [UInt8]
        do throws(SystemError) {
            let file =
                try name == "-" ? Descriptor.duplicate(of: STDIN_FILENO) : Descriptor.open(path(name), O_RDONLY)
            bytes = try file.readAll(limit: limit, path: nil)
        } catch {
            if error.errno == EFBIG {
                let what = isState ? "the state" : "the snapshot"
                throw Failure("app \(command.rawValue): \(what) has more than \(limit >> 20) MiB, and is not kept")
            }
            throw Failure("app \(command.rawValue): cannot read \(escaped(name)): \(error)")
        }
        do throws(SystemError) {
            return SharedDescriptor(try MemoryFile.sealed(isState ? "greenroom-state" : "greenroom-snapshot", bytes))
        } catch {
            throw Failure("app \(command.rawValue): \(error)")
        }
    }

    private func path(_ name: String) -> String { environment.absolutePath(name) }

    private func restore(_ client: AppClient, _ name: String, scene: String?) throws(Failure) -> Int32 {
        guard let file = try client.state(of: scene) else {
            report(Failure("The \(scene == nil ? "app" : "scene") has no restoration state."))
            return Self.noState
        }
        let bytes: [UInt8]?
        do throws(SystemError) {
            bytes = try MemoryFile.contents(file.descriptor, limit: Self.maximumState)
            if name != "-", let bytes { try replaceFile(at: path(name), with: bytes, mode: 0o600) }
        } catch {
            throw Failure("app restore: \(error)")
        }
        guard let bytes else { throw Failure("app restore: the state has more than 1 MiB") }
        if name == "-" { try write(bytes[...], to: STDOUT_FILENO) }
        return 0
    }

    /// The hint of a connection ends with it, so this is a message on the notify socket.
    private func hint(isIdle: Bool) throws(Failure) {
        guard let path = environment.variable("NOTIFY_SOCKET"), !path.isEmpty else {
            throw Failure("app idle: NOTIFY_SOCKET is not set")
        }
        do throws(SystemError) {
            var sender = try DatagramSender(to: path)
            let problem = sender.send(Array("X_GREENROOM_IDLE=\(isIdle ? 1 : 0)".utf8))
            guard problem == 0 else { throw SystemError(call: "sendto", errno: problem, path: path) }
        } catch {
            throw Failure("app idle: \(error)")
        }
    }

    // MARK: The launch

    private func launch(_ client: AppClient, _ key: String?) throws(Failure) {
        let launch = try AppLaunch(client.attach([], after: 0))
        if wantsJSON { return try show(launch.json(key)) }
        try show(key.map { launch.text($0) + "\n" } ?? launch.lines)
    }
}
