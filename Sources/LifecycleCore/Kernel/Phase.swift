/// What an app does, without the details: derived from `ProcessLife` and `Execution`.
enum Phase: Hashable, Sendable {
    case notRunning, launching, foreground, enteringBackground, background, suspending, suspended, waking, terminating
    case ending

    /// Whether an app may change from this phase to another. `LifecycleCore.change` enforces it.
    func mayBecome(_ next: Phase) -> Bool {
        if self == next { return true }
        return switch self {
        case .notRunning: next == .launching
        case .launching:
            [.foreground, .enteringBackground, .terminating, .ending].contains(next)
        case .foreground: [.enteringBackground, .terminating, .ending].contains(next)
        case .enteringBackground: [.background, .foreground, .terminating, .ending].contains(next)
        case .background: [.foreground, .suspending, .terminating, .ending].contains(next)
        case .suspending: [.suspended, .waking, .ending].contains(next)
        case .suspended: [.suspending, .waking, .ending].contains(next)
        case .waking: [.background, .foreground, .terminating, .ending].contains(next)
        case .terminating: next == .ending
        case .ending: next == .notRunning
        }
    }
}

extension Execution {
    var phase: Phase {
        @inline(__always) get {
            switch self {
            case .launching: .launching
            case .foreground: .foreground
            case .enteringBackground: .enteringBackground
            case .background: .background
            case .suspending: .suspending
            case .suspended: .suspended
            case .waking: .waking
            case .terminating: .terminating
            }
        }
    }
}

extension ProcessLife {
    var phase: Phase {
        switch self {
        case .notRunning: .notRunning
        case .running(let running): running.execution.phase
        case .ending: .ending
        }
    }

    /// The state that users see.
    var state: AppState {
        switch self {
        case .notRunning: .notRunning
        case .running(let running): running.execution.state
        case .ending: .terminating
        }
    }
}
