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
        case .run(let run, let what):
            writer.put(run)
            writer.put(what)
        }
    }

    private var tag: UInt8 {
        switch self {
        case .run: 0
        case .registered: 1
        case .unregistered: 2
        case .configured: 3
        case .started: 4
        case .recovered: 5
        case .requested: 6
        case .requestAbandoned: 7
        case .shutdownRequested: 8
        case .sleepRequested: 9
        case .awoke: 10
        case .locked: 11
        case .unlocked: 12
        case .deadlineReached: 13
        case .memoryMeasured: 14
        case .pressureStalled: 15
        case .pressureSimulated: 16
        }
    }

    package init(from reader: inout ByteReader) throws(SavedError) {
        switch try reader.byte() {
        case 0: self = .run(try reader.take(), try reader.take())
        case 1: self = .registered(try reader.take(), try reader.take(), launches: try reader.counter("launches"))
        case 2: self = .unregistered(try reader.take())
        case 3: self = .configured(try reader.take())
        case 4: self = .started
        case 5: self = .recovered
        case 6: self = .requested(try reader.take(), try reader.take(), try reader.take())
        case 7: self = .requestAbandoned(try reader.take())
        case 8: self = .shutdownRequested(immediately: try reader.flag())
        case 9: self = .sleepRequested
        case 10: self = .awoke
        case 11: self = .locked
        case 12: self = .unlocked
        case 13: self = .deadlineReached
        case 14: self = .memoryMeasured(try reader.take())
        case 15: self = .pressureStalled(try reader.take())
        case 16: self = .pressureSimulated(try reader.take(), try reader.take())
        case let other: throw reader.unknown(other, "event")
        }
    }
}

extension RunEvent: Storable {
    package func store(in writer: inout ByteWriter) {
        switch self {
        case .spawned(let pid):
            writer.put(byte: 0)
            writer.put(signed: Int64(pid))
        case .executed: writer.put(byte: 1)
        case .spawnFailed(let problem):
            writer.put(byte: 2)
            writer.put(text: problem.sentence)
            writer.put(signed: Int64(problem.exitStatus))
        case .notified(let notice, let delivered, let cpu):
            writer.put(byte: 3)
            writer.put(notice)
            writer.put(delivered)
            writer.put(cpu)
        case .frozen(let attempt, let memory):
            writer.put(byte: 4)
            writer.put(counter: attempt)
            writer.put(size: memory)
        case .thawed(let attempt):
            writer.put(byte: 5)
            writer.put(counter: attempt)
        case .inspected(let inspection):
            writer.put(byte: 6)
            writer.put(inspection.traced)
            writer.put(inspection.cpu)
            writer.put(size: inspection.memory)
        case .exited(let status, let cpu, let memory):
            writer.put(byte: 7)
            writer.put(status)
            writer.put(cpu)
            writer.put(size: memory)
        case .emptied: writer.put(byte: 8)
        case .reattached(let messagesKept, let noticesDelayed):
            writer.put(byte: 9)
            writer.put(messagesKept)
            writer.put(noticesDelayed)
        case .ready: writer.put(byte: 10)
        case .backgroundEntered: writer.put(byte: 11)
        case .stopped: writer.put(byte: 12)
        case .continued: writer.put(byte: 13)
        case .taskBegan(let name, let owner):
            writer.put(byte: 14)
            writer.put(text: name)
            writer.put(signed: Int64(owner))
        case .taskEnded(let name):
            writer.put(byte: 15)
            writer.put(text: name)
        case .timeoutExtended(let time):
            writer.put(byte: 16)
            writer.put(time)
        case .wakeCompleted(let result):
            writer.put(byte: 17)
            writer.put(result)
        case .heartbeat: writer.put(byte: 18)
        case .heartbeatGivenUp: writer.put(byte: 19)
        case .stopping: writer.put(byte: 20)
        case .mainProcessChanged(let pid):
            writer.put(byte: 21)
            writer.put(signed: Int64(pid))
        }
    }

    package init(from reader: inout ByteReader) throws(SavedError) {
        switch try reader.byte() {
        case 0: self = .spawned(pid: try reader.int32("a pid"))
        case 1: self = .executed
        case 2:
            self = .spawnFailed(
                SpawnProblem(
                    sentence: try reader.text(upTo: SavedLimits.text, "a sentence"),
                    exitStatus: try reader.int32("an exit status")))
        case 3: self = .notified(try reader.take(), delivered: try reader.flag(), cpu: try reader.take())
        case 4: self = .frozen(attempt: try reader.counter("attempt"), memory: try reader.size())
        case 5: self = .thawed(attempt: try reader.counter("attempt"))
        case 6:
            self = .inspected(
                Inspection(traced: try reader.flag(), cpu: try reader.take(), memory: try reader.size()))
        case 7: self = .exited(try reader.take(), cpu: try reader.take(), memory: try reader.size())
        case 8: self = .emptied
        case 9: self = .reattached(messagesKept: try reader.flag(), noticesDelayed: try reader.flag())
        case 10: self = .ready
        case 11: self = .backgroundEntered
        case 12: self = .stopped
        case 13: self = .continued
        case 14:
            self = .taskBegan(
                name: try reader.text(upTo: SavedLimits.text, "a task's name"), owner: try reader.int32("an owner"))
        case 15: self = .taskEnded(name: try reader.text(upTo: SavedLimits.text, "a task's name"))
        case 16: self = .timeoutExtended(by: try reader.take())
        case 17: self = .wakeCompleted(try reader.take())
        case 18: self = .heartbeat
        case 19: self = .heartbeatGivenUp
        case 20: self = .stopping
        case 21: self = .mainProcessChanged(pid: try reader.int32("a pid"))
        case let other: throw reader.unknown(other, "event of a run")
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
