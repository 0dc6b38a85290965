import Glibc
import LifecycleCore
import Linux
import LoopPolicy
import Posix
import Systemd

/// The connection of a relay (Sources/greenroom-run). It is closed when this object is released, which ends nothing by itself: the
/// relay thaws the command then and looks for a daemon.
final class Relay {
    let peer: PeerCredentials
    /// In clock ticks since boot; 0: not known.
    let startTime: UInt64
    /// Its parent when it connected.
    let client: RunClientRecord?
    var hasTerminal = false
    /// The command.
    private(set) var process: Linux.Process?
    private let loop: EventLoop
    private let socket: SharedDescriptor
    private var source: EventSource?
    /// Called with each message; `nil`: the relay is gone.
    private var handler: (([UInt8]?) -> Void)?

    /// The longest message (RELAY_LONGEST of relay.h), in bytes.
    static let maximumMessage = 8192

    init(_ socket: consuming Descriptor, _ peer: PeerCredentials, loop: EventLoop) {
        self.socket = SharedDescriptor(socket)
        self.peer = peer
        self.loop = loop
        let process = (try? ProcFS().stat(of: peer.pid)) ?? nil
        startTime = process?.startTime ?? 0
        client = process.flatMap { RunClientRecord(startedBy: $0) }
    }

    deinit { source = nil }

    /// Calls `handler` with each message, instead of an earlier one.
    func begin(_ handler: @escaping ([UInt8]?) -> Void) {
        self.handler = handler
        if source != nil { return }
        source = try? loop.addDescriptor(socket, events: .readable, kind: .controlClient) { [weak self] _ in
            TurnResult(self?.read() ?? true)
        }
        if source == nil { close() }
    }

    /// - Returns: whether there was a message.
    func read() -> Bool {
        guard source != nil else { return false }
        do {
            guard var message = try socket.descriptor.receive(limit: Self.maximumMessage, closer: DescriptorCloser())
            else { return false }
            if process == nil, let pidfd = message.descriptors.takeFirst() { process = try? Linux.Process.of(pidfd) }
            let isValid = !message.bytes.isEmpty && !message.isTruncated
            if !isValid { source = nil }
            handler?(isValid ? message.bytes : nil)
        } catch {
            source = nil
            handler?(nil)
        }
        return true
    }

    /// Whether the command is a child of the relay: no other process may be moved, frozen or killed.
    var hasChild: Bool {
        guard let process, peer.pid > 0, let stat = (try? ProcFS().stat(of: process.pid)) ?? nil else { return false }
        // Asked last: until then the pid belongs to no other process.
        return stat.parent == peer.pid && !process.isOver
    }

    /// - Returns: whether it was sent.
    @discardableResult
    func send(_ message: String, _ descriptors: [SharedDescriptor] = []) -> Bool {
        (try? socket.descriptor.send(Array(message.utf8), descriptors)) ?? false
    }

    /// The command is executed without the daemon.
    func refuse(_ sentence: String) {
        send("R" + sentence.printable(upTo: Self.maximumMessage - 2))
        close()
    }

    /// The command is not executed: its caller is to correct something.
    func fail(_ sentence: String) {
        send("E" + sentence.printable(upTo: Self.maximumMessage - 2))
        close()
    }

    /// The command has ended.
    func end(after receipt: Receipt) {
        if receipt.mayReturn { send("U") }
        close()
    }

    /// Nothing more is read. The connection ends with this object.
    func close() {
        source = nil
        handler = nil
    }
}
