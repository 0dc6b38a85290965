/// Events as the daemon logs them, so that a daemon that follows a crash decides again what was decided. Only the version
/// that wrote a log of events replays it.
extension Event: SavedUnion {
    package func save(to writer: inout ByteWriter) {
        switch self {
        case .run(let run, let event): writer.put(case: 1, run, event)
        case .configuration(let event): event.save(to: &writer)
        case .recovered: writer.put(case: 6)
        case .requested(let request, let id, let what, let requester): writer.put(case: 7, request, id, what, requester)
        case .requestAbandoned(let request): writer.put(case: 8, request)
        case .shutdownRequested(let immediately): writer.put(case: 9, immediately)
        case .absence(let event): event.save(to: &writer)
        case .deadlineReached: writer.put(case: 14)
        case .memory(let event): event.save(to: &writer)
        case .socketsReady(let id, let input): writer.put(case: 18, id, input)
        case .timer(let id, let event): writer.put(case: 30, id, event)
        case .observed(let notification, of: nil): writer.put(case: 100, notification)
        case .observed(let notification, of: let id?): writer.put(case: 101, notification, id)
        }
    }

    package init?(case number: UInt64, _ values: inout RecordReader) throws(SavedError) {
        if let event = try Self.ofTopic(number, &values) {
            self = event
            return
        }
        switch number {
        case 1: self = .run(try values.next(), try values.next())
        case 6: self = .recovered
        case 7: self = .requested(try values.next(), try values.next(), try values.next(), by: try values.next())
        case 8: self = .requestAbandoned(try values.next())
        case 9: self = .shutdownRequested(immediately: try values.next())
        case 14: self = .deadlineReached
        case 18: self = .socketsReady(try values.next(), try values.next())
        case 30: self = .timer(try values.next(), try values.next())
        case 100: self = .observed(try values.next())
        case 101: self = .observed(try values.next(), of: try values.next())
        default: return nil
        }
    }

    private static func ofTopic(_ number: UInt64, _ values: inout RecordReader) throws(SavedError) -> Event? {
        if let event = try ConfigurationEvent(case: number, &values) { return .configuration(event) }
        if let event = try AbsenceEvent(case: number, &values) { return .absence(event) }
        if let event = try MemoryEvent(case: number, &values) { return .memory(event) }
        return nil
    }
}

/// The topics share one sequence of numbers: each reads its own.
extension RunEvent: SavedUnion {
    package func save(to writer: inout ByteWriter) {
        switch self {
        case .process(let event): event.save(to: &writer)
        case .transition(let event): event.save(to: &writer)
        case .deadline(let event): event.save(to: &writer)
        case .watchdog(let event): event.save(to: &writer)
        case .suspension(let event): event.save(to: &writer)
        case .memory(let event): event.save(to: &writer)
        case .traffic(let event): event.save(to: &writer)
        case .processor(let event): event.save(to: &writer)
        case .hookEnded(let number, let outcome): writer.put(case: 80, number, outcome)
        case .task(let event): event.save(to: &writer)
        case .mode(let event): event.save(to: &writer)
        case .scene(let event): event.save(to: &writer)
        case .wake(let event): event.save(to: &writer)
        case .connection(let event): event.save(to: &writer)
        }
    }

    package init?(case number: UInt64, _ values: inout RecordReader) throws(SavedError) {
        guard let event = try Self.ofTopic(number, &values) else { return nil }
        self = event
    }

    private static func ofTopic(_ number: UInt64, _ values: inout RecordReader) throws(SavedError) -> RunEvent? {
        if let event = try ProcessEvent(case: number, &values) { return .process(event) }
        if let event = try TransitionEvent(case: number, &values) { return .transition(event) }
        if let event = try DeadlineEvent(case: number, &values) { return .deadline(event) }
        if let event = try WatchdogEvent(case: number, &values) { return .watchdog(event) }
        if let event = try SuspensionEvent(case: number, &values) { return .suspension(event) }
        if let event = try RunMemoryEvent(case: number, &values) { return .memory(event) }
        if let event = try TrafficEvent(case: number, &values) { return .traffic(event) }
        if let event = try ProcessorEvent(case: number, &values) { return .processor(event) }
        if let event = try TaskEvent(case: number, &values) { return .task(event) }
        if let event = try ModeEvent(case: number, &values) { return .mode(event) }
        if let event = try SceneEvent(case: number, &values) { return .scene(event) }
        if let event = try WakeEvent(case: number, &values) { return .wake(event) }
        if let event = try ConnectionEvent(case: number, &values) { return .connection(event) }
        return number == 80 ? .hookEnded(number: try values.next(), try values.next()) : nil
    }
}

extension RecordReader {
    /// The next value of a case, a size in bytes.
    mutating func nextSize() throws(SavedError) -> UInt64 {
        let size: SavedSize = try next()
        return size.bytes
    }
}

extension Request: SavedUnion {
    package func save(to writer: inout ByteWriter) {
        switch self {
        case .launch(let state, let reason, let url, let environment):
            writer.put(case: 1, Launch(state: state, reason: reason, url: url, environment: environment))
        case .activate: writer.put(case: 2)
        case .background: writer.put(case: 3)
        case .interrupt: writer.put(case: 4)
        case .endInterruption: writer.put(case: 5)
        case .terminate: writer.put(case: 6)
        case .remove: writer.put(case: 7)
        case .push(let payload): writer.put(case: 8, payload)
        case .send(let notification): writer.put(case: 9, notification)
        case .interruptWhileConnected: writer.put(case: 10)
        case .open(let url): writer.put(case: 20, url)
        case .scene(let id, let what): writer.put(case: 120, id, what)
        case .cancelTask(let name): writer.put(case: 210, name)
        }
    }

    package init?(case number: UInt64, _ values: inout RecordReader) throws(SavedError) {
        switch number {
        case 1:
            let launch: Launch = try values.next()
            self = .launch(
                launch.state, reason: launch.reason, url: launch.url, environment: launch.environment)
        case 2: self = .activate
        case 3: self = .background
        case 4: self = .interrupt
        case 5: self = .endInterruption
        case 6: self = .terminate
        case 7: self = .remove
        case 8: self = .push(payload: try values.next())
        case 9: self = .send(try values.next())
        case 10: self = .interruptWhileConnected
        case 20: self = .open(url: try values.next())
        case 120: self = .scene(try values.next(), try values.next())
        case 210: self = .cancelTask(name: try values.next())
        default: return nil
        }
    }
}

extension Requester: SavedUnion {
    package func save(to writer: inout ByteWriter) {
        switch self {
        case .user: writer.put(case: 1)
        case .app(nil): writer.put(case: 2)
        case .app(let id?): writer.put(case: 3, id)
        }
    }

    package init?(case number: UInt64, _ values: inout RecordReader) throws(SavedError) {
        switch number {
        case 1: self = .user
        case 2: self = .app(nil)
        case 3: self = .app(try values.next())
        default: return nil
        }
    }
}
