import Glibc
import LifecycleCore
import Linux
import Posix

/// The runs that are not over, and the main processes by which the kernel reports on them.
final class RunTable {
    private var controllers: [RunID: RunController] = [:]
    private var mainProcesses: [Int32: RunID] = [:]
    /// The processes of hooks. The run's controller reaps them.
    private var hooks: Set<Int32> = []

    private var latest: [AppID: RunID] = [:]

    subscript(run: RunID) -> RunController? { controllers[run] }

    /// The run of an app that was created last, if it is not over.
    subscript(app: AppID) -> RunController? { latest[app].flatMap { controllers[$0] } }

    /// The user that an app runs as; `nil`: it has no process.
    func user(of app: AppID) -> UInt32? { self[app].map { $0.owner?.uid ?? geteuid() } }

    /// In the order of their numbers.
    var all: [RunController] { controllers.values.sorted { $0.id < $1.id } }

    func insert(_ run: RunController) {
        controllers[run.id] = run
        latest[run.app] = run.id
    }

    func remove(_ run: RunController) {
        guard contains(run) else { return }
        controllers[run.id] = nil
        if latest[run.app] == run.id { latest[run.app] = nil }
    }

    func contains(_ run: RunController) -> Bool { controllers[run.id] === run }

    /// The runs that are not frozen. The size of a frozen run cannot change.
    var awake: [RunID] { controllers.values.lazy.filter { !$0.isFrozen }.map(\.id).sorted() }

    /// The runs that are frozen.
    var frozen: [RunID] { controllers.values.lazy.filter(\.isFrozen).map(\.id).sorted() }

    // MARK: Children

    /// Assigns the kernel's reports about this pid to the run. The run's controller reaps its main process.
    func insertMainProcess(_ pid: Int32, of run: RunID) { mainProcesses[pid] = run }

    /// The process was reaped, or is no longer the main process.
    func removeMainProcess(_ pid: Int32) { mainProcesses[pid] = nil }

    func insertHook(_ pid: Int32) { hooks.insert(pid) }

    /// From now on it is an orphan like any other.
    func removeHook(_ pid: Int32) { hooks.remove(pid) }

    /// Handles SIGCHLD: main processes that stopped or continued, and orphans of apps. Orphans become children of the
    /// daemon because it is their subreaper (PR_SET_CHILD_SUBREAPER(2const)).
    func childrenChanged() {
        for change in (try? Reaping.reapStops()) ?? [] {
            guard let run = mainProcesses[change.pid].flatMap({ controllers[$0] }) else {
                if change.change == .continued { orphanContinued(change.pid) }
                continue
            }
            if run.isFrozen {
                if change.change == .continued { run.mainProcessContinued() }
                continue
            }
            switch change.change {
            case .stopped: run.send(.process(.stopped))
            case .continued: run.send(.process(.continued))
            }
        }
        reapOrphans()
    }

    /// An orphan of an app was continued, in process-group mode.
    private func orphanContinued(_ pid: Int32) {
        guard let stat = (try? ProcFS().stat(of: pid)) ?? nil else { return }
        controllers.values.first { $0.isFrozen && $0.enclosure.isKnown(stat) }?.continued(stat)
    }

    /// Reaps all children that are neither main processes nor hooks. One of these that has ended hides those behind it from
    /// waitid(2), so this is called again once it was reaped.
    func reapOrphans() {
        _ = try? Reaping.reapOrphans(sparing: { mainProcesses[$0] != nil || hooks.contains($0) })
    }
}
