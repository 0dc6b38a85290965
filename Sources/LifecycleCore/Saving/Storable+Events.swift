/// An event as the daemon keeps it, so that what was decided can be decided again after a crash.
extension Event: Storable {
    package func store(in writer: inout ByteWriter) {
        writer.put(byte: tag)
        switch self {
        case .registered(let id, let policy, let launches):
            writer.put(id)
            writer.put(policy)
            writer.put(counter: launches)
        case .unregistered(let id): writer.put(id)
        case .configured(let policy): writer.put(policy)
        case .started, .deadlineReached, .recovered, .sleepRequested, .awoke, .locked, .unlocked: break
        case .requested(let request, let id, let what):
            writer.put(request)
            writer.put(id)
            writer.put(what)
        case .requestAbandoned(let request): writer.put(request)
        case .shutdownRequested(let immediately): writer.put(immediately)
        case .memoryMeasured(let reading): writer.put(reading)
        case .pressureStalled(let level): writer.put(level)
        case .pressureSimulated(let request, let level):
            writer.put(request)
            writer.put(level)
        case .spawned(let run, _), .executed(let run), .spawnFailed(let run, _), .told(let run, _, _, _),
            .frozen(let run, _, _), .thawed(let run, _), .inspected(let run, _), .exited(let run, _, _, _),
            .emptied(let run), .ready(let run), .backgroundEntered(let run), .stopped(let run), .continued(let run),
            .taskBegan(let run, _, _), .taskEnded(let run, _), .timeoutExtended(let run, _),
            .wakeCompleted(let run, _), .heartbeat(let run), .heartbeatGivenUp(let run), .stopping(let run),
            .mainProcessChanged(let run, _), .reattached(let run, _, _):
            writer.put(run)
            storeOutcome(in: &writer)
        }
    }

    /// What there is beside the run.
    private func storeOutcome(in writer: inout ByteWriter) {
        switch self {
        case .spawned(_, let pid), .mainProcessChanged(_, let pid): writer.put(signed: Int64(pid))
        case .spawnFailed(_, let problem):
            writer.put(text: problem.sentence)
            writer.put(signed: Int64(problem.exitStatus))
        case .told(_, let notice, let delivered, let cpu):
            writer.put(notice)
            writer.put(delivered)
            writer.put(cpu)
        case .frozen(_, let attempt, let memory):
            writer.put(counter: attempt)
            writer.put(size: memory)
        case .thawed(_, let attempt): writer.put(counter: attempt)
        case .inspected(_, let inspection):
            writer.put(inspection.traced)
            writer.put(inspection.cpu)
            writer.put(size: inspection.memory)
        case .exited(_, let status, let cpu, let memory):
            writer.put(status)
            writer.put(cpu)
            writer.put(size: memory)
        case .taskBegan(_, let name, let owner):
            writer.put(text: name)
            writer.put(signed: Int64(owner))
        case .taskEnded(_, let name): writer.put(text: name)
        case .timeoutExtended(_, let time): writer.put(time)
        case .wakeCompleted(_, let result): writer.put(result)
        case .reattached(_, let heard, let late):
            writer.put(heard)
            writer.put(late)
        case .registered, .unregistered, .configured, .started, .requested, .requestAbandoned, .shutdownRequested,
            .deadlineReached, .memoryMeasured, .pressureStalled, .pressureSimulated, .executed, .emptied, .ready,
            .backgroundEntered, .stopped, .continued, .heartbeat, .heartbeatGivenUp, .stopping, .recovered,
            .sleepRequested, .awoke, .locked, .unlocked:
            break
        }
    }

    private var tag: UInt8 {
        switch self {
        case .registered: 0
        case .unregistered: 1
        case .configured: 2
        case .started: 3
        case .requested: 4
        case .requestAbandoned: 5
        case .shutdownRequested: 6
        case .spawned: 7
        case .executed: 8
        case .spawnFailed: 9
        case .told: 10
        case .frozen: 11
        case .thawed: 12
        case .inspected: 13
        case .exited: 14
        case .emptied: 15
        case .ready: 16
        case .backgroundEntered: 17
        case .stopped: 18
        case .continued: 19
        case .taskBegan: 20
        case .taskEnded: 21
        case .timeoutExtended: 22
        case .wakeCompleted: 23
        case .heartbeat: 24
        case .heartbeatGivenUp: 25
        case .stopping: 26
        case .mainProcessChanged: 27
        case .deadlineReached: 28
        case .memoryMeasured: 29
        case .pressureStalled: 30
        case .pressureSimulated: 31
        case .recovered: 32
        case .reattached: 33
        case .sleepRequested: 34
        case .awoke: 35
        case .locked: 36
        case .unlocked: 37
        }
    }

