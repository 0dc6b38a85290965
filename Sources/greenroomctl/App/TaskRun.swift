import Control
import Glibc
import Systemd

/// `app task`: runs a command in a background task of the app.
final class TaskRun {
    /// The exit status if the task or the command cannot be started, as of env(1) and timeout(1).
    static let failed: Int32 = 125
    private static let notExecutable: Int32 = 126
    private static let notFound: Int32 = 127
    /// How often a lost connection is tried again, in milliseconds.
    private static let retry: Int32 = 200

    private let client: AppClient
    private let name: String
    private let command: [String]
    /// The event that is answered once the task is open, or refused.
    private let answered: UInt64?
    private let screen: Screen
    /// Names the task, also to the next daemon.
    private let token = "greenroomctl-\(getpid())-\(EventLoop.now().components.attoseconds)"
    private var position: UInt64 = 0
    private var child: pid_t = 0
    /// The exit status of the command, once it has ended.
    private var status: Int32?

    init(
        _ client: AppClient, name: String, _ command: [String], answering serial: UInt64?, _ screen: Screen
    ) {
        self.client = client
        self.name = name
        self.command = command
        answered = serial
        self.screen = screen
    }

    /// - Returns: the exit status of the command; 128 and the number of the signal that ended it.
    func run() throws(Failure) -> Int32 {
        do throws(Failure) {
            do throws(Failure) { try begin() } catch {
                // Without an answer the app would be killed.
                try answer()
                throw error
            }
            try answer()
        } catch {
            var failure = error
            failure.status = Self.failed
            throw failure
        }
        let problem = start()
        if problem == 0 {
            var isConnected = true
            while status == nil { isConnected = serve(isConnected) }
            if !isConnected, !waitForDaemon() { return status ?? Self.failed }
        }
        // The app may be ending: then the task ends with it.
        _ = try? client.call("EndTask", [.string(token)], mayBeOver: true)
        if problem != 0 {
            let reason = String(cString: strerror(problem))
            throw Failure(
                "app task: cannot run '\(escaped(command[0]))': \(reason)",
                status: Self.status(ofProblem: problem))
        }
        return status ?? Self.failed
    }

    private static func status(ofProblem errno: Int32) -> Int32 {
        switch errno {
        case ENOENT: notFound
        case EACCES, ENOEXEC: notExecutable
        default: failed
        }
    }

    /// The command has ended: waits for a daemon that ends its task.
    /// - Returns: false after a signal, because the daemon may stay away.
    private func waitForDaemon() -> Bool {
        while (try? client.reconnectIfListening()) != true {
            var polled = pollfd(fd: Signals.output, events: Int16(POLLIN), revents: 0)
            if poll(&polled, 1, Self.retry) > 0, Signals.take().contains(where: { $0 != SIGCHLD }) { return false }
        }
        return true
    }

    /// Takes part for the end of the background time, and begins the task. A task that is begun again is the same one.
    private func begin() throws(Failure) {
        position = try client.attach([AppEvent.tasksExpiring], after: position)["serial"]?.uintValue ?? position
        try client.call("BeginTask", [.string(name), .string(token)])
    }

    private func answer() throws(Failure) {
        guard let answered else { return }
        try client.call("Answer", [.uint64(answered), .dictionary([])], mayBeOver: true)
    }

    /// - Returns: 0, or a positive errno.
    private func start() -> Int32 {
        let words = command.map { strdup($0) } + [nil]
        defer { for word in words { free(word) } }
        guard Signals.begin() else { return errno }
        return posix_spawnp(&child, command[0], nil, nil, words, environ)
    }

    /// Waits for the end of the command, a signal, or an event.
    /// - Returns: whether the connection is open.
    private func serve(_ isConnected: Bool) -> Bool {
        guard isConnected else {
            var polled = pollfd(fd: Signals.output, events: Int16(POLLIN), revents: 0)
            if poll(&polled, 1, Self.retry) > 0 { takeSignals() }
            guard status == nil, (try? client.reconnectIfListening()) ?? false else { return false }
            return (try? begin()) != nil
        }
        do throws(BusError) {
            while let signal = try client.bus.nextSignal(until: EventLoop.now()) {
                if let event = AppEvent(signal) { take(event) }
            }
            let found = try client.bus.waitForInput(or: [(Signals.output, Int16(POLLIN))], until: nil)
            if found[0] != 0 { takeSignals() }
            return true
        } catch {
            return false
        }
    }

    private func take(_ event: AppEvent) {
        position = event.serial
        guard event.kind == AppEvent.tasksExpiring, case .array(_, let names)? = event.details["names"],
            names.contains(where: { $0.stringValue == name })
        else { return }
        let sentence =
            "The background time ends: sending SIGTERM to '\(escaped(command[0]))' (task '\(escaped(name))')."
        printError(Failure(sentence), asJSON: false, width: screen.errorWidth)
        kill(child, SIGTERM)
    }

    private func takeSignals() {
        for signal in Signals.take() {
            // Ctrl-C goes to the command as well.
            if signal != SIGCHLD, signal != SIGINT { kill(child, signal) }
        }
        var ended: Int32 = 0
        guard waitpid(child, &ended, WNOHANG) == child else { return }
        let signal = ended & 0x7F
        status = signal == 0 ? (ended >> 8) & 0xFF : 128 + signal
    }
}

/// The signals of the process, as bytes in a pipe.
private enum Signals {
    /// Set before the handlers, which may only read it (signal-safety(7)).
    nonisolated(unsafe) private static var input: Int32 = -1
    nonisolated(unsafe) private(set) static var output: Int32 = -1

    /// - Returns: false, and errno, if there are no descriptors left.
    static func begin() -> Bool {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { return false }
        for end in ends {
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
        }
        (output, input) = (ends[0], ends[1])
        for number in [SIGCHLD, SIGTERM, SIGHUP, SIGINT] {
            signal(number) { number in
                let error = errno
                var byte = UInt8(truncatingIfNeeded: number)
                _ = Glibc.write(Signals.input, &byte, 1)
                errno = error
            }
        }
        return true
    }

    static func take() -> [Int32] {
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = read(output, &bytes, bytes.count)
        return bytes.prefix(max(0, count)).map { Int32($0) }
    }
}
