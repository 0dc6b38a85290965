import LifecycleCore
import Linux
import Manifest
import Posix
import Systemd

/// The sockets that the daemon holds for apps (L29): it binds them when it reads a manifest, watches them while the core asks for
/// that, and passes them to each launch. They survive the app, and the daemon.
///
/// A socket that a running app does not have is bound at its end: until then no process could accept what arrives there.
final class HeldSockets {
    /// What else a manifest says about its sockets.
    struct Settings {
        var name: String
        var made = SocketSettings()
        /// How long connections wait for a launch; `nil`: until it comes.
        var connectionWait: Duration?
    }

    let loop: EventLoop
    let logbook: Logbook
    let store: DescriptorStore
    let journal: Journal
    let budget: DescriptorBudget
    unowned let events: any EventSink
    /// In the order of the manifest.
    var entries: [AppID: [HeldSocketEntry]] = [:]
    var bySerial: [UInt64: HeldSocketEntry] = [:]
    var settings: [AppID: Settings] = [:]
    /// The bound sockets that have a path or an abstract name.
    var local: [HeldSocket.Address: HeldSocketEntry] = [:]
    var lastSerial: UInt64 = 0
    /// How many sockets are bound.
    var count = 0
    /// Whether an app has processes.
    var hasRun: (AppID) -> Bool = { _ in false }
    /// The app has its first socket, or none any more: its policy is another one.
    var onChange: ((AppID) -> Void)?

    /// The sockets of the apps that the core watches.
    var watched: Set<AppID> = []
    var set: Epoll?
    var setSource: EventSource?
    /// Apps whose waiting connections are being reset.
    var rejecting: Set<AppID> = []
    var retryTimer: Systemd.Timer?
    var nextRetry: Duration?
    /// The policy that follows says whether sockets are held.
    private var isUpdating = false
    private(set) lazy var files = HeldSocketFiles(self)

    /// The most sockets of one app, as of a manifest. An app gets them with as many stored descriptors at most, and a launch has
    /// space for 248 (CLinux/launcher.h).
    static let maximumPerApp = 64

    init(
        loop: EventLoop, logbook: Logbook, store: DescriptorStore, journal: Journal, budget: DescriptorBudget,
        events: any EventSink
    ) {
        self.loop = loop
        self.logbook = logbook
        self.store = store
        self.journal = journal
        self.budget = budget
        self.events = events
    }

    // MARK: Manifests

    /// Binds what a manifest names and is not bound yet, and closes what it no longer names.
    func update(_ manifest: AppManifest) {
        let app = manifest.id
        let wanted = manifest.sockets.all.prefix(Self.maximumPerApp)
        guard !wanted.isEmpty || entries[app] != nil else { return }
        settings[app] = Settings(
            name: Self.name(manifest.sockets.name, app), made: manifest.sockets,
            connectionWait: manifest.policy.connectionWait)
        var old = entries[app] ?? []
        var new: [HeldSocketEntry] = []
        for socket in wanted {
            if let index = old.firstIndex(where: { $0.wanted == socket }) {
                new.append(old.remove(at: index))
            } else {
                lastSerial += 1
                new.append(HeldSocketEntry(socket, of: app, serial: lastSerial))
            }
        }
        for entry in old { close(entry) }
        entries[app] = new.isEmpty ? nil : new
        for entry in new { bySerial[entry.serial] = entry }
        if new.isEmpty { settings[app] = nil }
        isUpdating = true
        // An address that another app has given up since is free now.
        for entry in new where entry.socket == nil { bind(entry) }
        for entry in new { applySettings(entry) }
        isUpdating = false
        // The one that was missing may be none of the app's any more.
        if watched.contains(app) { addToSet(app) }
    }

    /// The policy of an app for the core: whether at least one socket is really held.
    func policy(of manifest: AppManifest) -> AppPolicy {
        var policy = manifest.policy
        policy.holdsSockets = holdsSockets(manifest.id)
        return policy
    }

    /// Does something with the sockets of an app, and says if it has the first one now, or none any more.
    func change(_ app: AppID, _ body: () -> Void) {
        let before = holdsSockets(app)
        body()
        if !isUpdating, holdsSockets(app) != before { onChange?(app) }
    }

