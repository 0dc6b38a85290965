import Idleness
import LifecycleCore

/// Simulates the watch of suspended apps, and what apps do with their input (L50, L51).
extension World {
    /// How long the daemon waits before it arms a descriptor again.
    static let rearmTime = 100 * Microseconds.millisecond

    /// `Role=worker`, `Traffic=`, `WakeThreshold=`, `IdleSec=` and what belongs to them.
    mutating func addTraffic(to index: Int) {
        guard index < traffic.settings.count, index >= scenario.homeApps else { return }
        let settings = traffic.settings[index]
        if settings.isWorker {
            apps[index].policy.role = .worker
            if index % 2 == 0 || apps[index].policy.launchAtStart != nil {
                apps[index].policy.launchAtStart = .background
            }
        }
        apps[index].policy.wakesOnTraffic = settings.wakes
        apps[index].policy.wakeThreshold = settings.threshold
        apps[index].policy.idleTime = settings.idleTime
        apps[index].policy.keepAwake = settings.keepAwake
        apps[index].policy.requestTime = settings.requestTime
        apps[index].policy.idleProcessorShare = settings.idleProcessorShare
    }

    // MARK: What checkers ask

    /// Whether something arrived at the app that it has not read, as far as the core can know: one that another process has just
    /// continued may have read it.
    func hasUnread(_ app: Int) -> Bool {
        guard let run = apps[app].run else { return false }
        return traffic.runs[run].burst != nil || !traffic.runs[run].unread.isEmpty
            || runs[run].freezeLoss == .undelivered
    }

    /// Whether a thread of the run is in a call that cannot be watched.
    func isInUnwatchedCall(_ run: Int) -> Bool { traffic.runs[run].requests.contains(where: \.isUnwatched) }

    /// Whether the app is awake because its descriptors cannot be watched.
    func isLeftAwake(_ app: Int) -> Bool {
        guard let run = apps[app].run else { return false }
        return traffic.runs[run].isLeftAwake && apps[app].knownWakesOnTraffic
    }

    /// When the run last had something to do, however little.
    func lastWork(of run: Int) -> Microseconds {
        let policy = apps[runs[run].app].policy
        let state = traffic.runs[run]
        if state.hasUnread || hasClients(runs[run].app) { return now }
        if policy.keepAwake.contains(.connections), state.openConnections > 0 { return now }
        let tick = tick(of: runs[run].app)
        if policy.keepAwake.contains(.timers), tick != nil { return now }
        var last = max(state.lastWork, min(now, state.busyUntil), min(now, state.unsentUntil))
        for request in state.requests { last = max(last, lastWork(of: request, run)) }
        if tick != nil, state.openConnections > 0, policy.keepAwake.contains(.requests) {
            last = max(last, min(now, state.lastTransfer + policy.requestTime.microseconds))
        }
        return last
    }

    /// What a stopped app waits for ends when it is continued. Before it ends, a timer keeps the app awake for a moment.
    private func lastWork(of request: RunTraffic.Request, _ run: Int) -> Microseconds {
        if request.isUnwatched || request.isShort || mayLookShort(request, run) { return now }
        return request.until - now <= 3 * .second ? now : 0
    }

    func tick(of app: Int) -> Duration? { !isQuiet && app < traffic.settings.count ? traffic.settings[app].tick : nil }

    // MARK: The watch

    mutating func watchInput(_ run: Int, _ attempt: Int, onlyPeers: Bool) {
        traffic.runs[run].watch = RunTraffic.Watch(attempt: attempt, onlyPeers: onlyPeers)
        schedule(.watchOpens(attempt: attempt), for: run, after: traffic.random.within(50...3 * .millisecond))
    }

    mutating func watchOpens(_ run: Int, _ attempt: Int) {
        guard let watch = traffic.runs[run].watch, watch.attempt == attempt, !watch.isOpen, !watch.isLost else {
            return
        }
        traffic.runs[run].watch?.isOpen = true
        let app = runs[run].app
        let isSimple = app >= traffic.settings.count
        let found = isSimple ? InputWatch(watched: 4) : currentWatch(of: app)
        deliver(.run(runs[run].id, .traffic(.inputWatched(attempt: attempt, found))), after: 0)
        traffic.runs[run].isBlind = Self.isOutOfReach(found)
        if traffic.runs[run].isBlind { return faults.add(.notWatchable) }
        for unread in traffic.runs[run].unread { reportInput(run, unread.input.descriptor) }
        beginBurst(run)
        if !isSimple, !isQuiet, traffic.settings[app].isPestered, traffic.random.chance(900) {
            let delay = traffic.random.within(10 * .millisecond...800 * .millisecond)
            schedule(.pester(attempt: attempt), for: run, after: delay)
        }
    }

