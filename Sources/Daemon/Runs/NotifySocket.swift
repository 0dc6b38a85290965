import LifecycleCore
import Linux
import LoopPolicy
import Posix
import Systemd

/// Receives what a notify socket reads.
protocol NotifySocketDelegate: AnyObject {
    /// One datagram of the app. `sender`: the pid of the process that sent it.
    func received(_ messages: [NotifyMessage], _ descriptors: inout ReceivedDescriptors, from sender: Int32)
    /// Why messages of a process are ignored, as the end of a sentence; `nil`: they are read (`NotifyAccess=`).
    func reasonToIgnore(sender: Int32) -> String?
    /// There is a warning about the app's messages or its inbox, whether it is logged or not.
    func warned(_ sentence: String)
    /// Logs a warning. In a minute there are at most `NotifyWarningLimit.perMinute` calls, one more with the number of
    /// omitted warnings, and one about messages that are ignored because of their sender. A socket file that cannot be
    /// removed is another call.
    func logWarning(_ sentence: String)
}

/// What the notify sockets of all runs share.
final class NotifySockets {
    let loop: EventLoop
    let logbook: Logbook
    private let folder: String

    /// - Parameter folder: of their files.
    init(loop: EventLoop, logbook: Logbook, folder: String) {
        self.loop = loop
        self.logbook = logbook
        self.folder = folder
    }

    func path(of run: RunID) -> String { "\(folder)/\(run)" }
}

/// The notify socket of one run (`NOTIFY_SOCKET`). Other processes of the app's user can send to it too, so each datagram is
/// checked by its sender's credentials, which the kernel vouches for. An app can neither delay other apps by what it sends nor leave a descriptor open in the daemon.
final class NotifySocket {
    private let sockets: NotifySockets
    private let run: RunID
    /// What the app may use of the loop's time.
    let share = AppShare()
    private var socket: DatagramSocket
    private var source: EventSource?
    /// Ends a pause after a flood.
    private var pause: Systemd.Timer?
    private var window = Window()
    /// Made for the first warning.
    private var warnings: Warnings?
    weak var delegate: (any NotifySocketDelegate)?

    /// The most messages that are read in a second. More is a flood: the rest waits in the socket (it holds
    /// `net.unix.max_dgram_qlen` datagrams, then the app's send(2) blocks). A datagram counts once for each line in it,
    /// because each line can cause an entry in the journal and a D-Bus signal, and for each `bytesPerLine`.
    static let messagesPerSecond = 1000
    /// Bytes of a datagram that count as one message more: they are checked and copied whatever they contain.
    private static let bytesPerLine = 1024
    /// Bytes that are written to a file for the app, and that count as one message. One snapshot of the largest size
    /// counts as half of the messages of a second.
    static let bytesPerMessage = 16 << 10
    /// The most descriptors of the app that are still to be closed. With more than that its messages wait: one datagram
    /// brings up to 253 descriptors (SCM_MAX_FD, unix(7)).
    static let maximumClosing = 256
    /// The most datagrams that are read before other sources of the loop are served.
    private static let datagramsPerTurn = 64
    /// How often messages of other processes are logged.
    private static let ignoredInterval = Duration.seconds(60)

    private final class Warnings {
        var limit = NotifyWarningLimit()
        /// Keys of systemd's that have no effect, of which the run was warned. A program sends them each time.
        var keys: Set<String> = []
        /// Logs how many warnings were not logged.
        var omission: Systemd.Timer?
        /// When the next message of another process is logged.
        var nextIgnored = Duration.zero
    }

    /// The counts of the current second.
    private struct Window {
        var end = Duration.zero
        var messages = 0
    }

    /// - Parameters:
    ///   - owner: the app's user; `nil`: the daemon's.
    ///   - recovered: the socket of the previous daemon; `nil`: a new one is bound in the folder.
    ///   - isReading: if false, messages wait in the socket until `beginReading` or `drain`.
    /// - Throws: `SystemError` if it cannot be bound or watched.
    init(
        _ run: RunID, in sockets: NotifySockets, owner: Owner?, recovered: consuming Descriptor? = nil,
        isReading: Bool = true
    ) throws {
        self.run = run
        self.sockets = sockets
        if let recovered {
            socket = DatagramSocket(adopting: recovered)
        } else {
            socket = try DatagramSocket(at: sockets.path(of: run), mode: 0o600, owner: owner)
        }
        source = try addSource()
        source?.isEnabled = isReading
        share.onFlood = { [unowned self] in
            warn(
                "what the app sends takes more than a fifth of the daemon's time; its messages, connections and input wait"
            )
        }
    }

    var path: String { sockets.path(of: run) }
    private var loop: EventLoop { sockets.loop }

    private func addSource() throws -> EventSource {
        try loop.addDescriptor(socket.descriptor, events: .readable, kind: .notifySocket, share: share) {
            [unowned self] _ in TurnResult(read())
        }
    }

    /// From now on messages are read when they arrive.
    func beginReading() { source?.isEnabled = true }

    /// The source goes before the descriptor is closed: a copy of the socket in systemd's store would keep it in
    /// epoll(7). Connections of the app may have its share for longer.
    deinit {
        source = nil
        share.onFlood = nil
    }

    /// Makes the socket again: its file was removed. Messages that arrived before are read.
    func bindAgain(owner: Owner?) throws {
        drain()
        let new = try DatagramSocket(at: path, mode: 0o600, owner: owner, closer: closer)
        source = nil
        socket = new
        source = try addSource()
    }

