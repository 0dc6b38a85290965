import LifecycleCore

/// The phases of an app, as tests reach them.
enum Stage: String, CaseIterable {
    case notRunning, launching, active, inactive, entering, running, suspending, suspended, waking, terminating, ending

    static let withProcess = allCases.filter { $0 != .notRunning }

    /// The state that users see.
    var state: AppState {
        switch self {
        case .notRunning: .notRunning
        case .launching: .launching
        case .active: .active
        case .inactive: .inactive
        case .entering, .running, .suspending, .waking: .background
        case .suspended: .suspended
        case .terminating, .ending: .terminating
        }
    }
}

extension Harness {
    /// Moves an app that is not running to a stage, in which it stays until the next event.
    func move(_ name: String, to stage: Stage) {
        behave(name) { behaviour in
            switch stage {
            case .notRunning, .launching: behaviour.launching = .spawns
            case .entering: behaviour.entering = .isSilent
            case .suspending: behaviour.freezes = false
            case .waking: behaviour.thaws = false
            case .terminating: behaviour.terminating = .ignores
            case .ending: behaviour.dies = false
            case .active, .inactive, .running, .suspended: break
            }
        }
        if stage == .notRunning { return }
        launch(name)
        switch stage {
        case .notRunning, .launching, .active: break
        case .inactive: request(name, .interrupt)
        case .entering, .running: background(name)
        case .suspending, .suspended, .waking:
            background(name)
            advance(policies[id(name)]!.suspendDelay)
            if stage == .waking { task(name, "upload") }
        case .terminating: terminate(name)
        case .ending: remove(name)
        }
    }

    /// Lets the app behave well again and completes the transition of the stage.
    func finish(_ name: String, _ stage: Stage, _ run: RunID?) {
        behave(name) { $0 = Kernel.Behaviour() }
        guard let run else { return }
        switch stage {
        case .notRunning, .launching:
            handle(.run(run, .process(.executed)))
            handle(.run(run, .transition(.ready)))
        case .entering: handle(.run(run, .transition(.backgroundEntered)))
        case .suspending: handle(.run(run, .suspension(.frozen(attempt: 1, memory: mebibyte))))
        case .waking: handle(.run(run, .suspension(.thawed(attempt: 1))))
        case .terminating, .ending:
            handle(.run(run, .process(.exited(.signaled(9, coreDumped: false), cpu: .zero, memory: 0))))
            handle(.run(run, .process(.emptied)))
        case .active, .inactive, .running, .suspended: break
        }
    }
}
