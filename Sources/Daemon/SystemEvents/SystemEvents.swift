import LifecycleCore
import Linux
import LoopPolicy
import Manifest
import Posix
import Reports
import Systemd

/// The sources of notifications (L33): what the machine is like, as far as apps with a process want to know it. A source that no app
/// wants does not exist: no descriptor, no match rule, no timer. What becomes of a reading is the core's to decide.
final class SystemEvents {
    /// Where the sources look, and for how long; others in tests.
    struct Locations {
        var etc = "/etc"
        var sys = "/sys"
        /// For so long UPower may not answer, or not run, before the kernel's reading counts.
        var upowerTimeout = Duration.seconds(5)
        /// Apps whose settings files are watched. Each needs an instance of inotify(7), and all programs of a user have 128 by default.
        var mostSettingsFiles = 64
        var openDeviceEvents: () throws(SystemError) -> SharedDescriptor = { () throws(SystemError) in
            try DeviceEvents.open()
        }
    }

    /// Between two readings of a kind that are passed on: of more the last one is.
    static let interval = Duration.milliseconds(200)

    private let loop: EventLoop
    private let journal: Journal
    private unowned let events: any EventSink
    private let locations: Locations
    private var wanted: [AppID: NotificationKinds] = [:]
    /// How many apps want a kind.
    private var counts: [String: Int] = [:]
    /// The last reading of each kind that was passed on, when, and the one that waits.
    private var readings: [String: Reading] = [:]
    private var timer: Systemd.Timer?

    private struct Reading {
        var payload: String?
        var next: String?
        var time = .zero - interval
    }

    /// `SettingsFile=` of the apps that have it, whether they want the kind or not.
    private var settingsFiles: [AppID: String] = [:]
    private var settings: [AppID: SettingsSource] = [:]
    /// Of the apps that have none.
    let desktop: SessionDigests
    /// The online accounts of users.
    let accounts: SessionDigests
    /// The address at which an app can be sent pushes, if it has one.
    var endpoint: (AppID) -> String? = { _ in nil }
    private var time: TimeSource?
    private var locale: ReadingSource?
    private var devices: DeviceSource?
    /// The system bus while it is connected.
    private weak var bus: BusPeer?
    private var readers: [String: BusReader] = [:]
    /// What UPower says; without it the kernel does, but not while UPower is expected: what both say may differ by a percent.
    private var upower: String?
    private var upowerTimer: Systemd.Timer?

    init(loop: EventLoop, journal: Journal, events: any EventSink, locations: Locations = Locations())
        throws(SystemError)
    {
        self.loop = loop
        self.journal = journal
        self.events = events
        self.locations = locations
        desktop = try SessionDigests(loop)
        accounts = try SessionDigests(loop)
        timer = try loop.makeTimer(kind: .timer) { [weak self] _ in self?.passOnWaiting() }
        desktop.send = { [weak self] in self?.send("settings", $0, $1) }
        accounts.send = { [weak self] in self?.send("account", $0, $1) }
        upowerTimer = try loop.makeTimer(kind: .timer) { [weak self] _ in self?.readSupplies() }
    }

    // MARK: Subscriptions

    /// What an app wants to know from now on.
    func subscribe(_ app: AppID, _ kinds: NotificationKinds) {
        let before = wanted[app] ?? []
        wanted[app] = kinds.isEmpty ? nil : kinds
        for kind in kinds.subtracting(before).names { counts[kind, default: 0] += 1 }
        for kind in before.subtracting(kinds).names {
            counts[kind, default: 1] -= 1
            if counts[kind] == 0 { counts[kind] = nil }
        }
        followSettings(app)
        accounts.follow(app, isWanted: kinds.names.contains("account"))
        if before == kinds { return }
        follow()
        for kind in kinds.subtracting(before).names {
            let known = kind == Notification.pushEndpoint ? endpoint(app) : readings[kind]?.payload
            if let payload = known { send(kind, payload, app) }
        }
    }

    /// A manifest was read.
    func update(_ manifest: AppManifest) {
        guard settingsFiles[manifest.id] != manifest.settingsFile else { return }
        settingsFiles[manifest.id] = manifest.settingsFile
        settings[manifest.id] = nil
        followSettings(manifest.id)
    }

    func remove(_ app: AppID) {
        settingsFiles[app] = nil
        settings[app] = nil
    }

    /// The last reading of the orientation; `nil`: no app is notified of it, or the device has no sensor (L55).
    var orientation: String? { readings["orientation"]?.payload }

    private func isWanted(_ kind: String) -> Bool { counts[kind] != nil }

    private func follow() {
        for kind in readings.keys where !isWanted(kind) { readings[kind] = nil }
        followSource(\.time, ["time"]) { () throws(SystemError) -> TimeSource in
            try TimeSource(loop, folder: locations.etc) { [weak self] in self?.passOn("time", $0) }
        }
        followSource(\.locale, ["locale"], makeLocale)
        // A kind that is wanted first while the others are watched already.
        let new = DeviceFolders.kinds.filter { isWanted($0) && readings[$0] == nil }
        if let devices, !new.isEmpty { devices.readSoon(new) }
        followSource(\.devices, DeviceFolders.kinds, makeDevices)
        followReader("battery", BusReader.upower) { [weak self] in self?.readUPower($0) }
        followReader("orientation", BusReader.sensor("Accelerometer")) { [weak self] in
            self?.passOn("orientation", Readings.orientation($0))
        }
        followReader("proximity", BusReader.sensor("Proximity")) { [weak self] in
            self?.passOn("proximity", Readings.proximity($0))
        }
    }

