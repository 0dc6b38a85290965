import Glibc
import Linux
import Posix
import Systemd
import Testing

/// A logind with the methods that the daemon calls: delay inhibitors, and sessions whose screens are locked.
final class FakeLogind {
    private static let path = "/org/freedesktop/login1"
    private static let manager = "org.freedesktop.login1.Manager"
    private static let session = "org.freedesktop.login1.Session"
    static let sessionPath = "/org/freedesktop/login1/session/_31"

    private let stage: BusStage
    private let messageBus: MessageBus
    private let objects = BusObjects()
    /// The arguments of every Inhibit.
    private(set) var asked: [[Variant]] = []
    /// What `ListInhibitors` returns.
    private var listed: [Variant] = []
    /// This side of the inhibitors: readable when the daemon has closed the other side.
    private var held: [SharedDescriptor] = []
    private var isLocked = false
    private var isPreparing = false
    private var isShuttingDown = false
    /// How often clients have read whether the machine is about to sleep.
    private(set) var preparationReads = 0
    private var hidesSessions: Bool
    private var waiting: [MethodCall] = []
    private var isActive = true

    init(_ stage: BusStage, delay: Duration = .seconds(60), isLocked: Bool = false, hidesSessions: Bool = false) throws
    {
        self.hidesSessions = hidesSessions
        self.stage = stage
        self.isLocked = isLocked
        let microseconds = UInt64(delay / .microseconds(1))
        messageBus = try MessageBus(
            loop: stage.loop, address: stage.bus.address, name: "org.freedesktop.login1", objects: objects,
            takesDescriptors: true)
        objects.add(
            at: Self.path,
            [
                BusInterface(
                    Self.manager,
                    methods: [
                        BusMethod("Inhibit", in: "ssss", out: "h", access: .anyone) { [unowned self] in inhibit($0) },
                        BusMethod("ListInhibitors", out: "a(ssssuu)", access: .anyone) { [unowned self] call in
                            call.reply([.array("(ssssuu)", self.listed)])
                        },
                        BusMethod("ListSessions", out: "a(susso)", access: .anyone) { [unowned self] call in
                            if hidesSessions { waiting.append(call) } else { list(call) }
                        },
                    ],
                    properties: [
                        BusProperty("BlockInhibited", "s") { _ in .string("sleep") },
                        BusProperty("InhibitDelayMaxUSec", "t", .constant) { _ in .uint64(microseconds) },
                        BusProperty("PreparingForSleep", "b") { [unowned self] _ in
                            self.preparationReads += 1
                            return .bool(self.isPreparing)
                        },
                        BusProperty("PreparingForShutdown", "b") { [unowned self] _ in .bool(self.isShuttingDown) },
                    ])
            ])
        objects.add(
            at: Self.sessionPath,
            [
                BusInterface(
                    Self.session,
                    properties: [
                        BusProperty("LockedHint", "b") { [unowned self] _ in .bool(self.isLocked) },
                        BusProperty("Active", "b") { [unowned self] _ in .bool(self.isActive) },
                        BusProperty("Seat", "(so)", .constant) { _ in
                            .structure([.string("seat0"), .objectPath("/org/freedesktop/login1/seat/seat0")])
                        },
                        BusProperty("User", "(uo)", .constant) { _ in
                            .structure([.uint32(0), .objectPath("/org/freedesktop/login1/user/_0")])
                        },
                    ])
            ])
        messageBus.connect()
        try stage.serve("the fake logind's name") { self.messageBus.nameState == .owned }
    }

    private func list(_ call: MethodCall) {
        let one: [Variant] = [
            .string("1"), .uint32(0), .string("root"), .string("seat0"), .objectPath(Self.sessionPath),
        ]
        call.reply([.array("(susso)", [.structure(one)])])
    }

    /// Answers the pending calls.
    func showSessions() {
        hidesSessions = false
        for call in waiting { list(call) }
        waiting = []
    }

    private func inhibit(_ call: MethodCall) {
        asked.append(call.arguments)
        guard let pipe = try? Pipe(), let held = try? pipe.read.duplicate() else { return }
        self.held.append(SharedDescriptor(held))
        call.reply([.descriptor(SharedDescriptor(pipe.closingRead()))])
    }

    /// How many inhibitors delay the machine.
    var inhibitors: Int {
        held.count { box in
            var polled = pollfd(fd: box.raw, events: Int16(POLLIN), revents: 0)
            return poll(&polled, 1, 0) == 0
        }
    }

    /// Sets the inhibitors that clients hold, and emits logind's signal.
    func setInhibitors(_ inhibitors: [(what: String, mode: String, pid: Int32)]) throws {
        listed = inhibitors.map {
            .structure([
                .string($0.what), .string("backup"), .string("copies files"), .string($0.mode), .uint32(0),
                .uint32(UInt32($0.pid)),
            ])
        }
        try messageBus.peer?.emitPropertiesChanged(path: Self.path, interface: Self.manager, ["BlockInhibited"])
    }

    func waitForInhibitor() throws { try stage.serve("an inhibitor") { self.inhibitors == 1 } }
    func waitForRelease() throws {
        // No source of the loop reports the release.
        for box in held where !isReadable(box.raw, within: .seconds(30)) { throw TestFailure("an inhibitor is kept") }
    }

    func emitPrepare(_ member: String, _ isBeginning: Bool) throws {
        if member == "PrepareForSleep" { isPreparing = isBeginning } else { isShuttingDown = isBeginning }
        try messageBus.peer?.emitSignal(path: Self.path, interface: Self.manager, member: member, [.bool(isBeginning)])
    }

    func setLocked(_ isLocked: Bool) throws {
        self.isLocked = isLocked
        try messageBus.peer?.emitPropertiesChanged(path: Self.sessionPath, interface: Self.session, ["LockedHint"])
    }

    func setActive(_ isActive: Bool) throws {
        self.isActive = isActive
        try messageBus.peer?.emitPropertiesChanged(path: Self.sessionPath, interface: Self.session, ["Active"])
    }

    /// Leaves the bus, as in a crash.
    func leaveBus() { messageBus.peer?.close() }
}
