import LifecycleCore
import Manifest
import Systemd

/// Wakes or launches apps when the device has moved as far as their `WakeOnLocation=` says (L30). A program in the session of a user,
/// such as greenroom-session, asks GeoClue on behalf of the user's apps and reports each move (`ReportLocation`): users permit programs
/// of their session to be located, and not the daemon.
final class LocationWakes {
    let apps = SessionApps("WakeOnLocation=")
    let wakes: SpacedWakes

    /// - Parameter interval: between two wakes of an app: a position can jump between two estimates.
    init(loop: EventLoop, interval: Duration = .seconds(10)) {
        wakes = SpacedWakes(loop: loop, interval: interval)
    }

    /// A manifest was read.
    func update(_ manifest: AppManifest) {
        if manifest.wakeDistance == nil { remove(manifest.id) } else { apps.set(manifest) }
    }

    func remove(_ app: AppID) {
        if apps.remove(app) { wakes.remove(app) }
    }

    /// The property `LocationApps`: of each app also the ID of its desktop file, and the distance in meters.
    var property: Variant {
        apps.list("(sssu)") { [.string($0.windowAppID ?? $0.id.name), .uint32(UInt32($0.wakeDistance ?? 0))] }
    }

    /// Handles the report that an app's device has moved, and answers the call.
    func report(_ call: MethodCall) {
        apps.find(call) { [weak self] app in
            self?.moved(app)
            call.reply()
        }
    }

    /// The device has moved as far as an app's setting says.
    func moved(_ app: AppID) {
        if apps.contains(app) { wakes.request(app) }
    }
}
