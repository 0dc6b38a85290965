import LifecycleCore
import Testing

@Suite("Coming back after jetsam")
struct ReturnTests {
    /// Two suspended apps exceed `Budget=`: `photos`, the larger one, is ended, and `mail`, which keeps 40 MiB of 100, leaves
    /// no space for it.
    private func crowded(_ policy: (inout AppPolicy) -> Void = { $0.relaunch = .always }) -> Harness {
        let harness = Harness("photos", policy: policy)
        harness.register("mail")
        harness.configure { $0.budget = 100 * mebibyte }
        harness.behave("mail") { $0.memory = 40 * mebibyte }
        harness.behave("photos") { $0.memory = 70 * mebibyte }
        harness.suspend("mail")
        // Its size is known from the freeze.
        harness.kernel.measures = false
        harness.launch("photos", .background)
        harness.advance(.seconds(1))
        harness.kernel.measures = true
        harness.handle(.memory(.measured(harness.kernel.reading)))
        #expect(victims(harness) == ["photos"])
        return harness
    }

    private func victims(_ harness: Harness) -> [String] {
        harness.receipts.filter { $0.namespace == .jetsam }.map(\.app.name)
    }

    private func waits(_ harness: Harness) -> [Duration] {
        harness.reports().compactMap { if case .relaunchScheduled(_, let after, _) = $0 { after } else { nil } }
    }

    @Test(
        "the only app of a kiosk, which exceeds Budget=, comes back into the foreground, with the delays of L11 (L11)")
    func kiosk() {
        let harness = Harness("kiosk") { $0.relaunch = .always }
        harness.configure { $0.budget = 100 * mebibyte }
        harness.behave("kiosk") { $0.memory = 80 * mebibyte }
        harness.launch("kiosk")
        harness.advance(.seconds(600))
        harness.behave("kiosk") { $0.memory = 120 * mebibyte }
        harness.advance(.seconds(10))
        #expect(harness.launches("kiosk").map(\.reason) == [.user, .relaunch])
        harness.advance(.seconds(82))
        #expect(harness.launches("kiosk").map(\.state) == Array(repeating: .foreground, count: 5))
        #expect(waits(harness) == [.seconds(10), .seconds(20), .seconds(40)] + waits(harness).dropFirst(3))
        harness.behave("kiosk") { $0.memory = 20 * mebibyte }
        harness.advance(.seconds(700))
        #expect(harness.state("kiosk") == .active)
        let count = harness.launches("kiosk").count
        harness.behave("kiosk") { $0.memory = 120 * mebibyte }
        harness.advance(.seconds(8))
        #expect(harness.launches("kiosk").count == count + 1)
    }

    @Test(
        "Relaunch=always and LaunchAtStart= bring an app back after jetsam; Relaunch=on-failure does not (L11)",
        arguments: [
            (AppPolicy.Relaunch.always, nil, true), (.no, .background, true), (.no, .foreground, true),
            (.onFailure, nil, false), (.no, nil, false), (.onFailure, LaunchState.background, true),
        ])
    func policies(relaunch: AppPolicy.Relaunch, atStart: LaunchState?, comesBack: Bool) {
        let harness = Harness("photos") {
            $0.relaunch = relaunch
            $0.launchAtStart = atStart
        }
        harness.suspend("photos")
        harness.simulate(.critical)
        harness.simulate(.normal)
        harness.advance(.seconds(2))
        #expect(harness.receipts.map(\.namespace) == [.jetsam])
        #expect(harness.launches("photos").count == (comesBack ? 2 : 1))
        #expect(harness.state("photos") == (comesBack ? .suspended : .notRunning))
    }

    @Test("an app that waits for space and becomes the home app meanwhile is among the first (L11, L49)")
    func becomesHome() {
        let harness = crowded {
            $0.relaunch = .always
            $0.role = .home
        }
        // After each event the harness compares the order of returns with what follows from the policies.
        harness.register("mail") { $0.role = .home }
        harness.register("mail") { $0.role = .app }
        #expect(harness.state("photos") == .notRunning)
    }

    @Test("an app that exits when jetsam notifies it comes back too (L11, L40)")
    func notified() {
        let harness = Harness("photos") {
            $0.relaunch = .always
            $0.suspendDelay = .seconds(60)
        }
        harness.kernel.others = 15 * gibibyte + 200 * mebibyte
        harness.launch("photos", .background)
        for _ in 0..<4 {
            harness.handle(.memory(.pressureStalled(.warning)))
            harness.advance(.seconds(2))
        }
        #expect(harness.receipts.map(\.namespace) == [.jetsam])
        harness.kernel.others = gibibyte
        harness.advance(.seconds(35))
        #expect(harness.launches("photos").count == 2)
    }

