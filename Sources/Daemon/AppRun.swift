import LifecycleCore
import Linux
import Manifest
import Posix
import Systemd

/// The hands on one run of one app: its process, its group, its channel. Decides nothing.
final class AppRun {
    let id: RunID
    let app: AppID
    let manifest: AppManifest
    let enclosure: Enclosure
    let channel: AppChannel
    /// While `execve` is under way.
    var starting: StartingProcess?
    /// The main process; `nil` once it was reaped.
    var process: Linux.Process?
    /// Of the main process, also once it was reaped; with when it began, in clock ticks since boot.
    var mainPID: Int32?
    var startTime: UInt64 = 0
    /// Its main process is no child of ours: an earlier daemon's.
    var isStranger = false
    /// Looks whether such a process has stopped itself, or was reaped by whoever is its parent now.
    var lookAtStranger: Retry?
    var execSource: EventSource?
    var exitSource: EventSource?
    /// Looks for the end, where the kernel would not watch for it.
    var lookForEnd: Retry?
    /// Looks again whether the group is frozen, or empty.
    var lookAgain: Retry?
    /// What it is still to be told: each notice once the signal of the one before was taken (L3).
    var notices: [Notice] = []
    var telling: Retry?
    /// The run's note has some of them.
    var hasNotedNotices = false
    var lastSignal: Int32?
    /// Frozen, so that its size can't change and nothing has to be read of it.
    var isFrozen = false
    /// What it says of itself (`STATUS=`).
    var statusText: String?
    /// What it says went wrong (`ERRNO=`).
    var errno: Int32?
    /// Of the user it runs as.
    let owner: Owner?

    init(id: RunID, manifest: AppManifest, enclosure: Enclosure, channel: AppChannel, owner: Owner?) {
        self.owner = owner
        self.id = id
        self.app = manifest.id
        self.manifest = manifest
        self.enclosure = enclosure
        self.channel = channel
    }

    /// What is watched is closed after it is no longer: a copy in systemd's store would keep it in epoll(7).
    deinit {
        execSource = nil
        exitSource = nil
    }

    // What can't be read of a group is what a group that is gone has.

    var isReallyFrozen: Bool { (try? enclosure.isFrozen()) ?? false }
    var isPopulated: Bool { (try? enclosure.isPopulated()) ?? false }
    /// Bytes.
    var memory: UInt64 { (try? enclosure.memoryBytes()) ?? 0 }
    var cpu: Duration { (try? enclosure.cpuTime()) ?? .zero }

    /// The signal that the manifest declares for a notice.
    func signal(for notice: Notice) -> Int32? {
        let signals = manifest.signals
        return switch notice {
        case .willResignActive: signals.resignActive
        case .didEnterBackground: signals.enterBackground
        case .willEnterForeground: signals.enterForeground
        case .didBecomeActive: signals.becomeActive
        case .willTerminate: signals.terminate
        case .memoryWarning: signals.memoryWarning
        case .tasksExpiring: signals.taskExpiring
        }
    }
}