    private func followSource<Source>(
        _ path: ReferenceWritableKeyPath<SystemEvents, Source?>, _ kinds: [String],
        _ make: () throws(SystemError) -> Source
    ) {
        guard kinds.contains(where: isWanted) else { return self[keyPath: path] = nil }
        guard self[keyPath: path] == nil else { return }
        do throws(SystemError) {
            self[keyPath: path] = try make()
        } catch {
            journal.log(
                .debug, MessageID.warning, "apps are not notified of \(kinds.joined(separator: ", ")): \(error)")
        }
    }

    private func followReader(
        _ kind: String, _ object: BusReader.Object, _ report: @escaping ([String: Variant]) -> Void
    ) {
        if !isWanted(kind) {
            readers[kind] = nil
            guard kind == "battery" else { return }
            upower = nil
            upowerTimer?.arm(at: nil)
        } else if readers[kind] == nil {
            if kind == "battery" { upowerTimer?.arm(at: loop.now() + locations.upowerTimeout) }
            readers[kind] = BusReader(object, bus, report: report)
        }
    }

    private func followSettings(_ app: AppID) {
        let isWanted = wanted[app]?.names.contains("settings") ?? false
        desktop.follow(app, isWanted: isWanted && settingsFiles[app] == nil)
        guard isWanted, let path = settingsFiles[app] else {
            return settings[app] = nil
        }
        guard settings[app] == nil else { return }
        guard settings.count < locations.mostSettingsFiles else {
            return journal.logWarning(
                "it is not notified of its settings file: those of \(settings.count) apps are watched already", app: app
            )
        }
        do throws(SystemError) {
            settings[app] = try SettingsSource(loop, app, path: path) { [weak self] in self?.send("settings", $0, app) }
        } catch {
            journal.log(.debug, MessageID.warning, app: app, "it is not notified of its settings file: \(error)")
        }
    }

    // MARK: Sources

    private func makeLocale() throws(SystemError) -> ReadingSource {
        let folders = [locations.etc, locations.etc + "/default"]
        let triggers = folders.compactMap { try? FolderWatch($0, for: .contents).descriptor }.map {
            ReadingSource.Trigger(descriptor: $0) { FolderWatch.clear($0) }
        }
        return try ReadingSource(loop, triggers) { [weak self, locations] in
            let files = ["\(locations.etc)/locale.conf", "\(locations.etc)/default/locale"]
            let text = files.lazy.compactMap { (try? readFileIfPresent(at: $0, limit: 16 << 10)) ?? nil }.first
            self?.passOn("locale", Readings.locale(parsing: String(decoding: text ?? [], as: UTF8.self)))
        }
    }

    private func makeDevices() throws(SystemError) -> DeviceSource {
        let events = try locations.openDeviceEvents()
        return try DeviceSource(loop, root: locations.sys, events: events) { [weak self] kind in
            guard let self, self.isWanted(kind) else { return false }
            return kind != "battery" || self.upower == nil && !(self.upowerTimer?.isArmed ?? false)
        } report: { [weak self] kind, payload in
            self?.passOn(kind, payload)
        }
    }

    /// - Parameter properties: none: UPower does not run.
    private func readUPower(_ properties: [String: Variant]) {
        let before = upower
        upower = Readings.battery(properties)
        // It is restarted, or has ended.
        let isAwaited = upower == nil && before != nil && properties.isEmpty
        upowerTimer?.arm(at: isAwaited ? loop.now() + locations.upowerTimeout : nil)
        if let upower { passOn("battery", upower) } else if !isAwaited { readSupplies() }
    }

    private func readSupplies() { devices?.readSoon(["battery"]) }

    // MARK: The bus

    func busIsUp(_ peer: BusPeer) {
        bus = peer
        for reader in readers.values { reader.busIsUp(peer) }
    }

    func busIsDown() {
        bus = nil
        for reader in readers.values { reader.busIsDown() }
    }

    func received(_ signal: BusSignal) { for reader in readers.values { reader.received(signal) } }

    // MARK: Readings

    /// An app has another address at which it can be sent pushes, or none.
    func report(endpoint: String?, of app: AppID) { send(Notification.pushEndpoint, endpoint ?? "none", app) }

    /// Passes a reading on to the core, unless it is the last one, and at most one in `interval`.
    private func passOn(_ kind: String, _ payload: String?) {
        guard let payload, isWanted(kind) else { return }
        var reading = readings[kind] ?? Reading()
        reading.next = payload
        readings[kind] = reading
        let due = reading.time + Self.interval
        if due <= loop.now() { return passOnWaiting() }
        if !(timer?.isArmed ?? true) { timer?.arm(at: due) }
    }

    private func passOnWaiting() {
        let now = loop.now()
        var next: Duration?
        for kind in readings.keys.sorted() {
            guard var reading = readings[kind], let payload = reading.next else { continue }
            let due = reading.time + Self.interval
            guard due <= now else {
                next = min(next ?? due, due)
                continue
            }
            let isNew = kind == "time" || payload != reading.payload
            (reading.next, reading.time) = (nil, now)
            // A moment is over for apps that are launched later.
            reading.payload = kind == "time" ? nil : payload
            readings[kind] = reading
            if isNew { send(kind, payload, nil) }
        }
        timer?.arm(at: next)
    }

    private func send(_ kind: String, _ payload: String, _ app: AppID?) {
        guard let notification = Notification(kind: kind, payload: payload) else { return }
        // What has that address can send pushes.
        let isSecret = kind == Notification.pushEndpoint
        let words = isSecret ? "…" : payload.split(separator: "\n").joined(separator: ", ")
        journal.log(.debug, MessageID.warning, "read for \(app?.name ?? "all apps"): \(kind) \(words)")
        events.send(.observed(notification, of: app))
    }
}