    /// Whether clients may not reach the app while it is suspended. What no daemon can watch is a property of the program.
    private static func isOutOfReach(_ watch: InputWatch) -> Bool {
        let refused = watch.unwatched.filter { $0.problem != .notSupported }
        return !refused.isEmpty && (watch.watched == 0 || refused.contains { $0.what == "process" })
    }

    /// Reports what is unread at a descriptor, at most once in `rearmTime`.
    private mutating func reportInput(_ run: Int, _ descriptor: Int32) {
        guard let watch = traffic.runs[run].watch, watch.isOpen, !watch.isLost, !traffic.runs[run].isBlind,
            let unread = traffic.runs[run].unread.first(where: { $0.input.descriptor == descriptor }),
            !watch.onlyPeers || unread.input.isHalfFull
        else { return }
        if let last = watch.reported[descriptor], now - last < Self.rearmTime {
            if traffic.runs[run].watch?.waiting.insert(descriptor).inserted ?? false {
                let arm = KernelAction.reportInput(attempt: watch.attempt, descriptor: descriptor)
                schedule(arm, for: run, after: last + Self.rearmTime - now)
            }
            return
        }
        traffic.runs[run].watch?.reported[descriptor] = now
        let arrived = RunEvent.traffic(.inputArrived(attempt: watch.attempt, unread.input))
        deliver(.run(runs[run].id, arrived), after: traffic.random.within(5...500))
    }

    mutating func rearm(_ run: Int, _ attempt: Int, _ descriptor: Int32) {
        guard traffic.runs[run].watch?.attempt == attempt else { return }
        traffic.runs[run].watch?.waiting.remove(descriptor)
        reportInput(run, descriptor)
    }

    mutating func stopWatchingInput(_ run: Int) {
        traffic.runs[run].watch = nil
        traffic.runs[run].burst?.next = RunTraffic.Burst.first
    }

    /// The daemon has died: its duplicates are closed, and what it measured is lost. What is unread stays.
    mutating func loseWatches() {
        for run in traffic.runs.indices {
            traffic.runs[run].watch?.isLost = true
            traffic.runs[run].burst?.next = RunTraffic.Burst.first
            traffic.runs[run].measured = []
            traffic.runs[run].waits = WaitHistory()
        }
    }

    // MARK: Input

    /// Something arrives at a run. A descriptor has one entry, however much arrives.
    mutating func arrive(_ input: Input, at run: Int) {
        guard runs[run].program == .running else { return }
        let ends = input.isEnd ? 1 : 0
        if let index = traffic.runs[run].unread.firstIndex(where: { $0.input.descriptor == input.descriptor }) {
            let before = traffic.runs[run].unread[index].input
            traffic.runs[run].unread[index].input.bytes += input.bytes
            traffic.runs[run].unread[index].input.isEnd = before.isEnd && input.isEnd
            traffic.runs[run].unread[index].input.isHalfFull = before.isHalfFull || input.isHalfFull
            traffic.runs[run].unread[index].ends += ends
        } else {
            traffic.runs[run].unread.append(RunTraffic.Unread(input: input, ends: ends))
        }
        if !traffic.waiting.contains(run) { traffic.waiting.append(run) }
        if !traffic.runs[run].isReadPlanned {
            traffic.runs[run].isReadPlanned = true
            plan(.readInput, by: run, after: traffic.random.within(50...20 * .millisecond))
        }
        reportInput(run, input.descriptor)
    }

    /// The app reads all that arrived, and works on it.
    mutating func readInput(_ run: Int) {
        let unread = traffic.runs[run].unread
        traffic.runs[run].isReadPlanned = false
        traffic.runs[run].unread = []
        traffic.runs[run].burst = nil
        traffic.runs[run].lastWork = now
        traffic.runs[run].lastTransfer = now
        traffic.waiting.removeAll { $0 == run }
        for item in unread {
            if item.ends > 0 { traffic.runs[run].lastWork = now }
            traffic.runs[run].connections = max(0, traffic.runs[run].connections - item.ends)
            if item.input.isEnd { continue }
            switch item.input.kind {
            case .listener:
                accept(run)
                beginRequest(run)
            case .stream: if traffic.random.chance(700) { beginRequest(run) }
            case .datagram, .pipe, .terminal, .timer, .event, .epoll:
                let time = traffic.random.within(10...30 * .millisecond)
                traffic.runs[run].use(time, at: now)
            }
        }
    }

