import Control
import JSON
import Linux
import Systemd
import Testing

/// A client that activates its app whenever another one is active. Two such clients are what a faulty program between Greenroom and
/// a compositor is.
private final class Rival {
    private let path: String
    private let other: String
    private let bus: BusConnection
    private var request: BusConnection.Pending?

    init(_ daemon: TestDaemon, _ app: String, against other: String) throws {
        path = ObjectPath.encode(app, below: ControlNames.appPrefix)
        self.other = ObjectPath.encode(other, below: ControlNames.appPrefix)
        bus = try BusConnection(path: daemon.runtime + "/bus")
        // Later signals are for this client, too.
        _ = try bus.property(path: path, interface: ControlNames.appInterface, "State")
    }

    func waitUntilOtherIsActive() throws {
        while let signal = try bus.nextSignal(until: EventLoop.now() + .seconds(60)) {
            guard signal.member == "PropertiesChanged", signal.path == other else { continue }
            if JSONValue(signal.arguments[1])["State"]?.stringValue == "active" { return }
        }
        throw TestFailure("\(other) is not activated")
    }

    func activate() throws {
        try waitForAnswer()
        request = try bus.callAsync(path: path, interface: ControlNames.appInterface, member: "Activate")
    }

    /// - Throws: if the activation was refused.
    func waitForAnswer() throws {
        guard let request else { return }
        #expect(try bus.wait(for: request, until: EventLoop.now() + .seconds(60)))
        _ = try request.result?.get()
    }
}

@Suite("Activations in a loop")
struct ActivationLoopTests {
    /// How often the app in front changes.
    private static let changes = 500
    /// What one change may log, at the level debug: it is 8 lines, of which 4 are the changes of state of the two apps.
    private static let linesOfChange = 10

    @Test(
        "clients that activate their apps in turn without a pause delay no other client, and one is in front (L12)")
    func loop() throws {
        let manifest = TestDaemon.manifest("background=answer", "[Lifecycle]\nSuspendDelaySec=1s")
        let daemon = try TestDaemon(["a": manifest, "b": manifest])
        try daemon.launch("a")
        try daemon.launch("b", background: true)
        let pids = try ["a", "b"].map(daemon.pid)
        var rivals = [try Rival(daemon, "a", against: "b"), try Rival(daemon, "b", against: "a")]
        /// Without those about turns in which the daemon had no processor.
        func lines() -> Int {
            TestDaemon.text(of: daemon.root + "/log").split(separator: "\n")
                .count { !$0.contains("a turn of the event loop took") }
        }
        let before = lines()
        try rivals[1].activate()
        for change in 1..<Self.changes {
            let rival = rivals[(change + 1) % 2]
            try rival.waitUntilOtherIsActive()
            try rival.activate()
            // The apps change between two records of the answer: how many have a slot is an invariant of the core.
            try #require(JSONValue(try daemon.call("List")[0]).arrayValue?.count == 2)
        }
        for rival in rivals { try rival.waitForAnswer() }
        rivals = []
        #expect(lines() - before <= Self.changes * Self.linesOfChange)
        let last = Self.changes % 2 == 0 ? ["a", "b"] : ["b", "a"]
        try daemon.waitUntil(last[1], is: "suspended")
        #expect(try daemon.state(last[0]) == "active")
        #expect(try ["a", "b"].map(daemon.pid) == pids)
        #expect(daemon.stop() == .exited(0))
    }
}
