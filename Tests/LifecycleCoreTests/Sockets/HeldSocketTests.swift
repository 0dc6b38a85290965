import Testing

@testable import LifecycleCore

@Suite("Held sockets")
struct HeldSocketTests {
    private static let web = id("web")
    private static let datagram = Input(kind: .datagram, pid: 0, descriptor: 4, bytes: 20, peer: "/run/web.sock")

    static func holder(_ policy: (inout AppPolicy) -> Void = { _ in }) -> Harness {
        Harness("web") {
            $0.holdsSockets = true
            policy(&$0)
        }
    }

    /// A program that fails as soon as it is launched, without accepting.
    private static func failing(_ policy: (inout AppPolicy) -> Void = { _ in }) -> Harness {
        let harness = holder(policy)
        harness.behave("web") { $0.launching = .fails(SpawnProblem(sentence: "no", exitStatus: 203)) }
        return harness
    }

    private static func rejections(_ harness: Harness) -> [Duration] {
        harness.reports().compactMap { if case .connectionsRejected(web, let after) = $0 { after } else { nil } }
    }

    private static func isWatched(_ harness: Harness) -> Bool { harness.core.apps[0].sockets.isWatched }

    // MARK: Launch and wake

    @Test("a connection launches an app that is not running, into the background and for its clients (L29)")
    func launches() throws {
        let harness = Self.holder()
        #expect(harness.effects == [.sockets(Self.web, .watch)])
        let mark = harness.mark
        harness.connect("web")
        #expect(harness.launches("web") == [first(Launch(state: .background, reason: .socket))])
        #expect(harness.view("web").awakeReasons == [.wake(.socket)])
        #expect(harness.core.apps[0].run?.isUnrequested == false)
        // The watch ended with its report.
        #expect(!harness.effects(since: mark).contains(.sockets(Self.web, .stopWatching)))
        harness.advance(.seconds(31))
        #expect(harness.state("web") == .suspended)
        #expect(harness.killed().isEmpty)
        #expect(harness.effects.count { $0 == .sockets(Self.web, .watch) } == 2)
    }

    private func first(_ launch: Launch) -> Launch {
        var launch = launch
        launch.isFirst = true
        return launch
    }

    @Test("a worker that a connection launches is awake while it works, without a wake of its own (L29, L49)")
    func launchesWorker() {
        let harness = Self.holder { $0.role = .worker }
        harness.connect("web")
        #expect(harness.launches("web").map(\.reason) == [.socket])
        #expect(harness.view("web").awakeReasons == [.suspendDelay])
        harness.advance(.seconds(10))
        #expect(harness.state("web") == .suspended)
    }

    @Test(
        "a connection wakes a suspended app, whatever Traffic= says (L29, L50)",
        arguments: [AppPolicy.Role.app, .worker], [true, false])
    func wakes(role: AppPolicy.Role, wakesOnTraffic: Bool) {
        let harness = Self.holder {
            $0.role = role
            $0.wakesOnTraffic = wakesOnTraffic
        }
        harness.launch("web", .background)
        harness.advance(.seconds(12))
        #expect(harness.state("web") == .suspended)
        harness.advance(.seconds(100))
        let mark = harness.mark
        harness.connect("web")
        #expect(harness.changes("web", since: mark) == ["background: woken"])
        #expect(harness.reports(since: mark).contains(.inputArrived(Self.web, Harness.connection)))
        let view = harness.view("web")
        #expect(view.trafficWakes == 1 && view.lastInput == Harness.connection && view.lastInputAt == harness.now)
        #expect(view.awakeReasons == (role == .worker ? [.suspendDelay] : [.wake(.socket)]))
        // It ends with its work (L50).
        harness.advance(.seconds(11))
        #expect(harness.state("web") == .suspended)
    }

    @Test("an app that was in the foreground is woken into the background (L29)")
    func wakesForegroundApp() {
        let harness = Self.holder()
        harness.launch("web")
        #expect(harness.effects.contains(.sockets(Self.web, .stopWatching)))
        harness.background("web")
        harness.advance(.seconds(1))
        #expect(harness.state("web") == .suspended)
        harness.connect("web")
        #expect(harness.state("web") == .background)
        #expect(harness.core.foregroundApps.isEmpty)
    }

