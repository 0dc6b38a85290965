import LifecycleCore

/// A daemon whose apps do at once what they are asked to, and whose events are recorded.
struct Recorder {
    static let version = "1.2.3"
    private(set) var core = LifecycleCore()
    private(set) var now: Instant
    private(set) var events: [LoggedEvent] = []
    private var begun = LifecycleCore()
    private(set) var firstEvent: UInt64 = 0
    private var queue: [Event] = []
    /// Apps that do not answer that they are in the background.
    var silent: Set<RunID> = []
    /// The footprint of each app when it is frozen, in bytes.
    var sizes: [AppID: UInt64] = [:]
    /// What workers are found to do; `nil`: they are not measured in time.
    var work: RunWork?

    mutating func send(_ event: Event) {
        queue.append(event)
        while !queue.isEmpty {
            let event = queue.removeFirst()
            now = now + .milliseconds(1)
            events.append(LoggedEvent(event, at: now))
            for effect in core.handle(event, at: now) { answer(effect) }
        }
    }

    private mutating func answer(_ effect: Effect) {
        switch effect {
        case .spawn(_, let run, _):
            queue += [.run(run, .process(.spawned(pid: Int32(run.number)))), .run(run, .process(.executed))]
        case .run(let run, .notify(let notice)) where notice.isAnswered:
            queue.append(.run(run, .transition(.notified(notice, delivered: true, cpu: .zero))))
            if notice == .didEnterBackground, !silent.contains(run) {
                queue.append(.run(run, .transition(.backgroundEntered)))
            }
        case .run(let run, .suspension(.freeze(let attempt))):
            let memory = core.app(of: run).flatMap { sizes[$0] } ?? 1 << 20
            queue.append(.run(run, .suspension(.frozen(attempt: attempt, memory: memory))))
        case .run(let run, .traffic(.measureWork(_))):
            if let work { queue.append(.run(run, .traffic(.workMeasured(work)))) }
        case .run(let run, .suspension(.thaw(let attempt))):
            queue.append(.run(run, .suspension(.thawed(attempt: attempt))))
        case .run(let run, .deadline(.inspect)):
            queue.append(.run(run, .deadline(.inspected(Inspection(traced: false, cpu: .zero, memory: 1 << 20)))))
        case .run(let run, .kill):
            queue += [
                .run(run, .process(.exited(.signaled(9, coreDumped: false), cpu: .zero, memory: 0))),
                .run(run, .process(.emptied)),
            ]
        default: break
        }
    }

    init(start: Duration) { now = .origin + start }

    /// Lets time pass, with all deadlines on the way.
    mutating func wait(_ time: Duration) {
        let end = now + time
        while let due = core.nextDeadline, due <= end {
            now = max(now, due)
            send(.deadlineReached)
        }
        now = max(now, end)
    }

    /// The bytes of a file with the events since the last one.
    mutating func file(version: String = Recorder.version, boot: String = "boot", clock: UInt64 = 1_700_000_000_000_000)
        -> [UInt8]
    {
        func word(_ value: UInt64) -> [UInt8] { (0..<8).map { UInt8(truncatingIfNeeded: value >> (8 * UInt64($0))) } }
        func padded(_ text: String, _ count: Int) -> [UInt8] {
            Array((Array(text.utf8) + [UInt8](repeating: 0, count: count)).prefix(count))
        }
        var entries = Self.entry(.core, begun.saved.bytes)
        for event in events { entries += Self.entry(.event, event.savedBytes) }
        let header =
            word(LogbookFormat.magic) + word(LogbookFormat.version) + padded(boot, 40) + word(UInt64(entries.count))
            + word(UInt64(events.count) << LogbookFormat.effectBits) + word(0) + word(0) + word(firstEvent)
            + padded(version, 16) + word(clock) + word(clock)
        firstEvent += UInt64(events.count)
        begun = core
        events = []
        return header + entries
    }

    private static func entry(_ kind: LogbookFormat.Kind, _ content: [UInt8]) -> [UInt8] {
        let checksum = Checksum.crc32([kind.rawValue]) ^ Checksum.crc32(content)
        let head = [UInt32(content.count + 1), checksum].flatMap { word in
            (0..<4).map { UInt8(truncatingIfNeeded: word >> (8 * $0)) }
        }
        return head + [kind.rawValue] + content
    }
}
