import LifecycleCore
import Linux
import LoopPolicy
import Manifest
import Posix
import Reports
import Systemd

/// Wakes or launches apps when a device is added that their `WakeOnDevice=` names. Messages about devices are read only while a loaded
/// app has this setting.
final class DeviceWakes {
    /// After the first message: a device consists of several, and udev announces each.
    private static let settlingTime = Duration.milliseconds(500)

    private let loop: EventLoop
    private let journal: Journal
    private let open: () throws(SystemError) -> SharedDescriptor
    private var devices: [AppID: [DeviceMatch]] = [:]
    private var source: EventSource?
    let wakes: SpacedWakes

    /// - Parameter interval: between two wakes of an app: a device with a loose contact is added again and again.
    init(
        loop: EventLoop, journal: Journal, interval: Duration = .seconds(10),
        open: @escaping () throws(SystemError) -> SharedDescriptor = { () throws(SystemError) in try DeviceEvents.open()
        }
    ) {
        self.loop = loop
        self.journal = journal
        self.open = open
        wakes = SpacedWakes(loop: loop, interval: interval)
    }

    /// A manifest was read.
    func update(_ manifest: AppManifest) {
        guard !manifest.wakeDevices.isEmpty else { return remove(manifest.id) }
        devices[manifest.id] = manifest.wakeDevices
        follow()
    }

    func remove(_ app: AppID) {
        guard devices.removeValue(forKey: app) != nil else { return }
        wakes.remove(app)
        follow()
    }

    private func follow() {
        guard !devices.isEmpty else { return source = nil }
        guard source == nil else { return }
        do throws(SystemError) {
            let descriptor = try open()
            source = try loop.addDescriptor(descriptor, events: .readable, kind: .systemEvent) { [weak self] _ in
                self?.read(descriptor)
                return .progress
            }
        } catch {
            journal.logWarning("WakeOnDevice= has no effect: \(error)")
        }
    }

    private func read(_ descriptor: SharedDescriptor) {
        let isComplete = DeviceEvents.readAdded(descriptor) { device in
            for (app, matches) in devices where matches.contains(where: { $0.matches(device) }) {
                wakes.request(app, after: Self.settlingTime)
            }
        }
        if !isComplete {
            journal.log(.debug, MessageID.warning, "messages about devices were lost: there were too many")
        }
    }
}
