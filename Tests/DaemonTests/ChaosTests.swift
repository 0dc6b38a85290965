import Control
import Glibc
import JSON
import Linux
import Systemd
import TestKit
import Testing

/// The daemon is killed at random moments while apps and clients are active. The state before and after is compared.
/// `make chaos KILLS=… SEED=…` plays more kills than `make test-all`.
@Suite(
    "Chaos",
    .enabled(if: isTestingAll || getenv("GREENROOM_CHAOS_KILLS") != nil, "make test-all and make chaos kill at random"))
struct ChaosTests {
    @Test("SIGKILL of the daemon at any moment: no app is killed, lost, launched twice or changes its state")
    func chaos() throws {
        try play(withStore: false)
    }

    @Test(
        "SIGKILL of the daemon at any moment, with a descriptor store: the same, and no descriptor is left in the store"
    )
    func chaosWithStore() throws {
        try play(withStore: true)
    }

    private func play(withStore: Bool) throws {
        let kills = number("KILLS") ?? 12
        let seed = UInt64(number("SEED") ?? 1)
        var chaos = try Chaos(seed: seed, withStore: withStore)
        for round in 1...kills {
            try chaos.play(round)
            if let broken = chaos.broken { throw TestFailure("seed \(seed), kill \(round) of \(kills): \(broken)") }
        }
        try chaos.end()
        #expect(chaos.broken == nil, "seed \(seed): \(chaos.broken ?? "")")
        print("chaos\(withStore ? " with a store" : ""): \(kills) kills, \(chaos.summary)")
    }

    private func number(_ name: String) -> Int? {
        getenv("GREENROOM_CHAOS_\(name)").flatMap { Int(String(cString: $0)) }
    }
}

/// A daemon with apps that is killed at random moments, and the invariants that are checked.
private struct Chaos {
    private var daemon: TestDaemon
    private var random: Dice
    private let apps: [String]
    private(set) var broken: String?
    private var requests = 0
    private var exact = 0
    private var alive = 0
    private var recovery: [Duration] = []

    init(seed: UInt64, withStore: Bool) throws {
        random = Dice(seed)
        let lifecycle = """
            [Lifecycle]
            SuspendDelaySec=20ms
            LaunchDeadlineSec=2s
            BackgroundDeadlineSec=2s
            BackgroundTimeSec=1h
            """
        let root = try TestDaemon.makeFolder()
        var manifests: [String: String] = [:]
        for (name, script) in [
            ("plain", "store state"), ("family", "fork 3"), ("task", "begin upload"), ("stops", "background=stop"),
            ("tasks", "background=task:sync expire=end:sync"), ("exits", "term=exit:3"),
        ] {
            manifests[name] = TestDaemon.manifest(
                script, app: "Environment=TRACE=\(root)/trace-\(name)", lifecycle)
        }
        manifests["unaware"] = "[App]\nStartupSec=0\nExecStart=/bin/sleep 100000\n" + lifecycle
        apps = manifests.keys.sorted()
        daemon = try TestDaemon(
            manifests, configuration: "[Manager]\nForegroundLimit=2\n[Memory]\nCriticalAvailable=0\n", root: root,
            manager: withStore ? FakeServiceManager(in: root) : nil)
    }

    var summary: String {
        let slowest = recovery.max() ?? .zero
        return "\(requests) requests, \(alive) times an app lived through one, \(exact) times the state was compared "
            + "whole; the slowest start took \(slowest)"
    }

