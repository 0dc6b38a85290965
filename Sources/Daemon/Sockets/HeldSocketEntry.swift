import LifecycleCore
import Linux
import Manifest

/// A socket of a manifest: bound, or with the reason why it is not.
final class HeldSocketEntry {
    let app: AppID
    let wanted: HeldSocket
    /// Identifies the socket for the next daemon, and in the set of watched sockets.
    let serial: UInt64
    var socket: ListeningSocket?
    /// Why no socket is bound, or why its clients do not reach it; for status.
    var problem: String?
    /// When binding it is tried again; `nil`: it is not, or only at the end of the app.
    var retryAt: Duration?
    private var retryDelay = HeldSocketEntry.shortestRetry
    /// Since when it cannot be bound; `nil`: it is, or was not tried.
    private(set) var failingSince: Duration?
    var isWatched = false
    /// With what the socket was made; and the lines of the manifest, `nil`: they are not known.
    var settings = ListeningSocket.Settings()
    var given: SocketSettings?

    /// Between two attempts: the second doubles until the last.
    private static let shortestRetry = Duration.seconds(1)
    private static let longestRetry = Duration.seconds(60)

    init(_ wanted: HeldSocket, of app: AppID, serial: UInt64) {
        self.app = app
        self.wanted = wanted
        self.serial = serial
    }

    var address: ListenAddress { ListenAddress(wanted.address) }

    var type: ListenType {
        switch wanted.kind {
        case .stream: .stream
        case .datagram: .datagram
        case .sequentialPacket: .sequentialPacket
        }
    }

    /// The folder of a socket with a path.
    var folder: String? {
        guard let path = address.path, let slash = path.lastIndex(of: "/") else { return nil }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    func fail(_ problem: String, now: Duration) {
        self.problem = problem
        failingSince = failingSince ?? now
        retryAt = now + retryDelay
        retryDelay = min(retryDelay * 2, Self.longestRetry)
    }

    func succeed() {
        problem = nil
        retryAt = nil
        failingSince = nil
        retryDelay = Self.shortestRetry
    }

    /// It is bound when the app has ended.
    func wait(_ problem: String) {
        self.problem = problem
        retryAt = nil
    }

    /// Whether both sockets need the same address of the machine.
    func conflicts(with other: HeldSocketEntry) -> Bool {
        switch (wanted.address.port, other.wanted.address.port) {
        case (let port?, let otherPort?): port == otherPort && wanted.kind == other.wanted.kind
        case (nil, nil): wanted.address == other.wanted.address
        default: false
        }
    }
}

extension ListenAddress {
    init(_ address: HeldSocket.Address) {
        switch address {
        case .port(let port): self = .port(port)
        case .ipv4(let text, let port): self = .ipv4(text, port)
        case .ipv6(let text, let port): self = .ipv6(text, port)
        case .path(let path): self = .path(path)
        case .abstract(let name): self = .abstract(name)
        }
    }
}

extension HeldSocket.Address {
    /// `nil`: it is not an address of the internet.
    var port: UInt16? {
        switch self {
        case .port(let port), .ipv4(_, let port), .ipv6(_, let port): port
        case .path, .abstract: nil
        }
    }
}

/// The record of a socket for the next daemon, which compares it with what it gets.
struct HeldSocketRecord: SavedRecord {
    var app: AppID
    var socket: HeldSocket
    /// Finds it in the processes of the app.
    var inode: UInt64 = 0

    private static let prefix = "socket/"
    static func name(_ serial: UInt64) -> String { prefix + "\(serial)" }
    /// `nil`: it is a record of another kind.
    static func serial(ofRecord name: String) -> UInt64? {
        name.hasPrefix(prefix) ? UInt64(name.dropFirst(prefix.count)) : nil
    }

    static var blank: HeldSocketRecord { HeldSocketRecord(app: .blank, socket: HeldSocket(.stream, .port(0))) }

    private enum Form: UInt32 { case port, ipv4, ipv6, path, abstract }

    mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        var kind = UInt32(HeldSocket.Kind.allCases.firstIndex(of: socket.kind) ?? 0)
        var (form, text, port) = Self.parts(of: socket.address)
        try coder.required(1, &app)
        try coder.required(2, &kind)
        try coder.required(3, &form)
        try coder.field(4, &text)
        try coder.field(5, &port)
        try coder.field(6, &inode)
        let kinds = HeldSocket.Kind.allCases
        socket = HeldSocket(
            kinds.indices.contains(Int(kind)) ? kinds[Int(kind)] : .stream, Self.address(form, text, port))
    }

    private static func parts(of address: HeldSocket.Address) -> (form: UInt32, text: String, port: UInt32) {
        switch address {
        case .port(let port): (Form.port.rawValue, "", UInt32(port))
        case .ipv4(let text, let port): (Form.ipv4.rawValue, text, UInt32(port))
        case .ipv6(let text, let port): (Form.ipv6.rawValue, text, UInt32(port))
        case .path(let path): (Form.path.rawValue, path, 0)
        case .abstract(let name): (Form.abstract.rawValue, name, 0)
        }
    }

    /// A form that only a newer release knows becomes an address that no socket has.
    private static func address(_ form: UInt32, _ text: String, _ port: UInt32) -> HeldSocket.Address {
        let port = UInt16(truncatingIfNeeded: port)
        return switch Form(rawValue: form) {
        case .port, nil: .port(port)
        case .ipv4: .ipv4(text, port)
        case .ipv6: .ipv6(text, port)
        case .path: .path(text)
        case .abstract: .abstract(text)
        }
    }
}
