import Glibc
import JSON
import LifecycleCore
import Posix
import Systemd
import TestKit
import Testing

@testable import Daemon

/// A GeoClue, as far as the daemon reads it.
private final class FakeGeoClue {
    private let messageBus: MessageBus
    private let objects = BusObjects()
    var isInUse = false
    /// How often it was asked.
    private(set) var reads = 0

    init(_ stage: BusStage) throws {
        let object = LocationClaims.geoclue
        messageBus = try MessageBus(
            loop: stage.loop, address: stage.bus.address, name: object.service, objects: objects)
        objects.add(
            at: object.path,
            [
                BusInterface(
                    object.interface,
                    properties: [
                        BusProperty("InUse", "b") { [unowned self] _ in
                            reads += 1
                            return .bool(isInUse)
                        }
                    ])
            ])
        messageBus.connect()
        try stage.serve("the name of the fake") { self.messageBus.nameState == .owned }
    }

    func set(_ isInUse: Bool) throws {
        self.isInUse = isInUse
        let object = LocationClaims.geoclue
        try messageBus.peer?.emitPropertiesChanged(path: object.path, interface: object.interface, ["InUse"])
    }
}

/// The mode `location` and what GeoClue says (L28).
@Suite("Claims of a location", .enabled(if: PrivateBus.isPossible && geteuid() == 0, PrivateBus.requirement))
struct LocationTests {
    private static let app = AppID("map")!

    private final class Performer: EffectPerforming {
        func perform(_ effect: Effect, _ id: EffectID) {}
    }

    /// A core with an app in the background that asserts the mode, and no process.
    private static func makeDriver(_ loop: EventLoop, _ folder: String) throws -> CoreDriver {
        var core = LifecycleCore()
        var policy = AppPolicy()
        policy.backgroundModes = .location
        _ = core.handle(.configuration(.registered(app, policy, launches: 0)), at: .origin)
        _ = core.handle(.requested(RequestID(1), app, .activate), at: .origin)
        let run = try #require(core.run(of: app))
        for event in [
            RunEvent.process(.spawned(pid: 1)), .process(.executed), .transition(.ready), .mode(.began(.location)),
        ] {
            _ = core.handle(.run(run, event), at: .origin)
        }
        _ = core.handle(.requested(RequestID(2), app, .background), at: .origin)
        _ = core.handle(.run(run, .transition(.backgroundEntered)), at: .origin)
        let logbook = Logbook(path: folder + "/logbook", journal: .quiet)
        logbook.create(core, records: [:])
        return try CoreDriver(loop: loop, core: core, logbook: logbook)
    }

    @Test("a mode of an app in the background does not count once GeoClue has located nothing for a time (L28)")
    func claim() throws {
        let stage = try BusStage()
        let driver = try Self.makeDriver(stage.loop, stage.root)
        let performer = Performer()
        driver.connect(performer: performer, observers: [])
        let claims = LocationClaims(loop: stage.loop, events: driver, longestTime: .milliseconds(1))
        let peer = try BusPeer(loop: stage.loop, busAddress: stage.bus.address)
        peer.onSignal = { claims.received($0) }
        func view() throws -> AppView { try #require(driver.view(of: Self.app)) }
        claims.modeBegan(Self.app)
        claims.busIsUp(peer)
        // Without GeoClue the claim counts as it is.
        #expect(try view().modes == .location)
        let geoclue = try FakeGeoClue(stage)
        try stage.serve("the claim is not believed") { try view().unusedModes == .location }
        #expect(try view().modes == [])
        try geoclue.set(true)
        try stage.serve("it is believed again") { try view().modes == .location }
        #expect(try view().unusedModes == [])
        try geoclue.set(false)
        try stage.serve("it is not believed again") { try view().unusedModes == .location }
    }

    @Test("GeoClue is asked while an app asserts the mode location, and not before (L28)")
    func watched() throws {
        let stage = try BusStage(["map": TestDaemon.manifest("", "[Lifecycle]\nBackgroundModes=location\n")])
        let geoclue = try FakeGeoClue(stage)
        try stage.daemon.launch("map")
        _ = try stage.ask("Version")
        #expect(geoclue.reads == 0)
        try stage.daemon.sendMessage("X_GREENROOM_BEGIN_MODE=location")
        try stage.serve("it is asked") { geoclue.reads == 1 }
        #expect(try stage.daemon.status("map")["modes"]?.arrayValue?.compactMap(\.stringValue) == ["location"])
    }
}