    func holdsSockets(_ app: AppID) -> Bool { entries[app]?.contains { $0.socket != nil } ?? false }

    /// The name of all sockets of an app in LISTEN_FDNAMES, whose names a colon separates.
    private static func name(_ given: String?, _ app: AppID) -> String {
        given ?? String((app.name + ".socket").map { $0 == ":" ? "_" : $0 })
    }

    /// Closes the sockets of an app and removes their files.
    func remove(_ app: AppID) {
        for entry in entries.removeValue(forKey: app) ?? [] { close(entry) }
        settings[app] = nil
        watched.remove(app)
        rejecting.remove(app)
    }

    /// Closes the sockets of all these apps.
    func removeAll(where isRemoved: (AppID) -> Bool) {
        for app in entries.keys.filter(isRemoved) { remove(app) }
    }

    /// Closes all sockets and removes their files: the daemon stops.
    func closeAll() { removeAll { _ in true } }

    // MARK: Status

    /// The sockets of an app in the order of its manifest, with what is wrong with each.
    func status(of app: AppID) -> [(socket: HeldSocket, problem: String?)] {
        (entries[app] ?? []).map { ($0.wanted, $0.problem) }
    }

    // MARK: Launches

    /// Whether the app can be launched: a process knows its sockets by their numbers, so that it gets all or none.
    func isComplete(_ app: AppID) -> Bool { entries[app]?.allSatisfy { $0.socket != nil } ?? true }

    /// The sockets for a process that is about to be launched, in the order of the manifest. As `NonBlocking=` says, it waits in
    /// accept(2) or not, whatever the process before has set (systemd.service(5)).
    /// - Throws: `Problem` if one of them cannot be bound.
    func passed(to app: AppID) throws -> [PassedDescriptor] {
        guard let own = entries[app] else { return [] }
        rejecting.remove(app)
        // One that waits for its next attempt does not wait for longer than the launch.
        change(app) {
            for entry in own where entry.socket == nil && entry.retryAt != nil { bind(entry, isFree: true) }
        }
        prepare(app)
        let name = settings[app]?.name ?? Self.name(nil, app)
        let isNonBlocking = settings[app]?.made.isNonBlocking ?? false
        return try own.map { entry in
            guard let socket = entry.socket else {
                throw Problem("its socket \(entry.address) is not bound: \(entry.problem ?? "it is bound later")")
            }
            do { try socket.setNonBlocking(isNonBlocking) } catch { journal.logWarning("\(error)", app: app) }
            return PassedDescriptor(socket.descriptor, name: name)
        }
    }

    /// The app has ended.
    func ended(_ app: AppID) {
        if entries[app] != nil, !hasRun(app) { prepare(app) }
    }

    /// Makes what a process of the app has left unusable, or what waited for its end. No process of the app has the sockets.
    func prepare(_ app: AppID) { change(app) { for entry in entries[app] ?? [] { prepare(entry) } } }

    func prepare(_ entry: HeldSocketEntry) {
        guard entry.socket != nil else {
            if entry.retryAt == nil { bind(entry, isFree: true) }
            return
        }
        guard let reason = reasonToMakeAgain(entry) else { return }
        journal.logWarning("the socket \(entry.address) is made again: \(reason)", app: entry.app)
        // Nothing refers to the old one any more: it would keep the address.
        release(entry)
        bind(entry, isFree: true)
    }

    /// Renews what a process may have changed.
    /// - Returns: why the socket cannot be used.
    private func reasonToMakeAgain(_ entry: HeldSocketEntry) -> String? {
        guard let socket = entry.socket else { return nil }
        if socket.state != .usable { return "a process of the app has shut it down" }
        if !socket.isFileInPlace { return "its file was removed" }
        if !isBoundAsGiven(entry) { return "BindIPv6Only= or ReusePort= has changed" }
        entry.problem = nil
        do { try socket.listen(entry.settings) } catch { journal.logWarning("\(error)", app: entry.app) }
        return nil
    }
}
