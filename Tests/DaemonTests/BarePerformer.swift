import LifecycleCore
import Linux
import Manifest
import Systemd
import Testing

@testable import Daemon

extension EffectPerformer {
    /// One without a daemon, in process-group mode, whose logbook is not begun. It makes the process the subreaper of its
    /// orphans.
    static func bare(in root: String, _ loop: EventLoop, send: @escaping (Event) -> Void) throws -> EffectPerformer {
        var folders = try #require(Folders(mode: .system) { _ in nil })
        folders.moveRuntime(to: root)
        folders.moveState(to: root)
        try createDirectories(at: folders.notifySockets)
        return try EffectPerformer(
            loop: loop, folders: folders,
            containment: Containment(mode: .processGroup(reason: "a test"), name: "bare"),
            journal: Journal(level: .error), receipts: ReceiptStore(folders: folders, clock: WallClock()),
            launches: LaunchStore(folders: folders), logbook: Logbook(path: root + "/logbook"),
            memory: MemoryWatch(loop: loop) { _ in }, inheritedEnvironment: [], store: DescriptorStore { _ in nil },
            send: send)
    }

    /// A run of an app, without a process.
    func makeRun(_ id: RunID, of app: String) throws -> AppRun {
        let run = AppRun(
            id: id, manifest: AppManifest(id: try #require(AppID(app))),
            enclosure: try containment.create(app: app, run: id.number),
            channel: try AppChannel(loop: loop, path: folders.notifySockets + "/\(id)", owner: nil), owner: nil)
        runs[id] = run
        return run
    }
}