    @Test(
        "an app waits until its last footprint fits above the warning threshold, and that is reported once (L11, L39)")
    func waitsForSpace() {
        let harness = Harness("photos") { $0.relaunch = .always }
        harness.register("mail")
        harness.behave("photos") { $0.memory = gibibyte }
        harness.suspend("mail")
        harness.suspend("photos")
        harness.kernel.others = 14 * gibibyte + 400 * mebibyte
        harness.handle(.memory(.pressureStalled(.critical)))
        harness.advance(.seconds(60))
        #expect(victims(harness) == ["photos"])
        #expect(harness.view("photos").memoryAwaited == gibibyte)
        // 1 GiB is the threshold, and a tenth of it is the distance at which a warning ends.
        let threshold = gibibyte + gibibyte / 10
        harness.kernel.others = harness.kernel.total - threshold - gibibyte - 9 * mebibyte
        harness.advance(.seconds(120))
        #expect(harness.state("photos") == .notRunning)
        harness.kernel.others -= 2 * mebibyte
        harness.advance(.seconds(30))
        #expect(harness.state("photos") == .suspended)
        #expect(harness.view("photos").memoryAwaited == nil)
        let reports = harness.reports().filter { $0 == .memoryAwaited(id("photos"), gibibyte) }
        #expect(reports.count == 1)
        #expect(victims(harness) == ["photos"])
    }

    @Test(
        "an app that waits for space within Budget= comes back at the end of another app, and causes no end (L11, L39)")
    func budget() {
        let harness = crowded()
        harness.advance(.seconds(300))
        #expect(harness.state("photos") == .notRunning)
        #expect(harness.state("mail") == .suspended)
        #expect(harness.view("photos").memoryAwaited == 70 * mebibyte)
        harness.terminate("mail")
        harness.advance(.milliseconds(1200))
        #expect(harness.state("photos") == .suspended)
        #expect(harness.launches("photos").last?.reason == .relaunch)
        #expect(victims(harness) == ["photos"])
    }

    @Test("memory is measured for apps that wait at intervals that double up to 30s, and then not at all (L11)")
    func measurements() {
        let harness = crowded()
        harness.advance(.seconds(60))
        let mark = harness.mark
        harness.advance(.seconds(300))
        #expect(harness.effects(since: mark).count { $0 == .measureMemory } == 10)
        harness.terminate("photos")
        #expect(harness.core.nextDeadline == nil)
    }

    @Test("a limit below the machine's memory is respected when an app comes back (L39)")
    func limit() {
        let harness = Harness("photos") { $0.relaunch = .always }
        harness.register("mail")
        harness.behave("photos") { $0.memory = 100 * mebibyte }
        harness.suspend("mail")
        harness.suspend("photos")
        harness.kernel.measures = false
        harness.simulate(.critical)
        harness.simulate(.normal)
        func measure(available: UInt64) {
            var reading = harness.kernel.reading
            reading.limit = .init(group: "/app", total: 1000 * mebibyte, available: available * mebibyte)
            harness.advance(.seconds(30))
            harness.handle(.memory(.measured(reading)))
        }
        // The threshold is 125 MiB.
        measure(available: 237)
        measure(available: 237)
        #expect(harness.launches("photos").count == 1)
        measure(available: 238)
        #expect(harness.launches("photos").count == 2)
    }

    @Test(
        "apps come back one by one, each after a measurement: from the foreground first, then by JetsamPriority= (L11)")
    func order() {
        let names = (0..<20).map { "worker-\($0)" }
        let harness = Harness()
        for (number, name) in names.enumerated() {
            harness.register(name) {
                $0.launchAtStart = .background
                $0.jetsamPriority = number % 4
            }
        }
        harness.register("front") { $0.relaunch = .always }
        harness.handle(.configuration(.started))
        harness.launch("front")
        harness.advance(.seconds(2))
        harness.kernel.others = 15 * gibibyte + 900 * mebibyte
        harness.handle(.memory(.pressureStalled(.critical)))
        harness.advance(.seconds(60))
        #expect(names.allSatisfy { harness.state($0) == .notRunning })
        harness.kernel.others = gibibyte
        let mark = harness.mark
        harness.advance(.seconds(60))
        #expect(names.allSatisfy { harness.state($0) == .suspended })
        #expect(harness.state("front") == .active)
        #expect(harness.killed(since: mark) == [])
        var isMeasured = false
        var order: [String] = []
        for effect in harness.effects(since: mark) {
            if effect == .measureMemory { isMeasured = true }
            guard case .spawn(let id, _, _) = effect else { continue }
            #expect(isMeasured, "\(id)")
            isMeasured = false
            order.append(id.name)
        }
        #expect(order.first == "front")
        let priorities = order.dropFirst().map { name in harness.policies[id(name)]!.jetsamPriority }
        #expect(priorities == priorities.sorted(by: >))
    }

    @Test("the footprint of an app that came back is kept free while it grows (L39)")
    func growth() {
        let harness = Harness("photos", "mail") { $0.relaunch = .always }
        harness.register("maps")
        for app in ["photos", "mail"] { harness.behave(app) { $0.memory = 40 * mebibyte } }
        harness.behave("maps") { $0.memory = 20 * mebibyte }
        for app in ["photos", "mail", "maps"] { harness.suspend(app) }
        for app in ["photos", "mail"] {
            harness.simulate(.critical)
            harness.simulate(.normal)
            #expect(victims(harness).last == app)
            harness.behave(app) { $0.memory = mebibyte }
        }
        harness.register("photos") { $0.suspendDelay = .seconds(600) }
        harness.configure { $0.budget = 100 * mebibyte }
        harness.advance(.seconds(20))
        #expect(harness.state("photos") == .background)
        #expect(harness.state("mail") == .notRunning)
        harness.advance(.seconds(15))
        #expect(harness.state("mail") == .suspended)
    }