    @Test("an app that does not accept is woken again and again, and stays awake for longer each time (L50)")
    func doesNotAccept() {
        let harness = Self.holder { $0.role = .worker }
        harness.behave("web") { $0.accepts = false }
        harness.connect("web")
        harness.advance(.seconds(600))
        let wakes = harness.view("web").trafficWakes
        #expect(3...12 ~= wakes)
    }

    // MARK: The watch

    @Test("the sockets are watched only while the app cannot accept, and late reports have no effect (L29)")
    func watchedByStage() {
        for stage in Stage.allCases {
            let harness = Self.holder()
            harness.move("web", to: stage)
            #expect(Self.isWatched(harness) == (stage == .notRunning || stage == .suspended), "\(stage)")
            if Self.isWatched(harness) { continue }
            let mark = harness.mark
            harness.handle(.socketsReady(Self.web, Harness.connection))
            #expect(harness.effects(since: mark).isEmpty, "\(stage)")
            let run = harness.core.run(of: Self.web)
            harness.finish("web", stage, run)
            #expect(Self.isWatched(harness) == [.notRunning, .suspended].contains(harness.state("web")), "\(stage)")
        }
    }

    @Test("what waits when an app ends launches it again (L29)")
    func afterEnd() {
        for stage in [Stage.terminating, .ending] {
            let harness = Self.holder()
            harness.move("web", to: stage)
            harness.connect("web")
            #expect(harness.launches("web").count == 1)
            harness.finish("web", stage, harness.run("web"))
            #expect(harness.launches("web").map(\.reason) == [.user, .socket], "\(stage)")
            #expect(harness.state("web") == .background)
        }
    }

    @Test("what waits when an app crashes launches it again, unless that was an early end (L11, L29)")
    func afterCrash() {
        for time in [Duration.seconds(11), .seconds(2)] {
            let harness = Self.holder()
            harness.launch("web")
            harness.advance(time)
            harness.connect("web")
            harness.crash("web")
            #expect(harness.launches("web").count == (time > .seconds(10) ? 2 : 1))
            harness.advance(.seconds(10))
            #expect(harness.launches("web").map(\.reason) == [.user, .socket])
        }
    }

    @Test("a manifest that is read again adds and removes sockets in every phase (L29)")
    func reload() {
        for stage in Stage.allCases {
            let harness = Harness("web")
            harness.move("web", to: stage)
            #expect(!harness.effects.contains(.sockets(Self.web, .watch)))
            harness.register("web") { $0.holdsSockets = true }
            #expect(Self.isWatched(harness) == (stage == .notRunning || stage == .suspended), "\(stage)")
            let mark = harness.mark
            let isWatched = Self.isWatched(harness)
            harness.register("web") { $0.holdsSockets = false }
            #expect(harness.effects(since: mark).contains(.sockets(Self.web, .stopWatching)) == isWatched)
            #expect(!Self.isWatched(harness))
            harness.register("web") { $0.holdsSockets = true }
            harness.finish("web", stage, harness.core.run(of: Self.web))
        }
    }

    @Test("a connection replaces a scheduled relaunch and the wait for memory after jetsam (L29)")
    func replaces() {
        let harness = Self.holder {
            $0.relaunch = .always
            $0.role = .worker
        }
        harness.configure { $0.budget = 100 * mebibyte }
        harness.behave("web") { $0.memory = 120 * mebibyte }
        harness.launch("web")
        harness.advance(.seconds(15))
        harness.configure { $0.budget = 100 * mebibyte }
        harness.handle(.memory(.measured(harness.kernel.reading)))
        harness.kernel.measures = false
        #expect(harness.state("web") == .notRunning)
        #expect(harness.view("web").memoryAwaited != nil || harness.view("web").relaunchesIn != nil)
        harness.connect("web")
        #expect(harness.launches("web").last?.reason == .socket)
        #expect(harness.view("web").memoryAwaited == nil && harness.view("web").relaunchesIn == nil)
    }

    @Test("a launch that no client asked for and that waits for a slot becomes one that clients wait for (L29, L52)")
    func joinsQueue() {
        let harness = Harness()
        harness.configure { $0.launchesAtOnce = 1 }
        for name in ["first", "other", "web"] {
            harness.register(name) {
                $0.launchAtStart = .background
                $0.holdsSockets = name == "web"
            }
            harness.behave(name) { $0.launching = .spawns }
        }
        harness.handle(.configuration(.started))
        #expect(harness.view("web").launchWaiting != nil)
        harness.connect("web")
        harness.connect("web")
        harness.behave("first") { $0.launching = .becomesReady }
        harness.handle(.run(harness.run("first"), .process(.executed)))
        #expect(harness.state("web") == .launching && harness.state("other") == .notRunning)
        #expect(harness.launches("web").map(\.isUnrequested) == [false])
    }

