import LifecycleCore
import Linux
import Posix
import Systemd

/// Receives what a notify socket reads.
protocol NotifySocketDelegate: AnyObject {
    /// One datagram of the app. `sender`: the pid of the process that sent it.
    func received(_ messages: [NotifyMessage], _ descriptors: inout ReceivedDescriptors, from sender: Int32)
    /// The app sent something invalid. The number of calls in a second is limited.
    func logWarning(_ sentence: String)
}

/// The notify socket of one run (`NOTIFY_SOCKET`). Everything received here comes from a process of this run's app. An
/// app can neither delay other apps by what it sends nor leave a descriptor open in the daemon.
final class NotifySocket {
    let path: String
    private let run: RunID
    private let loop: EventLoop
    private let logbook: Logbook
    private let socket: DatagramSocket
    private var source: EventSource?
    /// Ends a pause after a flood.
    private var pause: Systemd.Timer?
    private var window = Window()
    weak var delegate: (any NotifySocketDelegate)?

    /// The most messages that are read in a second. More is a flood: the rest waits in the socket (it holds
    /// `net.unix.max_dgram_qlen` datagrams, then the app's send(2) blocks). A datagram counts once for each message in
    /// it, because each message can cause an entry in the journal and a D-Bus signal.
    static let messagesPerSecond = 1000
    /// Bytes that are written to a file for the app, and that count as one message. One snapshot of the largest size
    /// counts as half of the messages of a second.
    private static let bytesPerMessage = 16 << 10
    /// The most descriptors of the app that are still to be closed. With more than that its messages wait: one datagram
    /// brings up to 253 descriptors (SCM_MAX_FD, unix(7)).
    private static let maximumClosing = 256
    /// The most datagrams that are read before other sources of the loop are served.
    private static let datagramsPerTurn = 64
    /// The most warnings about one app in a second.
    private static let warningsPerSecond = 5

    /// The counts of the current second.
    private struct Window {
        var end = Duration.zero
        var messages = 0
        var warnings = 0
    }

    /// - Parameters:
    ///   - owner: the app's user; `nil`: the daemon's.
    ///   - recovered: the socket of the previous daemon; `nil`: a new one is bound at `path`.
    /// - Throws: `SystemError` if it cannot be bound or watched.
    init(
        loop: EventLoop, run: RunID, path: String, owner: Owner?, recovered: consuming Descriptor? = nil,
        logbook: Logbook
    ) throws {
        self.loop = loop
        self.run = run
        self.path = path
        self.logbook = logbook
        if let recovered {
            socket = DatagramSocket(adopting: recovered, path: path)
        } else {
            socket = try DatagramSocket(at: path, mode: 0o600, owner: owner)
        }
        source = try loop.addDescriptor(socket.descriptor, events: .readable) { [weak self] _ in self?.read() }
    }

    /// The source goes before the descriptor is closed: a copy of the socket in systemd's store would keep it in
    /// epoll(7).
    deinit { source = nil }

    /// For the descriptor store and for reexec.
    var descriptor: SharedDescriptor { socket.descriptor }

    /// Closes descriptors of this app, on a thread that belongs to this socket.
    var closer: DescriptorCloser { socket.closer }

    // MARK: Reading

    private func read() {
        for _ in 0..<Self.datagramsPerTurn {
            if isFlooded() || isClosing { return holdBack() }
            guard readOne() else { return }
        }
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
        logbook.beginReading(of: run)
        defer { logbook.endReading() }
        do {
            guard var datagram = try socket.receive() else { return false }
            window.messages += 1
            guard !datagram.isTooLarge else {
                warn("a notify message of more than \(NotifyDatagram.maximumSize) bytes was ignored")
                return true
            }
            let parsed = NotifyDatagram(datagram.bytes)
            for problem in parsed.warnings { warn(problem) }
            window.messages += max(0, parsed.messages.count - 1)
            let sender = datagram.sender.pid
            delegate?.received(parsed.messages, &datagram.descriptors, from: sender)
        } catch {
            warn("\(error)")
            return false
        }
        return true
    }

    /// Logs a warning about what the app sent, unless there were too many in this second.
    func warn(_ sentence: String) {
        window.warnings += 1
        if window.warnings <= Self.warningsPerSecond { delegate?.logWarning(sentence) }
    }

    // MARK: Floods

    private func isFlooded() -> Bool {
        let now = loop.now()
        if now >= window.end { window = Window(end: now + .seconds(1)) }
        return window.messages >= Self.messagesPerSecond
    }

    /// Stops reading until the current second is over.
    private func holdBack() {
        warn(
            isClosing
                ? "sent \(closer.pending) descriptors that cannot be closed yet; its messages wait until they are"
                : "sent \(Self.messagesPerSecond) notify messages within 1s; the rest waits")
        try? source?.setEvents([])
        if pause == nil {
            pause = try? loop.makeTimer { [weak self] _ in try? self?.source?.setEvents(.readable) }
        }
        pause?.arm(at: window.end)
    }

    /// Reads the rest, stops reading and removes the socket's file.
    func close() {
        source = nil
        pause = nil
        // Unread datagrams may hold descriptors. Those that remain are closed with the socket, on this thread.
        drain()
        do { _ = try removeFile(at: path) } catch { delegate?.logWarning("\(error)") }
    }
}