    @Test(
        "an app that would not fit alone comes back when three quarters of the space are free (L11)",
        arguments: [10, 30])
    func tooLarge(helper: UInt64) {
        let harness = Harness("kiosk") {
            $0.relaunch = .always
            $0.suspendDelay = .seconds(60)
        }
        harness.register("helper")
        harness.configure { $0.budget = 100 * mebibyte }
        harness.behave("helper") { $0.memory = helper * mebibyte }
        harness.launch("helper")
        harness.behave("kiosk") { $0.memory = 120 * mebibyte }
        harness.launch("kiosk", .background)
        while victims(harness).isEmpty, harness.state("kiosk") == .background { harness.advance(.milliseconds(10)) }
        #expect(victims(harness) == ["kiosk"])
        harness.behave("kiosk") { $0.memory = 20 * mebibyte }
        harness.advance(.seconds(40))
        // 85 MiB are the space within the budget.
        #expect(harness.state("kiosk") == (helper == 10 ? .suspended : .notRunning))
    }

    // MARK: What a return gives way to

    @Test(
        "an app that waits for memory is not launched after a request or a manifest that says otherwise (L11)",
        arguments: ["terminate", "remove", "unregister", "shutdown", "manifest"])
    func cancelled(how: String) {
        let harness = crowded()
        switch how {
        case "terminate":
            let request = harness.terminate("photos")
            #expect(harness.answers[request] == .done(.notRunning))
        case "remove": harness.remove("photos")
        case "unregister": harness.unregister("photos")
        case "manifest": harness.register("photos") { $0.relaunch = .no }
        default: harness.handle(.shutdownRequested(immediately: false))
        }
        if how != "shutdown" { harness.terminate("mail") }
        harness.advance(.seconds(600))
        #expect(harness.launches("photos").count == 1)
        #expect(harness.core.nextDeadline == nil)
    }

    @Test("a user launches an app that waits for memory at once (L11)")
    func userLaunches() {
        let harness = crowded()
        let request = harness.launch("photos")
        #expect(harness.answers[request] == .done(.active))
        #expect(harness.view("photos").memoryAwaited == nil)
    }

    @Test("an app comes back into the background only if it has background time that no user asks for (L53)")
    func unrequestedTime() {
        let harness = Harness("photos") {
            $0.relaunch = .always
            $0.backgroundTimePerHour = .seconds(10)
        }
        harness.launch("photos", .background)
        harness.task("photos", "a")
        harness.advance(.seconds(20))
        harness.simulate(.critical)
        harness.simulate(.normal)
        harness.advance(.seconds(600))
        #expect(harness.state("photos") == .notRunning)
        #expect(harness.view("photos").relaunchesIn != nil)
        harness.advance(.seconds(3600))
        #expect(harness.launches("photos").count == 2)
    }

    @Test("while the level is not normal, no app comes back")
    func simulatedLevel() {
        let harness = Harness("photos") { $0.launchAtStart = .background }
        harness.suspend("photos")
        harness.simulate(.critical)
        harness.advance(.seconds(600))
        #expect(harness.state("photos") == .notRunning)
        harness.simulate(.normal)
        harness.advance(.seconds(2))
        #expect(harness.state("photos") == .suspended)
    }

    @Test("an app that was in the foreground comes back into the background if another one is there (L12)")
    func doesNotDisplace() {
        let harness = Harness("photos", "mail") { $0.relaunch = .always }
        harness.behave("photos") { $0.memory = 120 * mebibyte }
        harness.launch("photos")
        // At this level no app comes back.
        harness.simulate(.critical)
        harness.configure { $0.budget = 100 * mebibyte }
        harness.advance(.seconds(7))
        #expect(victims(harness) == ["photos"])
        harness.behave("photos") { $0.memory = 10 * mebibyte }
        harness.launch("mail")
        harness.simulate(.normal)
        harness.advance(.seconds(5))
        #expect(harness.state("mail") == .active)
        #expect(harness.launches("photos").map(\.state) == [.foreground, .background])
    }

    @Test("apps that wait for memory do so after a recovery")
    func recovery() throws {
        let harness = crowded()
        harness.advance(.seconds(60))
        let saved = try SavedCore(reading: harness.core.saved.bytes)
        var core = LifecycleCore(recovering: saved)
        #expect(core.difference(from: harness.core) == nil)
        #expect(core.view(of: id("photos"), at: harness.now)?.memoryAwaited == 70 * mebibyte)
        _ = core.handle(.recovered, at: harness.now)
        #expect(core.nextDeadline != nil)
    }
}
