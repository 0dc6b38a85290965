import Glibc
import LifecycleCore
import Linux
import LoopPolicy
import Posix
import Systemd

/// A hook that runs: its commands, one after the other (L57).
final class HookRun {
    let number: Int
    fileprivate var commands: [SpawnRequest]
    /// The position of the command that runs.
    fileprivate var position = -1
    fileprivate var process: Linux.Process?
    fileprivate var startTime: UInt64 = 0
    /// The previous daemon started it.
    fileprivate var isAdopted = false
    /// From clone(2) until the outcome of execve(2) is known.
    fileprivate var start: Start?
    fileprivate var source: EventSource?

    fileprivate final class Start {
        var process: StartingProcess
        init(_ process: consuming StartingProcess) { self.process = process }
    }

    fileprivate init(_ number: Int, _ commands: [SpawnRequest]) {
        self.number = number
        self.commands = commands
    }

    /// The app ends: no further command is run.
    func dropRest() { commands = Array(commands.prefix(position + 1)) }

    /// What the next daemon needs to find it again; `nil`: no process of it runs.
    var record: HookRecord? {
        process.map { HookRecord(number: number, position: position, pid: $0.pid, startTime: startTime) }
    }
}

extension RunController {
    /// Runs commands in their order, until one fails. `hookEnded` follows.
    func runHook(_ number: Int, _ commands: [SpawnRequest]) {
        let hook = HookRun(number, commands)
        self.hook = hook
        startNextCommand(of: hook)
    }

    private func startNextCommand(of hook: HookRun) {
        hook.position += 1
        guard hook.position < hook.commands.count, process != nil else { return endHook(hook, .ended(.exited(0))) }
        do {
            let starting = try startProcess(hook.commands[hook.position])
            let (process, outcome) = (starting.process, starting.outcomeDescriptor)
            hook.start = HookRun.Start(starting)
            hook.process = process
            hook.startTime = (try? ProcFS().stat(of: process.pid))?.startTime ?? 0
            context.runs.insertHook(process.pid)
            persistRecord()
            hook.source = try context.loop.addDescriptor(outcome, events: .readable, kind: .processEnd) {
                [weak self, weak hook] _ in TurnResult(hook.map { self?.hookDecided($0) ?? true } ?? true)
            }
        } catch {
            signalHook(hook)
            endHook(hook, .notStarted("\(error)"))
        }
    }

    /// - Returns: whether it is known whether the command is executed.
    private func hookDecided(_ hook: HookRun) -> Bool {
        guard self.hook === hook, let start = hook.start else { return true }
        do {
            switch try start.process.outcome() {
            case .pending: return false
            case .executed, .killedBeforeExec:
                hook.start = nil
                watchHook(hook)
            case .failed(let failure): endHook(hook, .notStarted(failure.sentence))
            }
        } catch {
            signalHook(hook)
            endHook(hook, .notStarted("\(error)"))
        }
        return true
    }

    private func watchHook(_ hook: HookRun) {
        guard let process = hook.process else { return }
        do {
            hook.source = try context.loop.addDescriptor(process.descriptor, events: .readable, kind: .processEnd) {
                [weak self, weak hook] _ in TurnResult(hook.map { self?.hookProcessEnded($0) ?? true } ?? true)
            }
        } catch {
            signalHook(hook)
            endHook(hook, .notStarted("\(error)"))
        }
    }

    /// - Returns: whether the process of the hook has ended.
    private func hookProcessEnded(_ hook: HookRun) -> Bool {
        guard self.hook === hook, let process = hook.process else { return true }
        guard process.isOver else { return false }
        let reaped = ((try? process.reap()) ?? nil)?.status
        let status = (reaped ?? (try? process.exitStatus()) ?? nil).map { ExitStatus($0) } ?? .unknown
        releaseProcess(of: hook)
        switch status {
        case .exited(0), .unknown, .lost: startNextCommand(of: hook)
        case .exited, .signaled: endHook(hook, .ended(status))
        }
        return true
    }

    private func endHook(_ hook: HookRun, _ outcome: HookOutcome) {
        releaseProcess(of: hook)
        self.hook = nil
        context.logbook.batch {
            persistRecord()
            send(.hookEnded(number: hook.number, outcome))
        }
    }

    /// From now on the process is an orphan of the app like any other, if it has not ended.
    private func releaseProcess(of hook: HookRun) {
        hook.source = nil
        hook.start = nil
        guard let process = hook.process else { return }
        _ = try? process.reap()
        hook.process = nil
        context.runs.removeHook(process.pid)
        context.runs.reapOrphans()
    }

    // MARK: Its deadline, and the end of the run

    /// Kills a hook whose time is over: the command that runs, with what is left of its session.
    func killHook(_ number: Int) {
        guard let hook, hook.number == number else { return }
        signalHook(hook)
        releaseHook()
    }

    private func signalHook(_ hook: HookRun) {
        guard let process = hook.process else { return }
        // A child that was not reaped keeps its number, so the group is its own (setsid(2) before execve(2)).
        if !hook.isAdopted, !process.isOver { Glibc.kill(-process.pid, SIGKILL) }
        attempt { try process.signal(SIGKILL) }
    }

    func releaseHook() {
        guard let hook else { return }
        releaseProcess(of: hook)
        self.hook = nil
        persistRecord()
    }

    // MARK: Recovery

    /// Takes over the command that the previous daemon started, if it runs.
    func adoptHook(_ record: HookRecord) {
        guard let process = (try? Linux.Process.open(record.pid)) ?? nil,
            let stat = (try? ProcFS().stat(of: record.pid)) ?? nil, stat.startTime == record.startTime
        else { return }
        let hook = HookRun(record.number, [])
        hook.position = record.position
        hook.process = process
        hook.startTime = record.startTime
        hook.isAdopted = stat.parent != getpid()
        context.runs.insertHook(process.pid)
        self.hook = hook
    }

    /// Continues a hook that the previous daemon started. Its deadline is what it was.
    /// - Parameter running: what the core waits for.
    func restoreHook(_ running: (hook: Hook, number: Int)?) {
        guard let running else { return hook.map { killHook($0.number) } ?? () }
        // This daemon has started it.
        if let hook, hook.number == running.number, hook.source != nil { return }
        guard let hook, hook.number == running.number else {
            if let hook { killHook(hook.number) }
            return send(.hookEnded(number: running.number, .ended(.unknown)))
        }
        hook.commands = (try? context.launcher?.commands(of: running.hook, self)) ?? []
        watchHook(hook)
    }
}
