import Glibc
import LifecycleCore
import Manifest
import Posix
import Systemd

/// What launches, wakes and notifies apps because their manifests say so: held sockets, timers, devices, locations, pushes, and the
/// state of the machine and of sessions.
struct WakeSources {
    let sockets: HeldSockets
    let timers: Timers
    let systemEvents: SystemEvents
    let devices: DeviceWakes
    let locations: LocationWakes
    let pushEndpoints = PushEndpoints()

    /// - Parameter stamps: when the timers of apps with `Persistent=` elapsed last.
    init(
        sockets: HeldSockets, stamps: LaunchStore, loop: EventLoop, runs: RunTable, users: UserCache, journal: Journal,
        events: any EventSink
    ) throws(SystemError) {
        self.sockets = sockets
        timers = Timers(loop: loop, journal: journal, stamps: stamps, events: events)
        systemEvents = try SystemEvents(loop: loop, journal: journal, events: events)
        devices = DeviceWakes(loop: loop, journal: journal)
        locations = LocationWakes(loop: loop)
        for digests in [systemEvents.desktop, systemEvents.accounts] {
            digests.user = { [unowned runs] in runs.user(of: $0) }
        }
        for apps in [locations.apps, pushEndpoints.apps] {
            apps.user = { manifest throws in try users.user(of: manifest)?.owner.uid ?? geteuid() }
        }
        pushEndpoints.changed = { [unowned systemEvents] in systemEvents.report(endpoint: $1, of: $0) }
        systemEvents.endpoint = { [unowned pushEndpoints] in pushEndpoints[$0] }
    }

    /// The core knows the app of this manifest. Its sockets were bound before.
    func update(_ manifest: AppManifest) {
        timers.update(manifest)
        systemEvents.update(manifest)
        devices.update(manifest)
        locations.update(manifest)
        pushEndpoints.update(manifest)
    }

    func remove(_ app: AppID) {
        sockets.remove(app)
        timers.remove(app)
        systemEvents.remove(app)
        devices.remove(app)
        locations.remove(app)
        pushEndpoints.remove(app)
    }
}