    /// A client is connected until it closes the connection.
    private mutating func accept(_ run: Int) {
        guard !isQuiet, traffic.runs[run].connections < 50 else { return }
        traffic.runs[run].connections += 1
        schedule(.peerCloses, for: run, after: traffic.random.within(100 * .millisecond...60 * .second))
    }

    /// - Parameter isUnwatched: `nil`: drawn.
    mutating func beginRequest(_ run: Int, isUnwatched stated: Bool? = nil) {
        guard !isQuiet, traffic.runs[run].requests.count < 20 else { return }
        let time: Microseconds = traffic.random.pick([
            1 * .millisecond, 1 * .millisecond, 20 * .millisecond, 300 * .millisecond, 3 * .second, 20 * .second,
            90 * .second,
        ])
        let drawn = traffic.random.chance(200)
        let isUnwatched = stated ?? drawn
        traffic.runs[run].lastNumber += 1
        traffic.runs[run].requests.append(
            RunTraffic.Request(
                number: traffic.runs[run].lastNumber, since: now, until: now + time, isUnwatched: isUnwatched,
                lateness: pastLateness))
        // Most long requests wait for another program, without a byte.
        let share = traffic.random.pick([0, 0, 10, 2])
        if share > 0, time <= 3 * .second { traffic.runs[run].use(time / Microseconds(share), at: now) }
        plan(.answerRequests, by: run, after: time)
    }

    /// A worker enters a call that cannot be watched after it was looked at, and before it is frozen.
    mutating func workBeforeFreeze(_ run: Int) {
        guard !isQuiet, runs[run].app < traffic.settings.count, traffic.settings[runs[run].app].isWorker,
            traffic.race.chance(50)
        else { return }
        beginRequest(run, isUnwatched: true)
    }

    /// The app answers the requests whose time has come. The last bytes of some answers are under way for a while.
    mutating func answerRequests(_ run: Int) {
        let isOver = { [now, isQuiet] (request: RunTraffic.Request) in request.until <= now || isQuiet }
        for request in traffic.runs[run].requests where isOver(request) {
            traffic.runs[run].lastWork = now
            traffic.runs[run].lastTransfer = now
            recordServed(request, run)
            if !isQuiet, request.stream == nil, !request.isWrite, traffic.random.chance(300) {
                traffic.runs[run].unsentUntil = now + traffic.random.within(0...3 * .second)
            }
        }
        if !isQuiet { restStreams(run) }
        traffic.runs[run].requests.removeAll(where: isOver)
    }

    private mutating func recordServed(_ request: RunTraffic.Request, _ run: Int) {
        let state = traffic.runs[run]
        let isWork = request.stream != nil || request.isWrite
        guard isWork || !request.isUnwatched && !request.isShort, state.lastStop < request.since,
            !isWork || state.heldUpAt < request.since
        else { return }
        let kind: RunTraffic.Served.Kind = request.isWrite ? .write : request.isShort ? .piece : .timer
        traffic.served.append(
            RunTraffic.Served(
                kind: kind, run: run, since: request.since, due: request.stream?.due ?? request.until, at: now,
                lateness: request.lateness, excuse: isWork ? state.lateFreezes - request.lateFreezes : 0))
    }

    // MARK: Measurements

    mutating func measureWork(_ run: Int, _ kind: WorkLookKind) {
        let policy = apps[runs[run].app].policy
        var work = currentWork(of: run, policy, kind)
        if work.hasNewProcesses || work.isIncomplete { traffic.runs[run].lastWork = now }
        if kind == .first {
            traffic.runs[run].children = runs[run].children
            traffic.runs[run].waits.begin(at: now.duration)
        }
        let isBrief = kind == .first || kind == .brief
        // What is not looked at is there nevertheless.
        let requests = traffic.runs[run].requests.filter { $0.until > now }
        traffic.runs[run].measured.append(
            RunTraffic.Measured(
                work: work, kind: kind, isInUnwatchedCall: requests.contains(where: \.isUnwatched),
                isInShortWait: requests.contains {
                    !$0.isUnwatched && $0.isShort && !mayBeTick($0, run) && !isTimer($0, of: run, work.due)
                }))
        if isBrief {
            work = RunWork(cpu: work.cpu)
            work.isBrief = true
        } else {
            traffic.runs[run].children = runs[run].children
        }
        // Other work of the daemon may come before it.
        let delay = traffic.random.within(kind == .first && traffic.random.chance(200) ? 500...30_000 : 5...500)
        let time = max(traffic.runs[run].measuredAt, now + delay)
        traffic.runs[run].measuredAt = time
        queue.push(.deliver(.run(runs[run].id, .traffic(.workMeasured(work)))), at: time)
    }

