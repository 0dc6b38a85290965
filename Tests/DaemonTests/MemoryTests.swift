import Glibc
import JSON
import Linux
import Systemd
import Testing

@Suite("Memory and real processes")
struct MemoryTests {
    private func idle(_ megabytes: Int, _ more: String = "") -> String {
        TestDaemon.manifest("allocate \(megabytes << 20)", "[Lifecycle]\nSuspendDelaySec=0\n\(more)")
    }

    @Test("above the budget the largest suspended apps are killed, and no more than necessary (L35, L38, L39)")
    func budget() throws {
        let daemon = try TestDaemon(
            ["small": idle(10), "large": idle(60), "middle": idle(30), "last": idle(20)],
            configuration: "[Memory]\nBudget=110M\n")
        for app in ["small", "large", "middle"] {
            try daemon.launch(app, background: true)
            try daemon.waitUntil(app, is: "suspended")
        }
        #expect(try daemon.receipts("large").isEmpty)
        try daemon.launch("last")
        try daemon.wait("large", "stateChanged", state: "notRunning")
        let receipt = try #require(try daemon.receipts("large").last)
        #expect(receipt["namespace"]?.stringValue == "jetsam")
        #expect(receipt["state"]?.stringValue == "suspended")
        #expect(
            receipt["candidates"]?.arrayValue?.compactMap { $0["app"]?.stringValue }.prefix(3)
                == ["large", "middle", "small"])
        // After the kill, memory is measured again: the other apps fit into the budget.
        try daemon.eventually("the level is normal again") {
            JSONText.of(try daemon.call("Pressure"), "level") == "normal"
        }
        #expect(try daemon.state("middle") == "suspended")
        #expect(try daemon.state("small") == "suspended")
        #expect(try daemon.state("last") == "active")
    }

    @Test("memory that processes share counts once: the app that gives back most is killed (L38)")
    func shared() throws {
        func app(_ setup: String) -> String { TestDaemon.manifest(setup, "[Lifecycle]\nSuspendDelaySec=0") }
        let daemon = try TestDaemon([
            "family": app("allocate \(40 << 20) fork 4"), "shared": app("share \(60 << 20)"), "large": idle(80),
        ])
        for app in ["family", "shared", "large"] {
            try daemon.launch(app, background: true)
            try daemon.waitUntil(app, is: "suspended")
        }
        func memory(_ app: String) throws -> Int64 { try daemon.status(app)["memoryBytes"]?.integerValue ?? 0 }
        // The sum over the processes is 200 MiB.
        try daemon.eventually("the family is measured exactly") { try (40 << 20..<60 << 20).contains(memory("family")) }
        try daemon.eventually("shared memory counts") { try (60 << 20..<75 << 20).contains(memory("shared")) }
        #expect(try (80 << 20..<95 << 20).contains(memory("large")))
        for victim in ["large", "shared", "family"] {
            #expect(JSONText.of(try daemon.call("SimulatePressure", [.string("critical")]), "victim") == victim)
            try daemon.wait(victim, "stateChanged", state: "notRunning")
            _ = try daemon.call("SimulatePressure", [.string("normal")])
        }
    }

    @Test("memory that no process maps counts, and files that outlive the app do not (L38)")
    func files() throws {
        let survives = "/dev/shm/greenroom-test-\(getpid())"
        try replaceFile(at: survives, with: [])
        defer { unlink(survives) }
        try #require(truncate(survives, 60 << 20) == 0)
        func app(_ setup: String) -> String { TestDaemon.manifest(setup, "[Lifecycle]\nSuspendDelaySec=0") }
        let daemon = try TestDaemon([
            "keeper": app("keep \(50 << 20)"), "mapper": app("map \(survives)"), "owner": idle(30),
        ])
        for app in ["keeper", "mapper", "owner"] {
            try daemon.launch(app, background: true)
            try daemon.waitUntil(app, is: "suspended")
        }
        func memory(_ app: String) throws -> Int64 { try daemon.status(app)["memoryBytes"]?.integerValue ?? 0 }
        try daemon.eventually("the kept file counts") { try (50 << 20..<65 << 20).contains(memory("keeper")) }
        try daemon.eventually("the file with a name does not") { try memory("mapper") < 15 << 20 }
        for victim in ["keeper", "owner", "mapper"] {
            #expect(JSONText.of(try daemon.call("SimulatePressure", [.string("critical")]), "victim") == victim)
            try daemon.wait(victim, "stateChanged", state: "notRunning")
            _ = try daemon.call("SimulatePressure", [.string("normal")])
        }
    }

    @Test("an app that the daemon may not look into keeps the size that was estimated (L38)")
    func refused() throws {
        func app(_ setup: String) -> String { TestDaemon.manifest(setup, "[Lifecycle]\nSuspendDelaySec=0") }
        let daemon = try TestDaemon(
            ["closed": app("share \(50 << 20) undumpable"), "open": app("allocate \(40 << 20) fork 4")],
            asUnprivilegedUser: true)
        func memory(_ app: String) throws -> Int64 { try daemon.status(app)["memoryBytes"]?.integerValue ?? 0 }
        for app in ["closed", "open"] {
            try daemon.launch(app, background: true)
            try daemon.waitUntil(app, is: "suspended")
        }
        // Apps are measured one after the other.
        try daemon.eventually("the other one is measured exactly") {
            try (40 << 20..<60 << 20).contains(memory("open"))
        }
        #expect(try memory("closed") >= 50 << 20)
    }

    @Test("an app with a lower JetsamPriority= is killed before a larger app (L38)")
    func priority() throws {
        let daemon = try TestDaemon(
            ["large": idle(40), "unloved": idle(10, "[Memory]\nJetsamPriority=-5")])
        for app in ["large", "unloved"] {
            try daemon.launch(app, background: true)
            try daemon.waitUntil(app, is: "suspended")
        }
        #expect(JSONText.of(try daemon.call("SimulatePressure", [.string("critical")]), "victim") == "unloved")
        try daemon.wait("unloved", "stateChanged", state: "notRunning")
        #expect(try daemon.state("large") == "suspended")
    }

    @Test(
        "an app that is measured over MemoryMax= is killed, one that is suspended only over SuspendedMemoryMax= (L41)")
    func limits() throws {
        let daemon = try TestDaemon([
            "running": TestDaemon.manifest("allocate \(60 << 20)", "[Memory]\nMemoryMax=40M\nSuspendedMemoryMax=200M"),
            "suspended": idle(60, "[Memory]\nSuspendedMemoryMax=40M"),
            "within": idle(60, "[Memory]\nMemoryMax=200M\nSuspendedMemoryMax=200M"),
        ])
        try daemon.launch("within", background: true)
        // A busy daemon may measure the first one before it reads READY=1.
        for (app, states) in [("running", ["launching", "active"]), ("suspended", ["suspended"])] {
            try daemon.launch(app, background: app == "suspended")
            try daemon.wait(app, "stateChanged", state: "notRunning")
            let receipt = try #require(try daemon.receipts(app).last)
            #expect(receipt["namespace"]?.stringValue == "jetsam")
            #expect(receipt["code"]?.stringValue == "7")
            #expect(states.contains(receipt["state"]?.stringValue ?? ""))
        }
        try daemon.waitUntil("within", is: "suspended")
    }

    @Test("running apps are notified of a memory warning; suspended apps are not woken for it (L36)")
    func warning() throws {
        let root = try TestDaemon.makeFolder()
        let daemon = try TestDaemon(
            [
                "awake": TestDaemon.manifest("", trace: root + "/awake"),
                "asleep": TestDaemon.manifest("", "[Lifecycle]\nSuspendDelaySec=0", trace: root + "/asleep"),
            ], root: root)
        try daemon.launch("asleep", background: true)
        try daemon.waitUntil("asleep", is: "suspended")
        try daemon.launch("awake")
        try daemon.settle("awake", catches: 35)
        _ = try daemon.call("SimulatePressure", [.string("warning")])
        try daemon.eventually("the app is warned") { daemon.trace("awake").contains("memoryWarning") }
        #expect(daemon.inbox("awake", "memory") == "warning\n")
        #expect(try daemon.state("asleep") == "suspended")
        #expect(!daemon.trace("asleep").contains("memoryWarning"))
        // The level is in the inbox when the app runs again (L31).
        try daemon.ask("Activate", "asleep")
        try daemon.eventually("the app is notified") { daemon.trace("asleep").contains("memoryWarning") }
        #expect(daemon.inbox("asleep", "memory") == "warning\n")
        // Both levels have one signal: the level is in the inbox before the signal is sent.
        _ = try daemon.call("SimulatePressure", [.string("critical")])
        try daemon.eventually("the app is warned again") { daemon.trace("asleep").count { $0 == "memoryWarning" } == 2 }
        #expect(daemon.inbox("asleep", "memory") == "critical\n")
    }
}
