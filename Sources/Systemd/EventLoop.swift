import CSystemd
import Glibc
package import LoopPolicy
package import Posix

/// The event loop of a program (sd-event(3)). It belongs to the thread that created it; neither the loop nor its sources are
/// Sendable. Create it in a plain function, not in an `async` or main-actor one.
///
/// A turn of the loop serves one source: of the pending sources of the most urgent level (`LoopLevel`) the one that has been
/// pending longest. `SourceKind` is the table of all sources, and `LoopPolicy` bounds what a level and an app may use, so that each
/// source is reached.
///
/// Handlers do not throw, and libsystemd always gets success: it disables a source whose handler returns an error.
package final class EventLoop {
    /// The sd_event object.
    let event: OpaquePointer
    private var deferred: [() -> Void] = []
    private var deferredCall: DeferredCall?
    /// Work in small pieces, for what would be a long turn.
    package private(set) lazy var work = WorkQueue(loop: self, kind: .work)
    /// The same for answers to clients, which do not wait for the work of apps.
    package private(set) lazy var controlWork = WorkQueue(loop: self, kind: .controlWork)
    private var policy = LoopPolicy()
    private var appDescriptors: AppDescriptors?
    /// Sources that wait for the end of the round.
    private var waiting: [HandlerState] = []
    private lazy var roundEnd = DeferredCall(loop: self, kind: .round) { [unowned self] in endRound() }
    /// Apps whose sources wait, in the order in which that ends.
    private var pausedShares: [(share: AppShare, end: Duration)] = []
    private var pauseTimer: Timer?
    /// Called when a source was switched off because nothing came of its turns, with the file that created it.
    package var onSwitchedOff: ((SourceKind, StaticString) -> Void)?
    /// How many sources were switched off.
    package private(set) var switchedOff = 0
    private var yields = YieldBudget()
    private var heartbeat: Heartbeat?
    private var heartbeatTimer: Timer?
    private var sendHeartbeat: () -> Void = {}
    /// The time of the turn's budget and of its measurement; tests replace it.
    package var clock: () -> Duration = EventLoop.now
    /// The processor time of this thread; tests replace it.
    package var processorClock: () -> Duration = EventLoop.processorTime
    /// How many turns were served, without the ends of rounds.
    package private(set) var servedTurns = 0
    /// When the current turn began; `nil` between two turns.
    private var turnStart: Duration?
    /// When the turn looked for waiting events last, or began, and whether it has found one.
    private var awaitedLook = (at: Duration.zero, found: false)
    /// What the current turn is attributed to, if it is over.
    private var turnSource: StaticString = ""
    /// The longest turn so far.
    package private(set) var longestTurn = LongTurn(duration: .zero, processorTime: .zero, source: "")
    /// Called after a turn that took longer than `longTurn`.
    package var onLongTurn: ((LongTurn) -> Void)?

    /// A turn, and the file that created the source that it served, or the job of its last piece of work.
    package struct LongTurn {
        package let duration: Duration
        /// How long it was on a processor; the rest of the time it waited for one, or for a device.
        package let processorTime: Duration
        package let source: String
    }

    package init() throws(SystemError) {
        var event: OpaquePointer?
        try check(sd_event_new(&event), "sd_event_new")
        guard let event else { throw SystemError(call: "sd_event_new", errno: ENOMEM) }
        self.event = event
    }

    deinit {
        appDescriptors = nil
        deferredCall = nil
        sd_event_unref(event)
    }

    // MARK: Running

    /// Serves events until `exit` is called, and returns its code.
    package func run() throws(SystemError) -> Int32 {
        try check(sd_event_loop(event), "sd_event_loop")
    }

    /// Makes `run` return this code after the current handler.
    package func exit(_ code: Int32) {
        sd_event_exit(event, code)
    }

    /// Runs one turn: serves at most one source, and waits for it for at most `timeout` (`nil`: without limit). The end of a round,
    /// and a source that has to wait for it, are no turns.
    /// - Returns: whether a source was served. `false` at the timeout and after `exit`.
    @discardableResult
    package func runOnce(timeout: Duration?) throws(SystemError) -> Bool {
        let end = timeout.map { Self.now() + $0 }
        let before = servedTurns
        while servedTurns == before {
            guard sd_event_get_state(event) != SD_EVENT_FINISHED else { return false }
            let rest = end.map { max($0 - Self.now(), .zero).wholeMicroseconds } ?? UInt64.max
            guard try check(sd_event_run(event, rest), "sd_event_run") > 0 else { return false }
        }
        return true
    }

    /// The time of CLOCK_MONOTONIC: since boot, without the time in which the machine slept (L48).
    package static func now() -> Duration {
        var time = timespec()
        let result = clock_gettime(CLOCK_MONOTONIC, &time)
        precondition(result == 0, "clock_gettime(CLOCK_MONOTONIC) cannot fail")
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }

    /// The time of CLOCK_BOOTTIME: since boot, with the time in which the machine slept, as in the start times of processes.
    package static func bootTime() -> Duration {
        var time = timespec()
        let result = clock_gettime(CLOCK_BOOTTIME, &time)
        precondition(result == 0, "clock_gettime(CLOCK_BOOTTIME) cannot fail")
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }

    private static func processorTime() -> Duration {
        var time = timespec()
        let result = clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        precondition(result == 0, "clock_gettime(CLOCK_THREAD_CPUTIME_ID) cannot fail")
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }

    /// The time of CLOCK_MONOTONIC, read at each call.
    package func now() -> Duration { Self.now() }

    /// Lets other programs run that wait for the processor of this thread: an app that was thawed, and the client that it answers. A
    /// kernel with two processors often wakes them on the one of the program that woke them, although the other one is idle, so
    /// they would wait until the daemon has nothing more to do. Nothing happens if the budget of `YieldBudget` is used up.
    package func yieldProcessor() {
        let start = clock()
        guard yields.allows(at: start) else { return }
        sched_yield()
        yields.yielded(for: clock() - start)
    }

    // MARK: Sources

    /// Calls `handler` for each of `events`, and for an error or a hang-up, on a descriptor. The source keeps the descriptor
    /// open until it is cancelled.
    /// - Parameters:
    ///   - share: of the app that can make the descriptor ready.
    ///   - handler: returns whether anything came of the turn.
    package func addDescriptor(
        _ descriptor: SharedDescriptor, events: EpollEvents, kind: SourceKind, share: AppShare? = nil,
        label: StaticString = #fileID, handler: @escaping (EpollEvents) -> TurnResult
    ) throws(SystemError) -> EventSource {
        if kind.isPart { return try PartSource(parts(), descriptor, events, kind, label, share, handler) }
        let handler = DescriptorHandler(self, kind, label, share, handler)
        // libsystemd adds it as one that is reported always, and changes that with the events.
        let first = kind.isReportedOnce ? [] : events
        let source = try add("sd_event_add_io", handler, descriptor) {
            event, source, userdata in
            sd_event_add_io(
                event, source, descriptor.raw, first.rawValue,
                { _, _, revents, userdata in
                    DescriptorHandler.call(userdata, EpollEvents(rawValue: revents))
                    return 0
                }, userdata)
        }
        if first != events { try source.setEvents(events) }
        return source
    }

    /// A signal is served at most 50 times in 100 ms (microseconds): an app that stops and continues itself causes a SIGCHLD
    /// each time, and would otherwise keep sources of a lower priority from being served.
    private static let signalInterval: UInt64 = 100_000
    private static let signalBurst: UInt32 = 50

    /// Calls `handler` in the loop when a signal arrives. The signal is blocked for this thread and stays blocked, as
    /// sd_event_add_signal(3) requires.
    package func addSignal(
        _ signal: Int32, kind: SourceKind, label: StaticString = #fileID, handler: @escaping (SignalInfo) -> Void
    ) throws(SystemError) -> EventSource {
        var set = sigset_t()
        sigemptyset(&set)
        guard sigaddset(&set, signal) == 0 else { throw SystemError(call: "sigaddset \(signal)", errno: EINVAL) }
        let blocked = pthread_sigmask(SIG_BLOCK, &set, nil)
        guard blocked == 0 else { throw SystemError(call: "pthread_sigmask", errno: blocked) }
        let box = HandlerBox<SignalInfo>(self, kind, label) {
            handler($0)
            return .progress
        }
        box.isSignal = true
        return try add("sd_event_add_signal", box) { event, source, userdata in
            let result = sd_event_add_signal(
                event, source, signal,
                { _, info, userdata in
                    guard let info = info?.pointee else { return 0 }
                    let came = SignalInfo(
                        signal: Int32(bitPattern: info.ssi_signo), pid: Int32(bitPattern: info.ssi_pid),
                        uid: info.ssi_uid, code: info.ssi_code)
                    HandlerBox<SignalInfo>.call(userdata, came)
                    return 0
                }, userdata)
            if result >= 0, let source = source.pointee {
                sd_event_source_set_ratelimit(source, Self.signalInterval, Self.signalBurst)
            }
            return result
        }
    }

    /// Creates a timer that is not armed. Its handler gets the time for which it was armed.
    package func makeTimer(
        kind: SourceKind, label: StaticString = #fileID, handler: @escaping (Duration) -> Void
    ) throws(SystemError) -> Timer {
        var pointer: OpaquePointer?
        let box = HandlerBox<Duration>(self, kind, label) {
            handler($0)
            return .progress
        }
        box.isOneShot = true
        let source = try add("sd_event_add_time", box) { event, source, userdata in
            let result = sd_event_add_time(
                event, source, CLOCK_MONOTONIC, 0, Timer.accuracyMicroseconds,
                { _, microseconds, userdata in
                    HandlerBox<Duration>.call(userdata, .microseconds(microseconds))
                    return 0
                }, userdata)
            // libsystemd arms a new time source at once.
            if result >= 0 { sd_event_source_set_enabled(source.pointee, Int32(SD_EVENT_OFF)) }
            pointer = source.pointee
            return result
        }
        guard let pointer else { throw SystemError(call: "sd_event_add_time", errno: ENOMEM) }
        return Timer(pointer, source)
    }

    /// Calls `work` in a later turn of the loop. Waiting calls are made in order, as many in one turn as its time allows.
    package func callLater(_ work: @escaping () -> Void) {
        deferred.append(work)
        if deferredCall == nil {
            deferredCall = DeferredCall(loop: self, kind: .later) { [unowned self] in runDeferred() }
        }
        deferredCall?.schedule()
    }

    /// Those that do not fit in the turn are called in the next one, before those that were added meanwhile.
    private func runDeferred() {
        let calls = deferred
        deferred = []
        for (index, call) in calls.enumerated() {
            if index > 0, isTurnOver {
                deferred.insert(contentsOf: calls[index...], at: 0)
                deferredCall?.schedule()
                return
            }
            call()
        }
    }

    // MARK: Turns

    /// How long a turn works before it leaves the rest to a later turn.
    package static let turnBudget = Duration.milliseconds(1)
    /// The same while an event waits to be served, and the time between two looks for one. A turn that ends sooner would do little but
    /// look for events.
    package static let turnBudgetIfAwaited = Duration.microseconds(100)
    /// A turn that takes longer is reported (`onLongTurn`).
    package static let longTurn = Duration.milliseconds(10)

    /// Whether the current turn has used up its time. False outside of a turn: then nothing waits for the loop.
    package var isTurnOver: Bool {
        guard let turnStart else { return false }
        let now = clock()
        if awaitedLook.found || now - turnStart >= Self.turnBudget { return true }
        guard now - awaitedLook.at >= Self.turnBudgetIfAwaited else { return false }
        awaitedLook = (at: now, found: hasPendingEvent)
        return awaitedLook.found
    }

    /// Whether a descriptor, a signal or a timer has an event that the loop has not read yet.
    private var hasPendingEvent: Bool { isReadable(sd_event_get_fd(event), within: .zero) }

    /// Names the file that is responsible for the length of the current turn.
    func attributeTurn(to source: StaticString) { turnSource = source }

    /// Serves a source, or lets it wait: every handler is called through here.
    func dispatch(_ state: HandlerState, _ handler: () -> TurnResult) {
        let start = clock()
        switch policy.verdict(on: state.kind, state.share?.policy, at: start) {
        case .serve: break
        case .waitForRound: if wait(state) { return }
        case .pause(let end): if pause(state, until: end) { return }
        }
        let processorStart = processorClock()
        let result = serve(state, from: start, processorStart, handler)
        state.source?.endTurn()
        if state.kind != .round { servedTurns += 1 }
        let now = clock()
        policy.served(state.kind, for: now - start)
        if policy.awaitsRound { roundEnd.schedule() }
        account(state, result, from: start, processorStart, to: now)
    }

    /// Serves a part of `AppDescriptors`, or lets it wait for its app. The source of all parts has been admitted to the round.
    func dispatch(_ part: PartSource, _ events: EpollEvents) {
        turnSource = part.label
        let start = clock()
        if case .pause(let end) = policy.verdict(on: part.kind, part.share?.policy, at: start), let share = part.share {
            return pause(part, in: share, until: end)
        }
        let processorStart = processorClock()
        let result = part.call(events)
        account(part, result, from: start, processorStart, to: clock())
    }

    /// Counts a turn for the app that caused it, and looks whether anything came of it.
    /// - Parameter processorStart: what `processorClock` was at `start`: on a busy machine a turn can be long that does little.
    private func account(
        _ state: some ServedSource, _ result: TurnResult, from start: Duration, _ processorStart: Duration,
        to now: Duration
    ) {
        if let share = state.share {
            let served = min(now, start + (processorClock() - processorStart))
            if share.policy.served(from: start, to: served) { share.onFlood?() }
        }
        if state.progress.ended(hasProgress: result == .progress, at: now) { switchOff(state) }
    }

    /// Opens what the descriptors of apps have in common now, not with the first app: a launch then needs no other descriptor.
    package func openAppDescriptors() throws(SystemError) { _ = try parts() }

    func parts() throws(SystemError) -> AppDescriptors {
        if let appDescriptors { return appDescriptors }
        let made = try AppDescriptors(self)
        appDescriptors = made
        return made
    }

    /// Calls the handler, and measures the turn.
    private func serve(
        _ state: HandlerState, from start: Duration, _ processorStart: Duration, _ handler: () -> TurnResult
    ) -> TurnResult {
        turnStart = start
        awaitedLook = (at: start, found: false)
        turnSource = state.label
        let result = handler()
        let duration = clock() - start
        turnStart = nil
        guard duration > longestTurn.duration || duration > Self.longTurn else { return result }
        let turn = LongTurn(
            duration: duration, processorTime: processorClock() - processorStart, source: "\(turnSource)")
        if duration > longestTurn.duration { longestTurn = turn }
        if duration > Self.longTurn { onLongTurn?(turn) }
        return result
    }

    // MARK: Sources that wait

    /// - Returns: whether it waits. A signal cannot: libsystemd has taken it from the kernel.
    private func wait(_ state: HandlerState) -> Bool {
        guard !state.isSignal, let source = state.source else { return false }
        source.waitForRound(isOneShot: state.isOneShot)
        waiting.append(state)
        roundEnd.schedule()
        return true
    }

    private func endRound() {
        policy.endRound()
        let sources = waiting
        waiting = []
        for state in sources { state.source?.endWait(state.kind.level) }
        guard let ended = heartbeat?.roundEnded(at: clock()) else { return }
        if ended.isAlive { sendHeartbeat() }
        heartbeatTimer?.arm(at: ended.next)
    }

    /// - Returns: whether it waits. What libsystemd disables before each call has a bound of its own.
    private func pause(_ state: HandlerState, until end: Duration) -> Bool {
        guard !state.isSignal, !state.isOneShot, let share = state.share, let source = state.source else {
            return false
        }
        pause(source, in: share, until: end)
        return true
    }

    private func pause(_ source: EventSource, in share: AppShare, until end: Duration) {
        if share.paused.isEmpty {
            pausedShares.append((share, end))
            pausedShares.sort { $0.end < $1.end }
            armPauseTimer()
        }
        source.pause(in: share)
    }

    private func armPauseTimer() {
        if pauseTimer == nil { pauseTimer = try? makeTimer(kind: .appTimer) { [weak self] _ in self?.endPauses() } }
        pauseTimer?.arm(at: pausedShares.first?.end)
    }

    private func endPauses() {
        let now = clock()
        while let next = pausedShares.first, next.end <= now {
            pausedShares.removeFirst()
            next.share.endPause()
        }
        armPauseTimer()
    }

    private func switchOff(_ state: some ServedSource) {
        guard let source = state.switchable else { return }
        source.isEnabled = false
        switchedOff += 1
        onSwitchedOff?(state.kind, state.label)
        source.onSwitchedOff?()
    }

    // MARK: The heartbeat

    /// Calls `send` after each round through all levels that was completed in time, and once at the beginning.
    /// - Parameter limit: how long the service manager waits (`WatchdogSec=`).
    package func startHeartbeat(limit: Duration, send: @escaping () -> Void) throws(SystemError) {
        heartbeat = Heartbeat(limit: limit)
        sendHeartbeat = send
        heartbeatTimer = try makeTimer(kind: .heartbeat) { [weak self] _ in
            guard let self else { return }
            heartbeat?.begin(at: clock())
            roundEnd.schedule()
        }
        send()
        heartbeatTimer?.arm(at: clock())
    }

    /// Adds a defer source, which the caller drops in its handler. `nil` after the loop has ended (`exit`).
    func addDeferred(kind: SourceKind, label: StaticString, handler: @escaping () -> Void) -> EventSource? {
        let box = HandlerBox<Void>(self, kind, label) {
            handler()
            return .progress
        }
        box.isOneShot = true
        do throws(SystemError) {
            return try add("sd_event_add_defer", box) { event, source, userdata in
                sd_event_add_defer(
                    event, source,
                    { _, userdata in
                        HandlerBox<Void>.call(userdata, ())
                        return 0
                    }, userdata)
            }
        } catch {
            precondition(error.errno == ESTALE, "\(error)")
            return nil
        }
    }

    /// Adds a source of any kind. The source retains the box and releases it in its destroy callback.
    private func add(
        _ call: String, _ box: HandlerState, _ descriptor: SharedDescriptor? = nil,
        _ make: (OpaquePointer, UnsafeMutablePointer<OpaquePointer?>, UnsafeMutableRawPointer) -> Int32
    ) throws(SystemError) -> EventSource {
        var source: OpaquePointer?
        let userdata = Unmanaged.passRetained(box).toOpaque()
        let result = make(event, &source, userdata)
        guard result >= 0, let source else {
            releaseUserdata(userdata)
            throw SystemError(call: call, errno: result < 0 ? -result : ENOMEM)
        }
        sd_event_source_set_destroy_callback(source, releaseUserdata)
        sd_event_source_set_priority(source, box.kind.level.priority)
        return LibrarySource(owning: source, box, watching: descriptor)
    }
}