    mutating func play(_ round: Int) throws {
        let isExact = round % 4 == 0
        for _ in 0..<(1 + random.below(6)) { try ask() }
        if isExact { try settle() } else { wait(microseconds: random.below(random.below(2) == 0 ? 2_000 : 40_000)) }
        let before = isExact ? try facts() : []
        daemon.crash()
        let world = try World(daemon, apps)
        wait(microseconds: random.below(3) == 0 ? random.below(100_000) : 0)
        let start = EventLoop.now()
        daemon = try daemon.successor()
        recovery.append(EventLoop.now() - start)
        try compare(world, try World(daemon, apps))
        if isExact {
            let after = try facts()
            if before != after {
                broken =
                    "the state before was\n\(before.joined(separator: "\n"))\nand after it\n\(after.joined(separator: "\n"))\n"
                    + zip(apps, zip(before, after)).filter { $1.0 != $1.1 }.map { log(of: $0.0) }.joined(
                        separator: "\n")
            }
            exact += 1
        }
    }

    /// Ends the daemon: each launch has one receipt, and no process or group is left.
    mutating func end() throws {
        try settle()
        for app in apps {
            let launches = try daemon.status(app)["launches"]?.integerValue ?? 0
            let receipts = try daemon.receipts(app)
            let runs = try daemon.state(app) == "notRunning" ? 0 : 1
            // What is ended before its program is executed has a receipt, but was no launch (L9).
            let early = receipts.count { $0["state"]?.stringValue == "launching" }
            let possible = Int64(receipts.count - early + runs)...Int64(receipts.count + runs)
            if !possible.contains(launches) {
                broken = "\(app): \(launches) launches, \(receipts.count) receipts, \(runs) runs"
            }
        }
        try checkReceipts()
        if let manager = daemon.manager {
            let running = try apps.count { try daemon.state($0) != "notRunning" }
            try daemon.eventually("the store has three of each that runs, and one restoration state") {
                let names = try manager.names()
                let stored = names.count { $0.hasPrefix("stored-") }
                return names.count - stored == 3 * running && stored <= 1
            }
        }
        if daemon.stop() != .exited(0) { broken = "the last daemon did not stop" }
    }

    // MARK: Load

    private mutating func ask() throws {
        requests += 1
        let app = random.pick(apps)
        let nothing = Variant.dictionary([])
        let (member, more): (String, [Variant]) =
            switch random.below(12) {
            case 0...2: ("Launch", [nothing])
            case 3: ("Launch", [.dictionary([("background", .bool(true))])])
            case 4, 5: ("Activate", [])
            case 6...8: ("Background", [])
            case 9: ("Terminate", [.bool(random.below(4) == 0)])
            case 10: (random.below(2) == 0 ? "Interrupt" : "Resume", [])
            default: ("Send", [.string("battery"), .string("\(random.below(3))")])
            }
        _ = try daemon.bus.callAsync(
            path: ControlNames.managerPath, interface: ControlNames.managerInterface, member: member,
            [.string(app)] + more, timeout: .seconds(60))
    }

    private func wait(microseconds: Int) { if microseconds > 0 { usleep(UInt32(microseconds)) } }

    /// Waits until no transition is in progress: each app is in a state in which it may stay. The end of one's transition may begin
    /// another's, and the daemon makes the records of a list one after the other: two lists have to be the same.
    private func settle() throws {
        // List is answered before what the core has not handled yet, and a daemon that has recovered may have requests that wait. The core
        // handles this one after them, and answers or refuses it.
        _ = try? daemon.ask("Send", apps[0], [.string("battery"), .string("0")])
        var last: [String?] = []
        try daemon.eventually("no transition is in progress") {
            let list = JSONValue(try daemon.call("List")[0]).arrayValue ?? []
            let states = list.map { $0["state"]?.stringValue }
            defer { last = states }
            return list.count == apps.count && states == last && list.allSatisfy(isSettled)
        }
    }

    private func isSettled(_ status: JSONValue) -> Bool {
        switch status["state"]?.stringValue {
        case "active", "inactive", "suspended": true
        // A launch may wait until others no longer compute (L52). What ended early in the foreground is launched again (L11).
        case "notRunning": status["launchWaitingSeconds"] == nil && status["relaunchInSeconds"] == nil
        // An app with a task that it never ends may stay in the background.
        case "background":
            !(status["tasks"]?.arrayValue ?? []).isEmpty && status["deadline"]?["what"]?.stringValue == "backgroundTime"
        default: false
        }
    }