    /// Whether a short wait ends when a timer is due, which wakes the app in time.
    private func isTimer(_ wait: RunTraffic.Request, of run: Int, _ due: Instant?) -> Bool {
        let others = traffic.runs[run].requests.filter { !$0.isShort }.map(\.until) + [due?.microseconds ?? -1]
        return others.contains { abs($0 - wait.until) < 100 * .millisecond }
    }

    private mutating func currentWork(of run: Int, _ policy: AppPolicy, _ kind: WorkLookKind) -> RunWork {
        let state = traffic.runs[run]
        var work = RunWork(cpu: state.processorTime(at: now).duration)
        if kind == .full || kind == .moment { judgeWaits(of: run, policy, &work) }
        work.isRunnable = work.isRunnable || state.busyUntil > now && runs[run].program == .running
        work.hasNewProcesses = state.children != runs[run].children
        for unread in state.unread where !unread.input.isEnd { work.unread += max(1, unread.input.bytes) }
        work.unread += UInt64(state.burst?.count ?? 0) + UInt64(sockets.apps[runs[run].app].clients.count)
        work.unsent = UInt64(max(0, state.unsentUntil - now))
        let isUnreadOwn = state.unread.allSatisfy { $0.input.isEnd || $0.input.source == .own }
        work.isOwn = work.unread > 0 && isUnreadOwn && !hasClients(runs[run].app)
        work.connections = state.openConnections
        if work.tick != nil, state.openConnections > 0 { work.traffic = (now - state.lastTransfer).duration }
        work.isIncomplete = !isQuiet && traffic.random.chance(10)
        return work
    }

    /// Each request is a thread. One more waits for input, and one in ticks.
    private mutating func judgeWaits(of run: Int, _ policy: AppPolicy, _ work: inout RunWork) {
        var threads = [ThreadSighting(thread: 1, activity: .waiting(Wait(call: 1)))]
        if let tick = tick(of: runs[run].app) {
            let wait = Wait(call: 2, length: tick, due: now.duration + tick / 2, stamp: UInt64(now))
            threads.append(ThreadSighting(thread: 2, activity: .waiting(wait)))
        }
        for request in traffic.runs[run].requests {
            if let stream = request.stream {
                threads.append(sighting(of: request, stream, run))
                continue
            }
            let wait = Wait(
                call: 3, length: (request.until - request.since).duration, due: request.until.duration,
                stamp: UInt64(request.since))
            threads.append(
                ThreadSighting(
                    thread: 2 + request.number,
                    activity: request.isUnwatched ? .unwatched(call: 4) : .waiting(wait)))
        }
        let verdict = traffic.runs[run].waits.judge(
            threads, at: now.duration, idleTime: policy.idleTime, isFrozen: runs[run].freezer == .frozen)
        keepRests(run)
        switch verdict.work {
        case .unwatched: work.wait = .unwatchedCall
        case .shortWait: work.wait = .short
        case .unreadable: work.wait = .unreadable
        case .running, .uninterruptible: work.isRunnable = true
        case nil: break
        }
        work.tick = verdict.tick
        work.due = verdict.due.map { Instant(sinceOrigin: $0) }
    }

    /// Whether an app that has this to do may not be suspended. Once it has said that it has nothing to do, what it had before does
    /// not count.
    private func isSurelyWorking(_ run: Int, _ measured: RunTraffic.Measured) -> Bool {
        let work = measured.work
        let awake = apps[runs[run].app].policy.keepAwake
        let isHinted = traffic.runs[run].hintedAt != nil
        let computes = !isHinted && awake.contains(.cpu) && work.isRunnable
        let isWaiting = measured.isInUnwatchedCall || !isHinted && measured.isInShortWait
        // What a program does beside ticks shows in its traffic only.
        let hasTraffic = work.traffic.map { $0 < apps[runs[run].app].policy.requestTime } ?? false
        let mayHide = work.tick != nil && hasTraffic && awake.contains(.requests) && !isHinted && measured.kind == .full
        return work.unread > 0 || computes || isWaiting || mayHide
            || awake.contains(.connections) && work.connections > 0
    }

    /// The core receives the outcome of a measurement.
    mutating func workDelivered(_ run: Int) {
        guard !traffic.runs[run].measured.isEmpty else { return }
        traffic.runs[run].hadWork = isSurelyWorking(run, traffic.runs[run].measured.removeFirst())
    }
}
