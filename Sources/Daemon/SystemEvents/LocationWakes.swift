import Control
import Glibc
import LifecycleCore
import LoopPolicy
import Manifest
import Posix
import Systemd

/// Wakes or launches apps when the device has moved as far as their `WakeOnLocation=` says (L30). A program in the session of a user,
/// such as greenroom-session, asks GeoClue on behalf of the user's apps and reports each move (`ReportLocation`): users permit programs
/// of their session to be located, and not the daemon.
final class LocationWakes {
    /// Between two wakes of an app: a position can jump between two estimates.
    private let interval: Duration

    private struct Entry {
        var manifest: AppManifest
        var distance: Int
        /// When the app is to be woken.
        var due: Duration?
        var lastTime: Duration?
    }

    private let loop: EventLoop
    private var entries: [AppID: Entry] = [:]
    private var timer: Timer?
    /// Requests that an app is woken or launched.
    var wake: (AppID) -> Void = { _ in }
    /// The user that the app of a manifest runs as.
    var user: (AppManifest) throws -> UInt32 = { _ in geteuid() }

    init(loop: EventLoop, interval: Duration = .seconds(10)) {
        self.loop = loop
        self.interval = interval
    }

    deinit { timer?.cancel() }

    /// A manifest was read.
    func update(_ manifest: AppManifest) {
        guard let distance = manifest.wakeDistance else { return remove(manifest.id) }
        entries[manifest.id, default: Entry(manifest: manifest, distance: distance)].distance = distance
        entries[manifest.id]?.manifest = manifest
    }

    func remove(_ app: AppID) {
        guard entries.removeValue(forKey: app) != nil else { return }
        arm()
    }

    /// The apps with `WakeOnLocation=`: the app, its user by name or number, the ID of its desktop file, and the distance in meters.
    /// Users are not looked up: that can block.
    var apps: Variant {
        .array(
            "(sssu)",
            entries.keys.sorted().compactMap { id in entries[id].map { (id, $0) } }.map { id, entry in
                .structure([
                    .string(id.name), .string(entry.manifest.user ?? String(geteuid())),
                    .string(entry.manifest.windowAppID ?? id.name), .uint32(UInt32(entry.distance)),
                ])
            })
    }

    // MARK: Reports

    /// Handles the report that an app's device has moved, and answers the call. A user reports moves to apps of this user, and root to any.
    func report(_ call: MethodCall) {
        call.identify { [weak self] result in
            switch result {
            case .success(let caller): self?.report(call, call.text(0), caller.uid)
            case .failure(let error): call.fail(error)
            }
        }
    }

    private func report(_ call: MethodCall, _ name: String, _ caller: UInt32) {
        // The same answer for an app of another user, and for none of that name.
        guard let app = AppID(name), let entry = entries[app],
            caller == 0 || (try? user(entry.manifest)) == caller
        else {
            return call.fail(
                ControlNames.Failure.invalidArgument.error(
                    "No app '\(name.printable(upTo: 80))' of uid \(caller) has WakeOnLocation=."))
        }
        moved(app)
        call.reply()
    }

    /// The device has moved as far as an app's setting says. What comes earlier than `interval` after a wake wakes it then.
    func moved(_ app: AppID) {
        guard let entry = entries[app], entry.due == nil else { return }
        entries[app]?.due = max(loop.now(), entry.lastTime.map { $0 + interval } ?? .zero)
        arm()
    }

    private func wakeDue() {
        let now = loop.now()
        for app in entries.keys.sorted() {
            guard let due = entries[app]?.due, due <= now else { continue }
            entries[app]?.due = nil
            entries[app]?.lastTime = now
            wake(app)
        }
        arm()
    }

    private func arm() {
        let due = entries.values.compactMap(\.due).min()
        if timer == nil, due != nil {
            timer = try? loop.makeTimer(kind: .timer) { [weak self] _ in self?.wakeDue() }
        }
        timer?.arm(at: due)
    }
}
