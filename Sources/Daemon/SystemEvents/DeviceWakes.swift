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
    /// Between two wakes of an app: a device with a loose contact is added again and again.
    private let interval: Duration

    private struct Entry {
        var devices: [DeviceMatch]
        /// When the app is to be woken.
        var due: Duration?
        var lastTime: Duration?
    }

    private let loop: EventLoop
    private let journal: Journal
    private let open: () throws(SystemError) -> SharedDescriptor
    private var entries: [AppID: Entry] = [:]
    private var source: EventSource?
    private var timer: Timer?
    /// Requests that an app is woken or launched.
    var wake: (AppID) -> Void = { _ in }

    init(
        loop: EventLoop, journal: Journal, interval: Duration = .seconds(10),
        open: @escaping () throws(SystemError) -> SharedDescriptor = { () throws(SystemError) in try DeviceEvents.open()
        }
    ) {
        self.loop = loop
        self.journal = journal
        self.interval = interval
        self.open = open
    }

    deinit { timer?.cancel() }

    /// A manifest was read.
    func update(_ manifest: AppManifest) {
        guard !manifest.wakeDevices.isEmpty else { return remove(manifest.id) }
        entries[manifest.id, default: Entry(devices: [])].devices = manifest.wakeDevices
        follow()
    }

    func remove(_ app: AppID) {
        guard entries.removeValue(forKey: app) != nil else { return }
        follow()
    }

    private func follow() {
        guard !entries.isEmpty else {
            timer?.cancel()
            (source, timer) = (nil, nil)
            return
        }
        guard source == nil else { return }
        do throws(SystemError) {
            timer = try loop.makeTimer(kind: .timer) { [weak self] _ in self?.wakeDue() }
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
            for (app, entry) in entries where entry.due == nil && entry.devices.contains(where: { $0.matches(device) })
            {
                let earliest = loop.now() + Self.settlingTime
                entries[app]?.due = entry.lastTime.map { max(earliest, $0 + interval) } ?? earliest
            }
        }
        if !isComplete {
            journal.log(.debug, MessageID.warning, "messages about devices were lost: there were too many")
        }
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

    private func arm() { timer?.arm(at: entries.values.compactMap(\.due).min()) }
}