    // MARK: Launches that are held back

    @Test("while L11 holds a launch back, clients wait, and then the app is launched (L11, L29)")
    func postponed() {
        let harness = Self.failing()
        harness.connect("web")
        #expect(harness.launches("web").count == 1)
        harness.advance(.seconds(4))
        #expect(harness.view("web").connectionsWaiting == .seconds(4))
        #expect(harness.view("web").launchPostponed == .seconds(6))
        harness.behave("web") { $0.launching = .becomesReady }
        harness.advance(.seconds(5))
        #expect(harness.launches("web").count == 1)
        harness.advance(.seconds(1))
        #expect(harness.launches("web").map(\.reason) == [.socket, .socket])
        #expect(harness.state("web") == .background)
        #expect(harness.view("web").connectionsWaiting == nil)
        #expect(Self.rejections(harness).isEmpty)
    }

    @Test("clients that have waited for ConnectionWaitSec= are reset, and the next ones wait anew (L11, L29)")
    func rejects() {
        let harness = Self.failing { $0.connectionWait = .seconds(7) }
        harness.connect("web")
        harness.advance(.milliseconds(6999))
        #expect(!harness.effects.contains(.sockets(Self.web, .reject)))
        harness.advance(.milliseconds(1))
        #expect(harness.effects.contains(.sockets(Self.web, .reject)))
        #expect(Self.rejections(harness) == [.seconds(7)])
        #expect(Self.isWatched(harness))
        harness.advance(.seconds(1))
        harness.connect("web")
        #expect(harness.view("web").connectionsWaiting == .zero)
        harness.advance(.seconds(2))
        #expect(harness.launches("web").count == 2)
        #expect(Self.rejections(harness).count == 1)
        // The second launch has failed too, and is followed by 20 s.
        harness.advance(.seconds(5))
        #expect(Self.rejections(harness) == [.seconds(7), .seconds(7)])
    }

    @Test("the wait counts over failed launches, and nothing is reset while a launch is under way (L11, L29)")
    func overLaunches() {
        let harness = Self.failing { $0.connectionWait = .seconds(12) }
        harness.connect("web")
        harness.behave("web") {
            $0.launching = .executes
            $0.accepts = false
        }
        harness.register("web") { $0.readiness = .notified }
        harness.advance(.seconds(14))
        #expect(harness.state("web") == .launching)
        #expect(Self.rejections(harness).isEmpty)
        // The launch deadline is missed 15 s after the first launch.
        harness.advance(.seconds(1))
        #expect(harness.state("web") == .notRunning)
        #expect(Self.rejections(harness) == [.seconds(15)])
    }

    @Test("clients that have left meanwhile do not count: the wait of the next one is its own (L11, L29)")
    func clientsLeave() {
        let harness = Self.failing { $0.connectionWait = .seconds(5) }
        harness.kernel.clients = [:]
        harness.behave("web") { $0.launching = .spawns }
        harness.connect("web")
        harness.kernel.clients = [:]
        harness.crash("web")
        #expect(harness.view("web").connectionsWaiting == nil)
        harness.advance(.seconds(4))
        harness.connect("web")
        harness.advance(.seconds(4))
        #expect(Self.rejections(harness).isEmpty)
        #expect(harness.view("web").connectionsWaiting == .seconds(4))
    }

    @Test("with ConnectionWaitSec=infinity clients wait until the launch (L29)")
    func unlimited() {
        let harness = Self.failing { $0.connectionWait = nil }
        harness.connect("web")
        harness.advance(.seconds(2000))
        #expect(Self.rejections(harness).isEmpty)
        #expect(harness.launches("web").count > 5)
        #expect(harness.view("web").connectionsWaiting != nil)
    }

    @Test("datagrams stay, and are looked at again at bounded intervals (L29)")
    func datagrams() {
        let harness = Self.failing { $0.connectionWait = .milliseconds(1) }
        harness.connect("web", Self.datagram)
        let mark = harness.mark
        harness.advance(.seconds(9))
        #expect(Self.rejections(harness).isEmpty)
        #expect(harness.effects(since: mark).count { $0 == .sockets(Self.web, .watch) } == 9)
        harness.behave("web") { $0.launching = .becomesReady }
        harness.advance(.seconds(1))
        #expect(harness.state("web") == .background)
    }

