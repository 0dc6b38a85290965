import Glibc
import JSON
import Linux
import Posix
import Testing

/// `Budget=` with real processes: no app is killed by an estimate, for memory that comes back, or for another app (L39). Much memory
/// of the machine is available.
@Suite("The budget and real processes")
struct BudgetTests {
    private static func idle(_ megabytes: Int) -> String {
        TestDaemon.manifest("allocate \(megabytes << 20)", "[Lifecycle]\nSuspendDelaySec=0")
    }

    private func apps(_ daemon: TestDaemon) throws -> Int64 {
        JSONValue(try daemon.call("Pressure")[0])["appsBytes"]?.integerValue ?? 0
    }

    @Test("a preforking server whose processes share memory lives within a budget that their sum exceeds (L39)")
    func preforking() throws {
        let server = TestDaemon.manifest("allocate \(60 << 20) fork 4", "[Memory]\nMemoryMax=220M")
        let daemon = try TestDaemon(["server": server], configuration: "[Memory]\nBudget=220M\n")
        try daemon.launch("server")
        // The sum is more than 300 MiB.
        try daemon.eventually("the exact size is known") { try (60 << 20..<100 << 20).contains(apps(daemon)) }
        #expect(JSONText.of(try daemon.call("Pressure"), "level") == "normal")
        #expect(try daemon.state("server") == "active")
        #expect(try daemon.receipts("server").isEmpty)
    }

    @Test("an app that exceeds the budget alone is killed, and the others live (L39)")
    func alone() throws {
        func configuration(_ budget: String) -> String { "[Memory]\nBudget=\(budget)\n[Manager]\nForegroundLimit=2\n" }
        let daemon = try TestDaemon(
            [
                "small": Self.idle(20), "family": TestDaemon.manifest("allocate \(60 << 20) fork 4"),
                "large": TestDaemon.manifest("allocate \(240 << 20)"),
            ], configuration: configuration("1G"))
        try daemon.launch("small", background: true)
        try daemon.waitUntil("small", is: "suspended")
        try daemon.launch("family")
        try daemon.launch("large")
        // A machine that fills 80 MiB in more than a second would let the apps exceed the budget together, before this one exceeds it.
        try daemon.eventually("the large app has its size") {
            try daemon.status("large")["memoryBytes"]?.integerValue ?? 0 > 240 << 20
        }
        try replaceFile(at: daemon.root + "/config/greenroom.conf", with: Array(configuration("220M").utf8))
        _ = try daemon.call("Reload")
        try daemon.wait("large", "stateChanged", state: "notRunning")
        let receipt = try #require(try daemon.receipts("large").last)
        #expect(receipt["namespace"]?.stringValue == "jetsam")
        #expect(receipt["code"]?.stringValue == "1")
        let explanation = receipt["explanation"]?.stringValue ?? ""
        #expect(
            explanation.hasPrefix("Killed: alone it used 24") && explanation.hasSuffix("of all apps (220M)."),
            "\(explanation)")
        #expect(try daemon.state("small") == "suspended")
        #expect(try daemon.state("family") == "active")
    }

    @Test(
        "a victim that takes seconds to end is the only one (L39)",
        .enabled(if: geteuid() == 0, "Yama may forbid tracing"))
    func slowVictim() throws {
        let daemon = try TestDaemon(
            ["browser": Self.idle(150), "clock": Self.idle(20), "display": Self.idle(30), "home": Self.idle(120)],
            configuration: "[Memory]\nBudget=300M\n")
        for app in ["clock", "display", "browser"] {
            try daemon.launch(app, background: true)
            try daemon.waitUntil(app, is: "suspended")
        }
        let (attached, release) = (daemon.root + "/attached", daemon.root + "/release")
        let tracer = try daemon.holdEnd(of: try daemon.pid("browser"), attached: attached, release: release)
        try daemon.eventually("the tracer is attached") { exists(at: attached) }
        try daemon.launch("home")
        // 5s after the kill.
        try daemon.wait("browser", "killTakesLong")
        for app in ["clock", "display"] { #expect(try daemon.state(app) == "suspended") }
        try replaceFile(at: release, with: [])
        try daemon.wait("browser", "stateChanged", state: "notRunning")
        try daemon.eventually("the level is normal again") {
            JSONText.of(try daemon.call("Pressure"), "level") == "normal"
        }
        for app in ["clock", "display"] { #expect(try daemon.state(app) == "suspended") }
        #expect(try daemon.state("home") == "active")
        waitForReadable([tracer.descriptor])
        _ = try tracer.reap()
    }
}
