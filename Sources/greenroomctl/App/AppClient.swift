import Control
import Glibc
import Posix
import Systemd

/// The connection of an app's process to greenroomd (`GREENROOM_BUS_ADDRESS`).
final class AppClient {
    /// For how long a call is repeated while no daemon answers, as in the libraries.
    private static let reconnectTime = Duration.seconds(10)
    /// A daemon that is replaced listens again within milliseconds; one that is stopped may stay away.
    private static let delays = (first: Int32(20), last: Int32(1000))

    /// A daemon that dies meanwhile ends the handshake, too, but not as often.
    private static let maximumRefusals = 4

    /// The most bytes of a text, as in the libraries: greenroomd disconnects a client that sends a longer message.
    private static let maximumText = 32 << 10

    private let path: String
    /// The options of the last `Attach`, with the serial of its answer. A call that is repeated on another connection attaches
    /// there first.
    private var attachment: [(String, Variant)]?
    private(set) var bus: BusConnection

    init(_ environment: Environment) throws(Failure) {
        guard let address = environment.variable("GREENROOM_BUS_ADDRESS"), !address.isEmpty else {
            throw Failure(
                "app: GREENROOM_BUS_ADDRESS is not set: this is no process of an app.",
                hint: "greenroomd sets it for the programs that it launches; see: man 7 greenroom")
        }
        guard let path = BusAddress.path(ofUnix: address) else {
            throw Failure("app: GREENROOM_BUS_ADDRESS: invalid address '\(escaped(address))'; expected unix:path=PATH")
        }
        self.path = path
        bus = try Self.connect(path, until: EventLoop.now() + Self.reconnectTime)
    }

    /// - Parameter limit: until when to wait for a daemon.
    private static func connect(_ path: String, until limit: Duration) throws(Failure) -> BusConnection {
        var (delay, refusals) = (delays.first, 0)
        while true {
            let isLast = EventLoop.now() >= limit || refusals >= maximumRefusals
            if let bus = try attempt(path, isLast: isLast, &refusals) { return bus }
            poll(nil, 0, delay)
            delay = min(2 * delay, delays.last)
        }
    }

    /// - Returns: `nil` if no daemon listens.
    private static func attempt(
        _ path: String, isLast: Bool, _ refusals: inout Int
    ) throws(Failure) -> BusConnection? {
        do throws(BusError) {
            return try BusConnection(path: path)
        } catch {
            let isRefused = error.isOfLostConnection
            if isRefused { refusals += 1 }
            guard isRefused || error.isOfNoServer, !isLast else { throw isRefused ? refused(path) : failure(error) }
            return nil
        }
    }

    private static func refused(_ path: String) -> Failure {
        Failure(
            "greenroomd at \(escaped(path)) refused the connection: this is no process of the app, or the app has too "
                + "many connections.", hint: "The log of the app has the reason.")
    }

    /// Connects to the next daemon, if there is one.
    func reconnectIfListening() throws(Failure) -> Bool {
        var refusals = 0
        guard let next = try Self.attempt(path, isLast: false, &refusals) else { return false }
        bus = next
        return true
    }

    /// Calls a method. If the connection is lost, the next daemon is called.
    /// - Parameter mayBeOver: the call was carried out if the next daemon says that there is nothing to do.
    @discardableResult
    func call(_ member: String, _ arguments: [Variant] = [], mayBeOver: Bool = false) throws(Failure) -> [Variant] {
        for bytes in arguments.compactMap({ $0.stringValue?.utf8.count }) where bytes > Self.maximumText {
            throw Failure("\(member): the text has \(bytes) bytes; expected at most \(Self.maximumText).")
        }
        return try repeated { (isRepeated) throws(BusError) in
            do throws(BusError) {
                return try bus.call(
                    path: ControlNames.selfPath, interface: ControlNames.selfInterface, member: member, arguments)
            } catch  where isRepeated && mayBeOver && error.name == ControlNames.Failure.notOpen.name {
                return []
            }
        }
    }

    /// The restoration state of a scene, or of the app; `nil`: there is none.
    func state(of scene: String?) throws(Failure) -> SharedDescriptor? {
        try repeated { (_) throws(BusError) in
            do throws(BusError) {
                return try bus.descriptor(
                    path: ControlNames.selfPath, interface: ControlNames.selfInterface,
                    member: scene == nil ? "GetState" : "GetSceneState", scene.map { [.string($0)] } ?? [])
            } catch  where error.name == ControlNames.Failure.notFound.name {
                return nil
            }
        }
    }

    private func repeated<Answer>(_ call: (Bool) throws(BusError) -> Answer) throws(Failure) -> Answer {
        let limit = EventLoop.now() + Self.reconnectTime
        var isRepeated = false
        while true {
            do throws(BusError) {
                if isRepeated, let attachment { _ = try attach(attachment) }
                return try call(isRepeated)
            } catch {
                guard error.isOfLostConnection || !bus.isOpen, EventLoop.now() < limit else {
                    throw Self.failure(error)
                }
                isRepeated = true
            }
            bus = try Self.connect(path, until: limit)
        }
    }

    /// Takes part from now on.
    /// - Parameters:
    ///   - serial: of the last event that was read; 0: none.
    ///   - once: only for the next event. Those after it wait for the next process.
    /// - Returns: why the app was launched, and so on.
    func attach(_ kinds: [String], after serial: UInt64, once: Bool = false) throws(Failure) -> Variant {
        attachment = nil
        let answer = try repeated { (_) throws(BusError) in try attach(Self.options(kinds, serial, once)) }
        attachment = Self.options(kinds, answer["serial"]?.uintValue ?? serial, once)
        return answer
    }

    private static func options(_ kinds: [String], _ serial: UInt64, _ once: Bool) -> [(String, Variant)] {
        [
            ("handles", .strings(kinds)), ("serial", .uint64(serial)),
            ("library", .string("greenroomctl \(ControlNames.version)")),
        ] + (once ? [("once", .bool(true))] : [])
    }

    private func attach(_ options: [(String, Variant)]) throws(BusError) -> Variant {
        let answer = try bus.call(
            path: ControlNames.selfPath, interface: ControlNames.selfInterface, member: "Attach",
            [.dictionary(options)])
        return answer.first ?? .dictionary([])
    }

    static func failure(_ error: BusError) -> Failure {
        var failure = Failure(escaped(error.message))
        failure.name = error.name
        failure.isLost = error.isOfLostConnection
        return failure
    }
}
