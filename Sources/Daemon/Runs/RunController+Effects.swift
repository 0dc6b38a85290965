import LifecycleCore

/// Performs what the core wants done with the run.
extension RunController {
    func perform(_ effect: RunEffect, _ id: EffectID) {
        switch effect {
        case .notify(let notice): notify(notice, id)
        case .deliver(let notifications): deliver(notifications, id)
        case .warn(let warning): warn(warning)
        case .kill: kill()
        case .continueStopped: continueStopped()
        case .deadline(.inspect): inspect()
        case .deadline(.measureActivity(let listeners)): measureActivity(listeners: listeners)
        case .suspension(.freeze(let attempt)): freeze(attempt: attempt)
        case .suspension(.thaw(let attempt)): thaw(attempt: attempt)
        case .traffic(.watchInput(let attempt, let onlyPeers)): watchInput(attempt: attempt, onlyPeers: onlyPeers)
        case .traffic(.stopWatchingInput): stopWatchingInput()
        case .traffic(.measureWork(let kind)): measureWork(kind)
        case .processor(let effect): perform(effect)
        case .hook(.kill(let number)): killHook(number)
        case .hook(.run), .memory: assertionFailure("EffectPerformer performs it")
        }
    }

    private func perform(_ effect: ProcessorEffect) {
        switch effect {
        case .throttle: setWeights(background: true)
        case .unthrottle: setWeights(background: false)
        case .measure: measureProcessor()
        case .limit(let limit): limitProcessor(limit)
        case .watchGPU(let begins): watchGPU(begins)
        }
    }
}