    // MARK: Checks

    /// The last lines of the daemons' log about an app.
    private func log(of app: String) -> String {
        let lines = TestDaemon.text(of: daemon.root + "/log").split(separator: "\n")
        return lines.filter { $0.contains(" \(app): ") || $0.contains("greenroomd ") }.suffix(40).joined(
            separator: "\n")
    }

    private func facts() throws -> [String] {
        try apps.map { app in
            let status = try daemon.status(app)
            let tasks = status["tasks"]?.arrayValue?.compactMap { $0["name"]?.stringValue } ?? []
            let frozen = try daemon.state(app) == "notRunning" ? false : daemon.frozen(app)
            return "\(app): \(status["state"]?.stringValue ?? "?"), pid \(status["pid"]?.integerValue ?? 0), launched "
                + "\(status["launches"]?.integerValue ?? 0) times, tasks \(tasks), foreground "
                + "\(status["foreground"]?.boolValue ?? false), frozen \(frozen), receipts \(try daemon.receipts(app).count)"
        }
    }

    /// Between the two states only the kernel and the apps have acted, and the daemon has carried out earlier decisions.
    private mutating func compare(_ before: World, _ after: World) throws {
        try checkReceipts()
        for app in apps {
            let groups = after.groups.filter { $0.app == app && !$0.pids.isEmpty }
            if groups.count > 1 { broken = "\(app) runs twice: \(groups)" }
            for group in before.groups where group.app == app {
                // Zombies, and apps that were ending, may have ended: then there is a receipt.
                guard let same = after.groups.first(where: { $0.path == group.path }), !same.pids.isEmpty else {
                    if !group.pids.isEmpty, try !isEnding(app) {
                        broken = "\(app) is gone and was not ended: \(group)"
                    }
                    continue
                }
                alive += 1
                // It may have ended since `after`. Then its group was empty before the daemon said so.
                if try daemon.state(app) == "notRunning",
                    try World(daemon, [app]).groups.contains(where: { $0.path == group.path && !$0.pids.isEmpty })
                {
                    broken = "\(app) runs, and the daemon does not know of it: \(group)"
                }
            }
        }
    }

    /// Whether the app's end was requested: its receipt exists, or is about to be written.
    private func isEnding(_ app: String) throws -> Bool {
        if try daemon.state(app) == "terminating" { return true }
        guard let last = try daemon.receipts(app).last?["explanation"]?.stringValue else { return false }
        return last.contains("on request") || last.contains("removed")
    }

    /// No app has ended without a request, and no receipt blames an app for a message that the daemon lost.
    private mutating func checkReceipts() throws {
        for app in apps {
            for receipt in try daemon.receipts(app) {
                let words = receipt["explanation"]?.stringValue ?? ""
                guard !words.contains("on request"), !words.contains("removed") else { continue }
                broken = "\(app): \(receipt.serialized(pretty: false))"
            }
        }
    }
}

/// The cgroups of all apps, as the kernel shows them.
private struct World {
    struct Group: CustomStringConvertible {
        var path: String
        var app: String
        var pids: [Int32]
        var isFrozen: Bool
        var description: String { "\(path): processes \(pids)\(isFrozen ? ", frozen" : "")" }
    }
    var groups: [Group] = []

    init(_ daemon: TestDaemon, _ apps: [String]) throws {
        guard let root = daemon.groupRoot else { return }
        for name in (try? folderEntries(at: root)) ?? [] {
            guard let app = apps.first(where: { name.hasPrefix($0 + ".run") }) else { continue }
            let path = root + "/" + name
            let pids = TestDaemon.text(of: path + "/cgroup.procs").split(separator: "\n").compactMap { Int32($0) }
            let events = TestDaemon.text(of: path + "/cgroup.events")
            groups.append(
                Group(
                    path: path, app: app, pids: pids.filter(isAlive), isFrozen: events.contains("frozen 1")))
        }
    }
}