    @Test("a user's launch serves the clients that wait, and ends what holds launches back (L11, L29)")
    func userLaunches() {
        let harness = Self.failing()
        harness.connect("web")
        harness.behave("web") { $0.launching = .becomesReady }
        harness.launch("web", .background)
        #expect(harness.view("web").awakeReasons == [.wake(.socket)])
        #expect(harness.view("web").connectionsWaiting == nil)
        harness.advance(.seconds(100))
        #expect(harness.launches("web").count == 2)
    }

    @Test("an app for which clients wait is not running: it cannot be terminated (L46)")
    func terminate() {
        let harness = Self.failing()
        harness.connect("web")
        let request = harness.terminate("web")
        #expect(harness.answers[request] == .refused(.notRunning))
        #expect(harness.view("web").connectionsWaiting == .zero)
    }

    @Test("an app that ends again and again without accepting is launched 5 times in 10s, not more (L11, L29)")
    func exitsWithoutAccepting() {
        let harness = Self.holder()
        harness.behave("web") { $0.accepts = false }
        harness.connect("web")
        for _ in 0..<100 {
            while harness.state("web") == .background { harness.exit("web") }
            harness.advance(.seconds(1))
        }
        #expect(40...60 ~= harness.launches("web").count)
        // One that serves a client each time is launched at once.
        let server = Self.holder()
        for _ in 0..<100 {
            server.connect("web")
            #expect(server.state("web") == .background)
            server.exit("web")
            server.advance(.seconds(3))
        }
        #expect(server.launches("web").count == 100)
    }

    // MARK: Removal, shutdown, recovery

    @Test("the watch ends when the manifest is removed, also while clients wait (L29)")
    func unregistered() {
        for isWaiting in [true, false] {
            let harness = Self.failing()
            if isWaiting { harness.connect("web") }
            let mark = harness.mark
            harness.unregister("web")
            #expect(harness.effects(since: mark) == (isWaiting ? [] : [.sockets(Self.web, .stopWatching)]))
            harness.advance(.seconds(100))
            #expect(harness.launches("web").count == (isWaiting ? 1 : 0))
            harness.behave("web") { $0.launching = .becomesReady }
            harness.kernel.clients = [:]
            harness.register("web")
            harness.connect("web")
            #expect(harness.state("web") == .background)
        }
    }

    @Test("the watch ends with a shutdown, and begins again if the next daemon cancels that (L29)")
    func shutdown() {
        let harness = Self.failing()
        harness.register("mail") { $0.holdsSockets = false }
        harness.behave("mail") { $0.terminating = .ignores }
        harness.launch("mail")
        harness.handle(.shutdownRequested(immediately: false))
        #expect(!Self.isWatched(harness))
        let mark = harness.mark
        harness.handle(.socketsReady(Self.web, Harness.connection))
        #expect(harness.effects(since: mark).isEmpty)
        harness.handle(.recovered)
        #expect(Self.isWatched(harness))
    }

    @Test("the next daemon is asked for all watches again, and clients keep the time that they have waited (L29)")
    func recovered() throws {
        let harness = Self.failing { $0.connectionWait = .seconds(8) }
        harness.connect("web")
        harness.advance(.seconds(3))
        let core = LifecycleCore(recovering: try SavedCore(reading: harness.core.saved.bytes))
        #expect(core.difference(from: harness.core) == nil)
        let mark = harness.mark
        harness.handle(.recovered)
        #expect(harness.effects(since: mark).contains(.sockets(Self.web, .watch)))
        #expect(harness.view("web").connectionsWaiting == .seconds(3))
        harness.advance(.seconds(5))
        #expect(Self.rejections(harness) == [.seconds(8)])
        // Nothing waits any more: the watch that lasts is asked for again.
        let second = harness.mark
        harness.handle(.recovered)
        #expect(harness.effects(since: second) == [.sockets(Self.web, .watch)])
    }

    @Test("an app without sockets needs no byte for them in the saved state")
    func saved() throws {
        let harness = Self.failing()
        let plain = Harness("web").core.saved.bytes.count
        #expect(Self.holder().core.saved.bytes.count == plain + 4)
        harness.connect("web")
        let core = LifecycleCore(recovering: try SavedCore(reading: harness.core.saved.bytes))
        #expect(core.apps[0].sockets == harness.core.apps[0].sockets && core.nextDeadline == harness.core.nextDeadline)
    }
}
