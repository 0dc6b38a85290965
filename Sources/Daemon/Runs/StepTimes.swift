import LifecycleCore
import Systemd

/// When the steps of apps began whose length clients get with the change of state that ends them (`tookSeconds`). A step that another
/// daemon has begun is not known.
final class StepTimes {
    enum Step { case freeze, kill }

    private var starts: [AppID: (step: Step, at: Duration)] = [:]

    /// A repeated kill does not begin again.
    func begin(_ step: Step, of app: AppID) {
        if let known = starts[app], known.step == step, step == .kill { return }
        starts[app] = (step, EventLoop.now())
    }

    /// - Returns: how long the step took that the report ends; `nil`: it ends none.
    func end(_ report: Report, at now: Duration) -> Duration? {
        guard case .stateChanged(let app, from: _, to: let state, reason: _) = report else { return nil }
        switch state {
        case .suspended: return end(.freeze, of: app, at: now)
        case .notRunning: return end(.kill, of: app, at: now)
        // A thawed app was not frozen by this step, and one that is about to end may have been killed.
        case .launching, .inactive, .active, .background, .terminating: return nil
        }
    }

    private func end(_ step: Step, of app: AppID, at now: Duration) -> Duration? {
        guard let start = starts.removeValue(forKey: app), start.step == step else { return nil }
        return now - start.at
    }
}
