import LifecycleCore

/// Which apps may have a continued task (L21), by what they have said, whatever the core takes for one.
struct ContinuedTasks {
    private struct App {
        /// The tasks of the run that began in the foreground, with what was done of them last; `nil`: no report of this one.
        var tasks: [String: UInt64?] = [:]
        /// When one of them advanced last, or the time without progress began anew; `nil`: none has been reported.
        var advanced: Microseconds?
    }

    private var apps: [App]

    init(apps count: Int) { apps = Array(repeating: App(), count: count) }

    /// Whether the background time may not limit the app, or limits it again since less than the time of the notice.
    func mayContinue(_ app: Int, _ policy: AppPolicy, at now: Microseconds) -> Bool {
        guard let advanced = apps[app].advanced, policy.taskProgressTime != .zero else { return false }
        guard let time = policy.taskProgressTime else { return true }
        return now <= advanced + (time + policy.expirationNotice).microseconds
    }

    mutating func record(_ event: Event, of app: Int?, _ model: CoreModel, at now: Microseconds) {
        guard let app, case .run(let run, let what) = event, model.apps[app].run == run else { return }
        switch what {
        case .task(.began(let name, _)):
            let phase = model.apps[app].phase
            if phase == .foreground || phase == .launching { apps[app].tasks[name] = .some(nil) }
        case .task(.ended(let name)): if apps[app].tasks[name] != nil { apps[app].tasks[name] = .some(nil) }
        case .task(.progressed(let name, let report)):
            guard let last = apps[app].tasks[name] else { return }
            apps[app].tasks[name] = report.done
            if last.map({ report.done > $0 }) ?? true { apps[app].advanced = now }
        // The time without progress begins anew.
        case .process(.reattached), .mode(.ended), .mode(.shown), .mode(.unused), .mode(.inhibitorChanged):
            renew(app, now)
        default: break
        }
    }

    mutating func record(_ effect: Effect, of app: Int?, at now: Microseconds) {
        guard let app else { return }
        switch effect {
        case .spawn: apps[app] = App()
        case .report(.stateChanged(_, _, .background, _)): renew(app, now)
        default: break
        }
    }

    /// Also after the daemon did not run for a while.
    mutating func renew(_ app: Int, _ now: Microseconds) { if apps[app].advanced != nil { apps[app].advanced = now } }
}
