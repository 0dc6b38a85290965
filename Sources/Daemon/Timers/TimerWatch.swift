import Linux
import LoopPolicy
import Posix
import Systemd

/// The descriptor of the nearest moment, in the loop, and a watch of the file that says what the local time zone is.
final class TimerWatch {
    enum Change {
        case elapsed, clockSet
        /// A file of the folder with the time zone was replaced or removed, perhaps that of the zone.
        case zoneFolderChanged
    }

    let timer: WallTimer
    private var source: EventSource?
    private var zoneSource: EventSource?

    /// - Parameter folder: has the symbolic link `localtime` (localtime(5)).
    init(
        _ loop: EventLoop, folder: String = "/etc", _ handler: @escaping (Change) -> Void
    ) throws(SystemError) {
        timer = try WallTimer()
        let descriptor = timer.descriptor
        source = try loop.addDescriptor(descriptor, events: .readable, kind: .wakeTimer) { _ in
            switch WallTimer.read(descriptor) {
            case .elapsed: handler(.elapsed)
            case .clockSet: handler(.clockSet)
            case .nothing: return .nothing
            }
            return .progress
        }
        // It is replaced when the zone changes (timedatectl(1)). Where it cannot be watched, the next moment sees it.
        guard let zone = try? FolderWatch(folder).descriptor else { return }
        zoneSource = try loop.addDescriptor(zone, events: .readable, kind: .folderChange) { _ in
            let hasChanged = FolderWatch.clear(zone)
            if hasChanged { handler(.zoneFolderChanged) }
            return TurnResult(hasChanged)
        }
    }
}
