import LifecycleCore
import Linux
import LoopPolicy
import Posix
import Systemd

/// A main process that has not executed its program yet.
final class ProgramStart {
    fileprivate var process: StartingProcess
    fileprivate var source: EventSource?

    fileprivate init(_ process: consuming StartingProcess) { self.process = process }

    /// The source goes before the descriptor that it watches is closed.
    deinit { source = nil }
}

/// The start of the main process: clone(2), then execve(2) of the app's program.
extension RunController {
    /// Starts the main process. `spawned` follows, then `executed`, or `spawnFailed` if the program cannot be executed.
    /// - Throws: if there is no process. Call `abandonStart` then.
    func start(_ request: SpawnRequest) throws {
        // Recorded before there is a process, so the next daemon knows of each process that was started.
        persistRecord()
        let starting = try startProcess(request)
        let process = starting.process
        let outcome = starting.outcomeDescriptor
        let start = ProgramStart(starting)
        self.start = start
        setMainProcess(process)
        try enclosure.started(process)
        start.source = try context.loop.addDescriptor(outcome, events: .readable, kind: .execOutcome) {
            [weak self] _ in TurnResult(self?.execDecided() ?? true)
        }
        send(.process(.spawned(pid: process.pid)))
    }

    /// Removes the run after `start` has thrown. A process that cannot be watched is killed.
    func abandonStart() {
        if process != nil { attempt { try enclosure.killAll() } }
        remove()
    }

    /// From now on `process` is the main process: recorded, and kept in the descriptor store.
    func setMainProcess(_ process: Linux.Process) {
        self.process = process
        mainPID = process.pid
        startTime = (try? ProcFS().stat(of: process.pid))?.startTime ?? 0
        context.runs.insertMainProcess(process.pid, of: id)
        persistRecord()
        storeDescriptors()
    }

    /// - Returns: whether it is decided.
    @discardableResult
    func execDecided() -> Bool {
        let outcome: ExecOutcome
        do {
            outcome = try start?.process.outcome() ?? .pending
        } catch {
            // Without an outcome the app is killed at its launch deadline.
            start?.source = nil
            logWarning("\(error)")
            return true
        }
        switch outcome {
        case .pending: return false
        case .executed:
            start = nil
            applyOOMClass()
            watchExit()
            send(.process(.executed))
        case .killedBeforeExec:
            // Its exit is reported like any other.
            start = nil
            watchExit()
        case .failed(let failure):
            start = nil
            _ = try? process?.reap()
            remove()
            send(.process(.spawnFailed(SpawnProblem(sentence: failure.sentence, exitStatus: failure.exitStatus))))
        }
        return true
    }
}
