import Control
import Glibc
import JSON
import Linux
import Posix
import Systemd
import TestKit

/// A connection to an app's own bus, which a child of the app has made (`lend` of the test app).
final class SelfClient {
    let bus: BusConnection
    /// The last event that was read.
    private(set) var serial: UInt64 = 0

    struct Event: Equatable {
        var serial: UInt64
        var kind: String
        var details: [String: JSONValue]
    }

    /// All but those for whose answer a suspension waits.
    static let kinds = EventKind.allCases.filter { ![.takeSnapshot, .takeSceneSnapshot, .withdraw].contains($0) }
        .map(\.rawValue)

    init(_ daemon: TestDaemon, _ name: String = "lend") throws {
        bus = try BusConnection(descriptor: Self.borrow(daemon, name), name: "greenroomd")
    }

    init(adopting bus: BusConnection) { self.bus = bus }

    /// A connected socket, without a handshake.
    static func borrow(_ daemon: TestDaemon, _ name: String = "lend") throws -> Descriptor {
        let path = daemon.root + "/" + name
        var lender: Descriptor?
        try daemon.eventually("\(path) lends") {
            lender = try? UnixSocket.connect(to: path)
            return lender != nil
        }
        guard let lender = lender.take() else { throw TestFailure("\(path) does not lend") }
        let shared = SharedDescriptor(lender)
        waitForReadable([shared])
        guard var message = try shared.descriptor.receive(limit: 1, closer: DescriptorCloser()),
            let taken = message.descriptors.takeFirst()
        else { throw TestFailure("no connection was lent") }
        // The closer is this test's.
        return Descriptor(adopting: taken.release())
    }

    @discardableResult
    func call(_ member: String, _ arguments: [Variant] = []) throws -> [Variant] {
        try bus.call(
            path: ControlNames.selfPath, interface: ControlNames.selfInterface, member: member, arguments,
            timeout: .seconds(60))
    }

    /// Sends calls without waiting for each answer, and then waits for all. At most 100 are not answered at any time: the daemon
    /// disconnects a client that leaves hundreds of answers unread, as one does that is not scheduled meanwhile.
    /// - Returns: whether all have succeeded.
    func callAll(_ member: String, _ arguments: [[Variant]]) throws -> Bool {
        var haveSucceeded = true
        for start in stride(from: 0, to: arguments.count, by: 100) {
            let pending = try arguments[start..<min(start + 100, arguments.count)].map { arguments in
                try bus.callAsync(
                    path: ControlNames.selfPath, interface: ControlNames.selfInterface, member: member, arguments,
                    timeout: .seconds(60))
            }
            for one in pending { _ = try bus.wait(for: one, until: EventLoop.now() + .seconds(60)) }
            if try !pending.allSatisfy({ try $0.result?.get() != nil }) { haveSucceeded = false }
        }
        return haveSucceeded
    }

    /// The last part of the error's name and its sentence; `nil`: the call succeeded.
    func failure(_ member: String, _ arguments: [Variant] = []) -> (name: String, sentence: String)? {
        do {
            try call(member, arguments)
            return nil
        } catch let error as BusError {
            return (error.name.split(separator: ".").last.map(String.init) ?? "", error.message)
        } catch {
            return ("", "\(error)")
        }
    }

    @discardableResult
    func attach(_ kinds: [String] = SelfClient.kinds, after serial: UInt64 = 0) throws -> JSONValue {
        let answer = try call(
            "Attach", [.dictionary([("handles", .strings(kinds)), ("serial", .uint64(serial))])])
        let launch = JSONValue(answer[0])
        self.serial = UInt64(launch["serial"]?.integerValue ?? 0)
        return launch
    }

    func answer(_ serial: UInt64, _ options: [(String, Variant)] = []) throws {
        try call("Answer", [.uint64(serial), .dictionary(options)])
    }

    /// Reads the next event.
    func next() throws -> Event {
        let deadline = EventLoop.now() + .seconds(60)
        while let signal = try bus.nextSignal(until: deadline) {
            guard signal.member == "Event", signal.arguments.count == 3 else { continue }
            serial = signal.arguments[0].uintValue ?? 0
            guard case .object(let details) = JSONValue(signal.arguments[2]) else { continue }
            return Event(
                serial: serial, kind: signal.arguments[1].stringValue ?? "",
                details: Dictionary(uniqueKeysWithValues: details.map { ($0.0, $0.1) }))
        }
        throw TestFailure("no event came")
    }

    /// Reads so many events.
    /// - Returns: their kinds.
    func kinds(_ count: Int) throws -> [String] { try (0..<count).map { _ in try next().kind } }
}
