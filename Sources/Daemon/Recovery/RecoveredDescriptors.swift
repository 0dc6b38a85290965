import LifecycleCore
import Linux
import Posix
import Systemd

/// A descriptor of the previous daemon that nothing of this one has taken yet. It may be an app's, whose close(2) can block: a
/// helper thread closes it if it is not taken.
final class UntakenDescriptor {
    private var number: Int32?
    private let closer: DescriptorCloser

    init(_ descriptor: consuming Descriptor, closer: DescriptorCloser = DescriptorCloser()) {
        number = descriptor.release()
        self.closer = closer
    }

    /// The descriptor itself, not a duplicate: closing one of two can block as well.
    /// - Returns: `nil` the second time.
    func take() -> Descriptor? {
        guard let number else { return nil }
        self.number = nil
        return Descriptor(adopting: number)
    }

    deinit {
        if let number { closer.close(Descriptor(adopting: number)) }
    }
}

/// The descriptors that survived the previous daemon, by name: from the service manager's file descriptor store, or
/// passed on by reexec.
final class RecoveredDescriptors {
    private var all: [String: UntakenDescriptor] = [:]

    init() {}

    /// Takes ownership of the descriptors. If several have the same name, all but the first are closed.
    init(adopting passed: [(name: String, descriptor: UntakenDescriptor)]) {
        for (name, descriptor) in passed where all[name] == nil { all[name] = descriptor }
    }

    static func notifySocket(_ run: RunID) -> String { "notify-\(run)" }
    static func connectionSocket(_ run: RunID) -> String { "self-\(run)" }
    static func process(_ run: RunID) -> String { "process-\(run)" }
    static func stored(_ serial: UInt64) -> String { "stored-\(serial)" }
    static let socketPrefix = "socket-"
    static func socket(_ serial: UInt64) -> String { socketPrefix + "\(serial)" }
    static let lock = "lock"
    static let groupLock = "group-lock"
    static let controlSocket = "control"
    static let inhibitor = "inhibitor"
    /// The connection to the message bus.
    static let messageBus = "message-bus"

    /// A connection of the private socket.
    struct Client: Equatable {
        /// `BusPeer.number`.
        let number: UInt64
        /// When it was accepted (CLOCK_BOOTTIME), in microseconds.
        private let microseconds: Int64
        let resumption: BusResumption

        init(number: UInt64, connected: Duration, _ resumption: BusResumption = .established) {
            self.number = number
            self.resumption = resumption
            let (seconds, attoseconds) = connected.components
            microseconds = seconds * 1_000_000 + attoseconds / 1_000_000_000_000
        }

        /// - Parameter name: of the descriptor; `nil`: it is not that of a connection.
        init?(name: String) {
            let words = name.split(separator: "-", omittingEmptySubsequences: false)
            guard (3...4).contains(words.count), words[0] == "client", let number = UInt64(words[1]),
                let time = Int64(words[2])
            else { return nil }
            self.number = number
            microseconds = time
            if words.count == 3 {
                resumption = .established
            } else {
                guard let handshake = Self.bytes(ofDigits: words[3]) else { return nil }
                resumption = .handshake(handshake)
            }
        }

        /// When it was accepted (CLOCK_BOOTTIME), rounded down to microseconds.
        var connected: Duration { .microseconds(microseconds) }

        /// The name of the descriptor: `client-NUMBER-MICROSECONDS`, with the bytes of the handshake as hexadecimal digits if
        /// no message has arrived.
        var name: String {
            let name = "client-\(number)-\(microseconds)"
            return switch resumption {
            case .established: name
            case .handshake(let bytes): name + "-" + Self.digits(of: bytes)
            }
        }

        private static func digits(of bytes: [UInt8]) -> String {
            bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        }

        /// `nil` if they are not pairs of hexadecimal digits, or too many.
        private static func bytes(ofDigits digits: Substring) -> [UInt8]? {
            let values = digits.utf8.map { Character(Unicode.Scalar($0)).hexDigitValue }
            guard values.count.isMultiple(of: 2), values.count <= 2 * MessageFraming.longestHandshake else {
                return nil
            }
            var bytes: [UInt8] = []
            for index in stride(from: 0, to: values.count, by: 2) {
                guard let high = values[index], let low = values[index + 1] else { return nil }
                bytes.append(UInt8(high * 16 + low))
            }
            return bytes
        }
    }

    /// The connections of the private socket, in the order in which they began.
    var clients: [Client] { all.keys.compactMap(Client.init(name:)).sorted { $0.number < $1.number } }

    /// Takes all of these connections.
    func takeClients() -> [ResumedClient] {
        clients.compactMap { client in
            guard let socket = take(client.name) else { return nil }
            return ResumedClient(
                socket: SharedDescriptor(socket), number: client.number, connected: client.connected,
                client.resumption)
        }
    }

    /// A memfd with the IDs of the disabled apps that clients know, one in each line.
    static let disabledApps = "disabled-apps"
    /// The longest such file in bytes.
    private static let longestList = 16 << 20

    /// - Returns: `nil` if there are none. If the file cannot be created, the next program announces all disabled apps.
    static func file(ofDisabledApps apps: [AppID]) -> SharedDescriptor? {
        if apps.isEmpty { return nil }
        let lines = apps.map { "\($0.name)\n" }.joined()
        return try? SharedDescriptor(MemoryFile.sealed("greenroom-disabled", Array(lines.utf8)))
    }

    /// The disabled apps that clients of the previous program know.
    func takeDisabledApps() -> [AppID] {
        guard let file = take(Self.disabledApps),
            let bytes = try? MemoryFile.contents(file, limit: Self.longestList)
        else { return [] }
        return String(decoding: bytes, as: UTF8.self).split(separator: "\n").compactMap { AppID(String($0)) }
    }

    func contains(_ name: String) -> Bool { all[name] != nil }
    var names: [String] { all.keys.sorted() }

    /// - Returns: `nil` if there is none of this name.
    func take(_ name: String) -> Descriptor? {
        guard let untaken = all.removeValue(forKey: name) else { return nil }
        return untaken.take()
    }

    /// Closes those that were not taken, and removes them from the store: nothing else would ever do so.
    func removeUnused(from store: DescriptorStore) {
        for name in all.keys.sorted() { store.remove(name) }
        all = [:]
    }
}