    /// For the descriptor store and for reexec.
    var descriptor: SharedDescriptor { socket.descriptor }

    /// Closes descriptors of this app, on a thread that belongs to this socket.
    var closer: DescriptorCloser { socket.closer }

    // MARK: Reading

    /// - Returns: whether anything was read, or waits now.
    private func read() -> Bool {
        for count in 0..<Self.datagramsPerTurn {
            if isFlooded() || isClosing {
                holdBack()
                return true
            }
            guard readOne() else { return count > 0 }
            if loop.isTurnOver { break }
        }
        return true
    }

    /// Reads what was sent before the app ended or was frozen: at most the messages of one second.
    func drain() {
        let end = window.messages + Self.messagesPerSecond
        while window.messages < end, !isClosing, readOne() {}
    }

    /// Counts bytes that were written to a file for the app.
    func charge(bytes: Int) { window.messages += bytes / Self.bytesPerMessage }

    private var isClosing: Bool { closer.pending > Self.maximumClosing }

    /// Reads one datagram.
    /// - Returns: whether there was one.
    private func readOne() -> Bool {
        // If the daemon dies before `endReading`, the datagram is lost; the logbook then shows it.
        sockets.logbook.beginReading(of: run)
        defer { sockets.logbook.endReading() }
        do {
            guard var datagram = try socket.receive() else { return false }
            // Each descriptor is looked at, and stored or closed.
            window.messages += 1 + datagram.descriptors.count
            guard !datagram.isTooLarge else {
                window.messages += NotifyDatagram.maximumSize / Self.bytesPerLine
                warn("a notify message of more than \(NotifyDatagram.maximumSize) bytes was ignored")
                return true
            }
            let sender = datagram.sender.pid
            if let reason = delegate?.reasonToIgnore(sender: sender) {
                warnIgnored(sender, reason)
                return true
            }
            let parsed = NotifyDatagram(datagram.bytes)
            window.messages += max(0, parsed.lines - 1) + datagram.bytes.count / Self.bytesPerLine
            for problem in parsed.warnings { warn(problem) }
            for key in parsed.ignoredKeys where madeWarnings.keys.insert(key).inserted {
                warn("\(key)= was ignored: \(NotifyDatagram.whyIgnored(key) ?? "")")
            }
            for key in parsed.unknownKeys { if let problem = notifyKeyProblem(key) { warn(problem) } }
            delegate?.received(parsed.messages, &datagram.descriptors, from: sender)
        } catch {
            warn("\(error)")
            return false
        }
        return true
    }

    /// Logs a warning that the app can cause at any time, unless there were too many in this minute: then only their number
    /// is logged.
    func warn(_ sentence: String) {
        delegate?.warned(sentence)
        let now = loop.now()
        let warnings = madeWarnings
        if warnings.limit.isOver(at: now) { logOmitted() }
        guard !warnings.limit.admits(at: now) else {
            delegate?.logWarning(sentence)
            return
        }
        if warnings.omission == nil {
            warnings.omission = try? loop.makeTimer(kind: .appTimer) { [weak self] _ in self?.logOmitted() }
        }
        if warnings.omission?.isArmed == false { warnings.omission?.arm(at: warnings.limit.end) }
    }

    private var madeWarnings: Warnings {
        let made = warnings ?? Warnings()
        warnings = made
        return made
    }

    private func logOmitted() {
        guard let omitted = warnings?.limit.takeOmitted() else { return }
        if omitted > 0 {
            delegate?.logWarning("\(omitted) more warnings about its notify messages or its inbox were not logged")
        }
    }

    private func warnIgnored(_ sender: Int32, _ reason: String) {
        guard loop.now() >= madeWarnings.nextIgnored else { return }
        madeWarnings.nextIgnored = loop.now() + Self.ignoredInterval
        // pid 0: the process is in another PID namespace, or has no credentials.
        let name = sender > 0 ? "process \(sender)" : "a process that is not visible here"
        delegate?.logWarning("a notify message of \(name) was ignored: \(reason)")
    }

    // MARK: Floods

    private func isFlooded() -> Bool {
        let now = loop.now()
        // What was read above the limit counts in the next second: one datagram may cause much work.
        if now >= window.end {
            window = Window(end: now + .seconds(1), messages: max(0, window.messages - Self.messagesPerSecond))
        }
        return window.messages >= Self.messagesPerSecond
    }

    /// Stops reading until the current second is over.
    private func holdBack() {
        warn(
            isClosing
                ? "the app sent \(closer.pending) descriptors that cannot be closed yet; its messages wait until then"
                : "the app sent \(Self.messagesPerSecond) notify messages within 1s; the rest waits")
        try? source?.setEvents([])
        if pause == nil {
            pause = try? loop.makeTimer(kind: .appTimer) { [weak self] _ in try? self?.source?.setEvents(.readable) }
        }
        pause?.arm(at: window.end)
    }

    /// Reads the rest, stops reading and removes the socket's file.
    func close() {
        source = nil
        pause = nil
        defer {
            warnings?.omission = nil
            logOmitted()
        }
        // Unread datagrams may hold descriptors. Those that remain are closed with the socket, by its closer.
        drain()
        do { _ = try removeFile(at: path) } catch { delegate?.logWarning("\(error)") }
    }
}
