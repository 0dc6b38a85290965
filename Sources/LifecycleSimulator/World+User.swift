import LifecycleCore

/// Simulates users, scripts and the administrator.
extension World {
    mutating func actAsUser() {
        if isQuiet { return }
        let pace = scenario.pace
        let pause = userRandom.pick([pace / 20, pace / 4, pace, pace * 3])
        queue.push(.user, at: now + 1 + userRandom.within(0...pause))
        if injects(.requestBurst) {
            for _ in 0..<(2 + userRandom.below(20)) { sendRequest() }
            return
        }
        if injects(.simulatedPressure) {
            lastRequest += 1
            let level = userRandom.pick(MemoryLevel.allCases)
            return deliver(.memory(.pressureSimulated(RequestID(lastRequest), level)), after: 0)
        }
        if injects(.reconfigured) {
            manager = userRandom.managerPolicy(total: scenario.totalMemory, isTight: scenario.isMemoryTight)
            balanceJetsam()
            limitLaunches()
            limitContinuedTasks()
            return deliver(.configuration(.configured(manager)), after: 0)
        }
        if administrate() { return }
        requestScene()
        cancelTask()
        sendRequest()
        if injects(.requestAbandoned) {
            let id = lastRequest - UInt64(userRandom.below(Int(min(lastRequest, 20))))
            deliver(.requestAbandoned(RequestID(id)), after: userRandom.within(0...300 * .millisecond))
        }
    }

    /// Adds, changes or removes a manifest.
    private mutating func administrate() -> Bool {
        let index = userRandom.below(apps.count)
        if !apps[index].isRegistered {
            if userRandom.chance(200) {
                register(index)
                return true
            }
            return false
        }
        if injects(.reregistered) {
            register(index)
            return true
        }
        if injects(.unregistered) {
            apps[index].isRegistered = false
            deliver(.configuration(.unregistered(apps[index].id)), after: 0)
            return true
        }
        return false
    }

    private mutating func sendRequest() {
        lastRequest += 1
        let request = RequestID(lastRequest)
        if injects(.invalidRequest) {
            if userRandom.chance(30) { return deliver(.configuration(.started), after: 0) }
            return deliver(.requested(request, unusualApp(), invalidRequest()), after: 0)
        }
        // Half of the requests are for the first two apps.
        let candidates = userRandom.chance(500) ? min(2, apps.count) : apps.count
        let app = apps[userRandom.below(candidates)].id
        let what = randomRequest()
        deliver(.requested(request, app, what), after: 0)
        if case .open = what { openSeveral(app) }
        // Half of the clients that an interruption is tied to disconnect soon.
        if what == .interruptWhileConnected, lastRequest % 2 == 0, scenario.rates[Fault.requestAbandoned.rawValue] > 0 {
            deliver(.requestAbandoned(request), after: 20 * .millisecond)
        }
    }

    private mutating func randomRequest() -> Request {
        switch userRandom.weighted([20, 10, 4, 9, 16, 6, 6, 6, 2, 10, 11]) {
        case 0: return .activate
        case 1:
            let isURL = userRandom.chance(300)
            return isURL ? urlRequest() : .launch(.foreground, reason: .user, url: nil)
        case 2: return .launch(.background, reason: .user, url: nil)
        case 3:
            let reasons: [LaunchReason] = [.push, .fetch, .socket, .timer, .accessory, .location]
            return .launch(.background, reason: userRandom.pick(reasons), url: nil)
        case 4: return .background
        case 5: return lastRequest % 3 == 0 ? .interruptWhileConnected : .interrupt
        case 6: return .endInterruption
        case 7: return .terminate
        case 8: return .remove
        case 9: return .push(payload: "message \(userRandom.below(1000))")
        default: return .send(change())
        }
    }

    /// Sends more requests to one app than may wait, and then a request to end it.
    mutating func floodWithRequests() {
        if isQuiet { return }
        queue.push(.flood, at: now + floodRandom.within(scenario.pace * 20...scenario.pace * 200))
        faults.add(.requestFlood)
        let app = apps[floodRandom.below(floodRandom.chance(500) ? min(2, apps.count) : apps.count)].id
        let request: Request = floodRandom.pick([.activate, .background, .terminate, .terminate])
        for _ in 0..<floodRandom.within(60...100) { send(request, to: app) }
        send(floodRandom.pick([.terminate, .terminate, .remove]), to: app)
    }

    private mutating func send(_ request: Request, to app: AppID) {
        lastRequest += 1
        deliver(.requested(RequestID(lastRequest), app, request), after: 0)
    }

    private mutating func change() -> Notification {
        let kind =
            userRandom.chance(700)
            ? userRandom.pick(Notification.kinds) : "x-kind-\(userRandom.below(80))"
        guard let change = Notification(kind: kind, payload: ["on", "off", "dim"][userRandom.below(3)]) else {
            preconditionFailure("“\(kind)” is no kind")
        }
        return change
    }

    private mutating func unusualApp() -> AppID {
        let names = ["unknown", "x", String(repeating: "long", count: 32)]
        return userRandom.chance(500)
            ? apps[userRandom.below(apps.count)].id : AppID(userRandom.pick(names)) ?? apps[0].id
    }

    private mutating func invalidRequest() -> Request {
        let requests: [Request] = [
            .endInterruption, .endInterruption, .interrupt, .background, .launch(.foreground, reason: .push, url: nil),
            .launch(.background, reason: .url, url: ""), .launch(.background, reason: .relaunch, url: nil), .terminate,
            .push(payload: ""),
        ]
        return userRandom.pick(requests)
    }

    // MARK: Quiet

    /// Ends requests and faults. What was stuck continues, apps send all answers that are due, and memory suffices.
    mutating func stopFaults() {
        isQuiet = true
        if isLocked { unlock() }
        if let sleep { awake(from: sleep) }
        isUnmounted = false
        otherMemory = scenario.totalMemory / 10
        returning = []
        acceptAll()
        for case let run? in apps.map(\.run) where !runs[run].isEmpty {
            recover(run)
            endModes(of: run)
        }
    }

    private mutating func recover(_ run: Int) {
        runs[run].blockedUntil = min(runs[run].blockedUntil, now)
        runs[run].tracedInspectionsLeft = 0
        if runs[run].freezer == .freezing, runs[run].isFreezeStuck {
            runs[run].isFreezeStuck = false
            schedule(.freezeCompletes(attempt: runs[run].attempt), for: run, after: 1000)
        }
        if runs[run].program == .created { schedule(.exec, for: run, after: 1000) }
        guard runs[run].program == .running else { return }
        if runs[run].freezer != .frozen { setMemory(run, min(runs[run].memory, 16 << 20)) }
        if runs[run].isStopped, !runs[run].isAskedToFreeze {
            runs[run].isStopped = false
            send(run, .run(runs[run].id, .process(.continued)))
            performDeferred(run)
        }
        if !runs[run].isReady { plan(.ready, by: run, after: 1000) }
        if runs[run].isBackgroundAnswerDue { plan(.answerBackground, by: run, after: 1500) }
        endTraffic(of: run)
        plan(.endAllTasks, by: run, after: 2000)
        plan(.completeWake(.noData), by: run, after: 2500)
        if runs[run].isTerminateAnswerDue { plan(.exitOnTerminate, by: run, after: 3000) }
        if apps[runs[run].app].policy.watchdog != nil { plan(.heartbeat, by: run, after: 100) }
    }
}
