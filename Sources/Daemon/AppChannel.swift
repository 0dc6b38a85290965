import LifecycleCore
import Linux
import Posix
import Systemd

/// An app's own notify socket: what comes here is this app's, whoever of its processes wrote it (law 5). Whatever the app
/// writes, it can neither hold up the others nor leave a descriptor behind.
final class AppChannel {
    let path: String
    private let loop: EventLoop
    private let socket: DatagramSocket
    private var source: EventSource?
    private var pause: Systemd.Timer?
    private var window = Window()

    /// One message at a time: what it says, the descriptors that came along, and who wrote it.
    var receive: ([NotifyMessage], inout ReceivedDescriptors, Int32) -> Void = { _, _, _ in }
    var complain: (String) -> Void = { _ in }
    /// Around all that takes a message out of the socket and hands it on; answers what its body does.
    var keep: (() -> Bool) -> Bool = { $0() }

    /// More than this in a second is a flood: what is over waits in the socket, and the app with it (its queue holds
    /// `net.unix.max_dgram_qlen` datagrams), while everybody else is served. A datagram counts for as many as it has
    /// messages, since each of them may be news to the journal and to all who watch.
    static let messagesPerSecond = 1000
    /// What is written to a file for it costs as much as a message for each of these bytes: one snapshot at its largest is
    /// half of what may be said within a second.
    private static let bytesPerMessage = 16 << 10
    /// Who has sent so many descriptors that can't be closed yet is not heard before they are: one datagram brings up to
    /// 253 (SCM_MAX_FD).
    private static let maximumClosing = 256
    /// At most this many before others have their turn.
    private static let datagramsPerTurn = 64
    /// Complaints of one app in a second, that it can't fill the journal.
    private static let complaintsPerSecond = 5

    private struct Window {
        var end = Duration.zero
        var messages = 0
        var complaints = 0
    }

    /// - Parameter adopting: the socket of an earlier daemon; `nil`: a new one takes its place.
    init(loop: EventLoop, path: String, owner: Owner?, adopting: consuming Descriptor? = nil) throws {
        self.loop = loop
        self.path = path
        if let adopting {
            socket = DatagramSocket(adopting: adopting, path: path)
        } else {
            socket = try DatagramSocket(at: path, mode: 0o600, owner: owner)
        }
        source = try loop.addDescriptor(socket.descriptor, events: .readable) { [weak self] _ in self?.readable() }
    }

    /// A copy of the socket in systemd's store would keep it in epoll(7) if it were closed first.
    deinit { source = nil }

    private func readable() {
        for _ in 0..<Self.datagramsPerTurn {
            if isFlooded() || isClosing { return holdBack() }
            guard readOne() else { return }
        }
    }

    /// For whoever keeps it beyond this daemon.
    var descriptor: SharedDescriptor { socket.descriptor }

    /// What was written before the app ended, or was frozen, still counts.
    func drain() {
        let end = window.messages + Self.messagesPerSecond
        while window.messages < end, !isClosing, readOne() {}
    }

    /// What came with a message took so many bytes to be written.
    func charge(bytes: Int) { window.messages += bytes / Self.bytesPerMessage }

    private var isClosing: Bool { closer.pending > Self.maximumClosing }

    /// Where the descriptors that the app sent are closed, at its own expense.
    var closer: DescriptorCloser { socket.closer }

    private func readOne() -> Bool { keep(takeOne) }

    private func takeOne() -> Bool {
        do {
            guard var datagram = try socket.receive() else { return false }
            window.messages += 1
            guard !datagram.isTooLarge else {
                complainAtTimes("a notify message of more than \(NotifyDatagram.maximumSize) bytes was ignored")
                return true
            }
            let parsed = NotifyDatagram(datagram.bytes)
            for warning in parsed.warnings { complainAtTimes(warning) }
            window.messages += max(0, parsed.messages.count - 1)
            let sender = datagram.sender.pid
            receive(parsed.messages, &datagram.descriptors, sender)
        } catch {
            complainAtTimes("\(error)")
            return false
        }
        return true
    }

    /// Of what the app brings about at will, so often that it can't fill the journal.
    func complainAtTimes(_ sentence: String) {
        window.complaints += 1
        if window.complaints <= Self.complaintsPerSecond { complain(sentence) }
    }

    private func isFlooded() -> Bool {
        let now = loop.now()
        if now >= window.end { window = Window(end: now + .seconds(1)) }
        return window.messages >= Self.messagesPerSecond
    }

    private func holdBack() {
        complainAtTimes(
            isClosing
                ? "sent \(closer.pending) descriptors that cannot be closed yet; what it says waits for that"
                : "wrote as much as \(Self.messagesPerSecond) notify messages within a second; the rest waits")
        try? source?.setEvents([])
        if pause == nil {
            pause = try? loop.makeTimer { [weak self] _ in try? self?.source?.setEvents(.readable) }
        }
        pause?.arm(at: window.end)
    }

    func close() {
        source = nil
        pause = nil
        // What nobody has heard may hold descriptors; those that are left when the socket goes are closed with it, here.
        drain()
        attemptRemoval()
    }

    private func attemptRemoval() {
        do { _ = try removeFile(at: path) } catch { complain("\(error)") }
    }
}
