import LifecycleCore
import Schedule

/// Apps that do at once what is asked of them.
extension TimerSimulation {
    private func index(of run: RunID) -> Int? { apps.firstIndex { $0.run == run } }

    /// Carries out an effect.
    /// - Returns: what comes of it.
    mutating func outcomes(of effect: Effect) -> [Event] {
        switch effect {
        case .spawn(let id, let run, _):
            guard let index = apps.firstIndex(where: { $0.id == id }) else { return [] }
            (apps[index].run, apps[index].isFrozen, apps[index].wakeOpen) = (run, false, false)
            return [.run(run, .process(.spawned(pid: 7))), .run(run, .process(.executed))]
        case .run(let run, .notify(let notice)):
            guard notice.isAnswered else { return [] }
            let notified = Event.run(run, .transition(.notified(notice, delivered: true, cpu: .zero)))
            return notice == .willTerminate
                ? [notified] + end(run, .exited(0)) : [notified, .run(run, .transition(.backgroundEntered))]
        case .run(let run, .suspension(.freeze(let attempt))):
            if let index = index(of: run) { apps[index].isFrozen = true }
            return [.run(run, .suspension(.frozen(attempt: attempt, memory: 1 << 20)))]
        case .run(let run, .suspension(.thaw(let attempt))):
            if let index = index(of: run) { apps[index].isFrozen = false }
            return [.run(run, .suspension(.thawed(attempt: attempt)))]
        case .run(let run, .continueStopped): return [.run(run, .process(.continued))]
        case .run(let run, .deadline(.inspect)):
            return [.run(run, .deadline(.inspected(Inspection(traced: false, cpu: .zero, memory: 1 << 20))))]
        case .run(let run, .deadline(.measureActivity)):
            return [.run(run, .deadline(.activityMeasured(RunActivity(cpu: .zero, waited: .zero))))]
        case .run(let run, .traffic(.watchInput(let attempt, _))):
            return [.run(run, .traffic(.inputWatched(attempt: attempt, InputWatch(watched: 1))))]
        case .run(let run, .traffic(.measureWork)): return [.run(run, .traffic(.workMeasured(RunWork(cpu: .zero))))]
        case .run(let run, .processor(.measure)): return [.run(run, .processor(.measured(used: .zero, waited: .zero)))]
        case .run(let run, .memory(.measureSize)):
            return [.run(run, .memory(.sizeMeasured(bytes: 1 << 20, estimate: 1 << 20)))]
        case .run(let run, .hook(.run(_, let number))):
            return [.run(run, .hookEnded(number: number, .ended(.exited(0))))]
        case .run(let run, .kill): return end(run, .signaled(9, coreDumped: false))
        case .measureMemory:
            return [.memory(.measured(MemoryReading(total: 8 << 30, available: 7 << 30, sizes: [])))]
        case .report(.deadlineStarted(let id, .wake, _, _)):
            if let index = apps.firstIndex(where: { $0.id == id }) { apps[index].wakeOpen = true }
            return []
        case .scheduleTimers(let id):
            if let index = apps.firstIndex(where: { $0.id == id }) {
                apps[index].isReported = false
                needsPlan.insert(index)
            }
            return []
        case .run, .recordLaunch, .writeReceipt, .dropRestorationState, .identify, .answer, .report, .allowSleep,
            .sockets, .removeInstance, .subscribe, .finish:
            return []
        }
    }

    private mutating func end(_ run: RunID, _ status: ExitStatus) -> [Event] {
        guard let index = index(of: run) else { return [] }
        (apps[index].run, apps[index].isFrozen, apps[index].wakeOpen) = (nil, false, false)
        return [.run(run, .process(.exited(status, cpu: .zero, memory: 0))), .run(run, .process(.emptied))]
    }
}