    package init(from reader: inout ByteReader) throws(SavedError) {
        let tag = try reader.byte()
        switch tag {
        case 0: self = .registered(try reader.take(), try reader.take(), launches: try reader.counter("launches"))
        case 1: self = .unregistered(try reader.take())
        case 2: self = .configured(try reader.take())
        case 3: self = .started
        case 4: self = .requested(try reader.take(), try reader.take(), try reader.take())
        case 5: self = .requestAbandoned(try reader.take())
        case 6: self = .shutdownRequested(immediately: try reader.flag())
        case 28: self = .deadlineReached
        case 29: self = .memoryMeasured(try reader.take())
        case 30: self = .pressureStalled(try reader.take())
        case 31: self = .pressureSimulated(try reader.take(), try reader.take())
        case 32: self = .recovered
        case 34: self = .sleepRequested
        case 35: self = .awoke
        case 36: self = .locked
        case 37: self = .unlocked
        case 7...27, 33: self = try Event.outcome(tag, of: reader.take(), &reader)
        default: throw reader.unknown(tag, "event")
        }
    }

    private static func outcome(
        _ tag: UInt8, of run: RunID, _ reader: inout ByteReader
    ) throws(SavedError) -> Event {
        switch tag {
        case 7: .spawned(run, pid: try reader.int32("a pid"))
        case 8: .executed(run)
        case 9:
            .spawnFailed(
                run,
                SpawnProblem(
                    sentence: try reader.text(upTo: SavedLimits.text, "a sentence"),
                    exitStatus: try reader.int32("an exit status")))
        case 10: .told(run, try reader.take(), delivered: try reader.flag(), cpu: try reader.take())
        case 11: .frozen(run, attempt: try reader.counter("attempt"), memory: try reader.size())
        case 12: .thawed(run, attempt: try reader.counter("attempt"))
        case 13:
            .inspected(
                run, Inspection(traced: try reader.flag(), cpu: try reader.take(), memory: try reader.size()))
        case 14: .exited(run, try reader.take(), cpu: try reader.take(), memory: try reader.size())
        case 15: .emptied(run)
        case 16: .ready(run)
        case 17: .backgroundEntered(run)
        case 18: .stopped(run)
        case 19: .continued(run)
        case 20:
            .taskBegan(
                run, name: try reader.text(upTo: SavedLimits.text, "a task's name"),
                owner: try reader.int32("an owner"))
        case 21: .taskEnded(run, name: try reader.text(upTo: SavedLimits.text, "a task's name"))
        case 22: .timeoutExtended(run, by: try reader.take())
        case 23: .wakeCompleted(run, try reader.take())
        case 24: .heartbeat(run)
        case 25: .heartbeatGivenUp(run)
        case 26: .stopping(run)
        case 27: .mainProcessChanged(run, pid: try reader.int32("a pid"))
        case 33: .reattached(run, heard: try reader.flag(), late: try reader.flag())
        default: throw reader.unknown(tag, "event")
        }
    }
}

extension Notice: Storable {
    package func store(in writer: inout ByteWriter) {
        switch self {
        case .willResignActive: writer.put(byte: 0)
        case .didEnterBackground: writer.put(byte: 1)
        case .willEnterForeground: writer.put(byte: 2)
        case .didBecomeActive: writer.put(byte: 3)
        case .willTerminate: writer.put(byte: 4)
        case .tasksExpiring: writer.put(byte: 5)
        case .memoryWarning(let level):
            writer.put(byte: 6)
            writer.put(level)
        }
    }

    package init(from reader: inout ByteReader) throws(SavedError) {
        switch try reader.byte() {
        case 0: self = .willResignActive
        case 1: self = .didEnterBackground
        case 2: self = .willEnterForeground
        case 3: self = .didBecomeActive
        case 4: self = .willTerminate
        case 5: self = .tasksExpiring
        case 6: self = .memoryWarning(try reader.take())
        case let other: throw reader.unknown(other, "notice")
        }
    }
}

extension Request: Storable {
    package func store(in writer: inout ByteWriter) {
        switch self {
        case .launch(let state, let reason, let url):
            writer.put(byte: 0)
            writer.put(Launch(state: state, reason: reason, url: url))
        case .activate: writer.put(byte: 1)
        case .background: writer.put(byte: 2)
        case .interrupt: writer.put(byte: 3)
        case .resume: writer.put(byte: 4)
        case .terminate: writer.put(byte: 5)
        case .remove: writer.put(byte: 6)
        case .push(let payload):
            writer.put(byte: 7)
            writer.put(text: payload)
        case .send(let notification):
            writer.put(byte: 8)
            writer.put(notification)
        }
    }

    package init(from reader: inout ByteReader) throws(SavedError) {
        switch try reader.byte() {
        case 0:
            let launch: Launch = try reader.take()
            self = .launch(launch.state, reason: launch.reason, url: launch.url)
        case 1: self = .activate
        case 2: self = .background
        case 3: self = .interrupt
        case 4: self = .resume
        case 5: self = .terminate
        case 6: self = .remove
        case 7: self = .push(payload: try reader.text(upTo: Notification.maximumPayload, "a payload"))
        case 8: self = .send(try reader.take())
        case let other: throw reader.unknown(other, "request")
        }
    }
}
