import Control
import LifecycleCore
import Reports

/// Makes the timeline of what a player plays.
package struct TimelineBuilder {
    typealias Bar = Timeline.Bar

    /// A deadline that counts: an app may have one of each kind, and one for each wake.
    struct DeadlineKey: Hashable {
        var app: AppID
        var kind: DeadlineKind
        var wake: UInt64
    }
    struct TaskKey: Hashable {
        var app: AppID
        var name: String
    }
    /// What makes an app change its state, until it has.
    struct Cause {
        var origin: Timeline.Origin
        var at: Instant
        var sentence: String
    }

    private(set) var timeline = Timeline()
    var lanes: [AppID: Timeline.Lane] = [:]
    var states: [AppID: Bar] = [:]
    var deadlines: [DeadlineKey: Bar] = [:]
    var tasks: [TaskKey: Bar] = [:]
    var level: Bar?
    var causes: [AppID: Cause] = [:]
    private var lastStalls: (at: Instant, some: Duration)?
    private var hasBegun = false

    /// An app that was asked or woken, and has not changed its state since, did not because of that.
    private static let longestCause = Duration.seconds(60)

    package init() {}

    package mutating func take(_ step: Player.Step) {
        switch step {
        case .began(let core, let at, let clock): begin(core, at, clock)
        case .event(let logged, let core): prepare(logged.event, core, logged.at)
        case .handled(let logged, let effects, let core): handled(logged, effects, core)
        }
    }

    /// - Parameter problems: what could not be played.
    package mutating func finish(problems: [String]) -> Timeline {
        closeAll("")
        timeline.problems = problems
        timeline.lanes = lanes.values.filter { $0.bars > 0 || !$0.marks.isEmpty }.sorted { $0.app < $1.app }
        // What ended at the same time was closed in any order.
        for index in timeline.lanes.indices {
            timeline.lanes[index].deadlines.sort { ($0.start, $0.label) < ($1.start, $1.label) }
            timeline.lanes[index].tasks.sort { ($0.start, $0.label) < ($1.start, $1.label) }
        }
        return timeline
    }

    // MARK: Beginning

    /// What is known of the time before is no longer continued.
    private mutating func begin(_ core: LifecycleCore, _ at: Instant, _ clock: Int64?) {
        closeAll("the recording has a gap")
        if !hasBegun {
            hasBegun = true
            timeline.start = at
            timeline.end = at
        }
        // The latest one is right for the most of what is looked at.
        timeline.clock = clock ?? timeline.clock
        lastStalls = nil
        for id in core.appIDs {
            guard let view = core.view(of: id, at: at) else { continue }
            if view.state != .notRunning {
                openState(id, view.state, "\(id): \(view.state.rawValue)", at)
                sample(id, view.memory, at)
            }
            for task in view.tasks {
                openTask(
                    id, task.name, "\(id): the background task '\(task.name)' was open for \(task.age.timeSpan)", at)
            }
            if let deadline = view.deadline {
                let key = DeadlineKey(app: id, kind: deadline.what, wake: view.wakes.first?.id ?? 0)
                deadlines[key] = Bar(
                    start: at, end: at, label: deadline.what.rawValue,
                    sentence:
                        "\(id): \(deadline.remaining.timeSpan) of the deadline for \(deadline.what.rawValue) are left")
            }
        }
        let memory = core.memory
        openLevel(memory.level, "Memory level: \(memory.level.name)", at)
    }

    private mutating func closeAll(_ outcome: String) {
        let end = timeline.end
        for id in Array(states.keys) { closeState(id, end) }
        for key in Array(deadlines.keys) { close(key, outcome, "had not ended", end) }
        for key in Array(tasks.keys) { close(key, "had not ended", end) }
        if var bar = level {
            bar.end = end
            timeline.levels.append(bar)
        }
        level = nil
        causes = [:]
    }

    // MARK: Events

    private mutating func prepare(_ event: Event, _ core: LifecycleCore, _ now: Instant) {
        switch event {
        case .requested(_, let app, let request, let requester):
            let sentence = "\(request.words) of \(app), requested by \(requester.words)"
            let origin: Timeline.Origin =
                switch requester {
                case .user, .app(nil): .requests
                case .app(let by?): .app(by.name)
                }
            timeline.requests.append(Timeline.Mark(at: now, kind: "request", sentence: sentence))
            causes[app] = Cause(origin: origin, at: now, sentence: sentence)
        case .run(let run, .traffic(.inputArrived(_, let input))):
            guard let app = core.app(of: run) else { return }
            causes[app] = Cause(origin: .input, at: now, sentence: "\(app): \(InputStatus(input).phrase)")
        case .socketsReady(let app, let input):
            causes[app] = Cause(
                origin: .input, at: now, sentence: "\(app): \(InputStatus(input).phrase), at a socket held for it")
        case .timer(let app, .elapsed(let purpose, _)):
            causes[app] = Cause(origin: .input, at: now, sentence: "\(app): \(purpose.rawValue) elapsed")
        case .run(let run, .suspension(.frozen(_, let memory, _))):
            if let app = core.app(of: run) { sample(app, memory, now) }
        case .run(let run, .memory(.sizeMeasured(let memory, _))),
            .run(let run, .suspension(.footprintMeasured(_, let memory))):
            if let app = core.app(of: run) { sample(app, memory, now) }
        case .memory(.measured(let reading)):
            measured(reading, now)
            for size in reading.sizes { if let app = core.app(of: size.run) { sample(app, size.bytes, now) } }
        case .run, .configuration, .recovered, .requestAbandoned, .shutdownRequested,
            .absence, .deadlineReached, .memory,
            .timer, .observed:
            break
        }
    }

    private mutating func measured(_ reading: MemoryReading, _ now: Instant) {
        timeline.available.append(Timeline.Sample(at: now, value: reading.limit?.available ?? reading.available))
        timeline.total = reading.limit?.total ?? reading.total
        guard let stalls = reading.stalls else { return }
        if let last = lastStalls, now > last.at, stalls.some >= last.some {
            let share = (stalls.some - last.some).microseconds * 1000 / max(1, (now - last.at).microseconds)
            timeline.stalls.append(Timeline.Sample(at: now, value: UInt64(max(0, min(1000, share)))))
        }
        lastStalls = (now, stalls.some)
    }

    private mutating func sample(_ app: AppID, _ bytes: UInt64, _ at: Instant) {
        if lane(app).memory.last?.value == bytes { return }
        lanes[app]?.memory.append(Timeline.Sample(at: at, value: bytes))
    }

    private mutating func handled(_ logged: LoggedEvent, _ effects: [Effect], _ core: LifecycleCore) {
        let now = logged.at
        timeline.end = max(timeline.end, now)
        for effect in effects {
            if case .report(let report) = effect { take(report, logged.event, now) }
        }
    }

    mutating func lane(_ app: AppID) -> Timeline.Lane {
        if let lane = lanes[app] { return lane }
        let lane = Timeline.Lane(app: app.name)
        lanes[app] = lane
        return lane
    }

    // MARK: Bars

    mutating func openState(_ app: AppID, _ state: AppState, _ sentence: String, _ at: Instant) {
        _ = lane(app)
        states[app] = Bar(start: at, end: at, label: state.rawValue, sentence: sentence)
    }

    mutating func closeState(_ app: AppID, _ at: Instant) {
        guard var bar = states.removeValue(forKey: app) else { return }
        bar.end = at
        bar.sentence += "; for \((at - bar.start).timeSpan)"
        lanes[app]?.states.append(bar)
    }

    mutating func openTask(_ app: AppID, _ name: String, _ sentence: String, _ at: Instant) {
        _ = lane(app)
        tasks[TaskKey(app: app, name: name)] = Bar(start: at, end: at, label: name, sentence: sentence)
    }

    mutating func close(_ key: TaskKey, _ sentence: String, _ at: Instant) {
        guard var bar = tasks.removeValue(forKey: key) else { return }
        bar.end = at
        bar.sentence += "; \(sentence) after \((at - bar.start).timeSpan)"
        lanes[key.app]?.tasks.append(bar)
    }

    mutating func close(_ key: DeadlineKey, _ outcome: String, _ sentence: String, _ at: Instant) {
        guard var bar = deadlines.removeValue(forKey: key) else { return }
        bar.end = at
        bar.outcome = outcome
        bar.sentence += "; \(sentence) after \((at - bar.start).timeSpan)"
        _ = lane(key.app)
        lanes[key.app]?.deadlines.append(bar)
    }

    mutating func openLevel(_ level: MemoryLevel, _ sentence: String, _ at: Instant) {
        if var bar = self.level {
            bar.end = at
            timeline.levels.append(bar)
        }
        self.level = Bar(start: at, end: at, label: level.name, sentence: sentence)
    }

    /// The arrow from what made the app change its state.
    mutating func drawArrow(to app: AppID, _ at: Instant) {
        guard let cause = causes.removeValue(forKey: app), at - cause.at <= Self.longestCause else { return }
        // Leaving the foreground is two changes.
        if let last = timeline.arrows.last, last.from == cause.origin, last.to == app.name, last.toTime == at { return }
        timeline.arrows.append(
            Timeline.Arrow(
                from: cause.origin, fromTime: cause.at, to: app.name, toTime: at, sentence: cause.sentence))
    }
}
