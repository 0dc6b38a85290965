import Glibc
import LifecycleCore
import Linux
import LoopPolicy
import Manifest
import Posix
import Reports
import Systemd

/// Binding, and trying again.
extension HeldSockets {
    /// Binds a socket, unless the app runs without it.
    /// - Parameter isFree: the app does not run.
    func bind(_ entry: HeldSocketEntry, isFree: Bool = false) {
        guard isFree || !hasRun(entry.app) else {
            return entry.wait("it is bound when the app has ended: the running process does not share it")
        }
        let wasFailing = entry.problem != nil && entry.retryAt != nil
        do {
            try make(entry)
        } catch {
            return fail(entry, "\(error)")
        }
        entry.succeed()
        if wasFailing { journal.log(.notice, MessageID.warning, app: entry.app, "listens at \(entry.address) now") }
        if watched.contains(entry.app) { addToSet(entry.app) }
    }

    private func make(_ entry: HeldSocketEntry) throws {
        // Before anything connects to it, which would launch the other app.
        if let other = local[entry.wanted.address] { throw Problem("app '\(other.app)' has this address") }
        // The others are for launches, clients and watches.
        guard budget.available > 0, count < budget.total / 2 else {
            throw Problem("the daemon holds \(count) sockets; its limit of open files (LimitNOFILE=) allows no more")
        }
        let made = try fileSettings(of: entry)
        do {
            hold(try ListeningSocket(entry.type, entry.address, made), entry, made)
        } catch {
            throw Problem(explain(error, entry))
        }
    }

    /// The socket is held from now on.
    func hold(_ socket: ListeningSocket, _ entry: HeldSocketEntry, _ made: ListeningSocket.Settings) {
        entry.socket = socket
        entry.settings = made
        entry.given = settings[entry.app]?.made
        count += 1
        budget.take()
        if entry.wanted.address.port == nil { local[entry.wanted.address] = entry }
        persist(entry)
        files.watch(entry)
    }

    private func explain(_ error: SystemError, _ entry: HeldSocketEntry) -> String {
        switch error.errno {
        case EADDRINUSE: rival(of: entry).map { "\(error); app '\($0.app)' has it" } ?? "\(error)"
        case EACCES where entry.wanted.address.port.map { $0 < Self.firstUnprivilegedPort } ?? false:
            "\(error); ports below \(Self.firstUnprivilegedPort) need CAP_NET_BIND_SERVICE"
        default: "\(error)"
        }
    }

    /// net.ipv4.ip_unprivileged_port_start
    private static var firstUnprivilegedPort: UInt16 {
        let bytes = (try? readFile(at: "/proc/sys/net/ipv4/ip_unprivileged_port_start", limit: 64)) ?? []
        return bytes.split(separator: UInt8(ascii: "\n")).first.flatMap { UInt16(String(decoding: $0, as: UTF8.self)) }
            ?? 1024
    }

    /// A socket of another app, or of the same one, that has the address.
    private func rival(of entry: HeldSocketEntry) -> HeldSocketEntry? {
        bySerial.values.filter { $0 !== entry && $0.socket != nil && $0.conflicts(with: entry) }
            .min { $0.serial < $1.serial }
    }

    /// - Throws: `Problem` if a user or group does not exist.
    private func fileSettings(of entry: HeldSocketEntry) throws -> ListeningSocket.Settings {
        let given = settings[entry.app]?.made ?? SocketSettings()
        var made = ListeningSocket.Settings()
        made.mode = given.mode
        made.directoryMode = given.directoryMode
        made.backlog = given.backlog
        made.binding = Self.binding(given)
        made.keepsAlive = given.keepsAlive
        made.hasNoDelay = given.hasNoDelay
        guard entry.address.path != nil, given.user != nil || given.group != nil else { return made }
        var owner = Owner(uid: geteuid(), gid: getegid())
        if let name = given.user {
            guard let user = try lookUpUser(name) else { throw Problem("SocketUser=\(name): there is no such user") }
            owner = Owner(uid: user.uid, gid: user.gid)
        }
        if let name = given.group {
            guard let group = try lookUpGroup(name) else {
                throw Problem("SocketGroup=\(name): there is no such group")
            }
            owner = Owner(uid: owner.uid, gid: group)
        }
        made.owner = owner
        return made
    }

    private static func binding(_ given: SocketSettings) -> ListeningSocket.Binding {
        var binding = ListeningSocket.Binding()
        binding.isOnlyIPv6 =
            switch given.ipv6Only {
            case .default: nil
            case .both: false
            case .only: true
            }
        binding.reusesPort = given.reusesPort
        binding.isFree = given.isFreeBind
        return binding
    }

    /// Whether the socket is what the manifest says; true if it was not read yet.
    func isBoundAsGiven(_ entry: HeldSocketEntry) -> Bool {
        guard let socket = entry.socket, let given = settings[entry.app]?.made else { return true }
        return socket.isBound(as: Self.binding(given))
    }

    /// A reload has changed the mode or the owner of the file, the backlog, or an option.
    func applySettings(_ entry: HeldSocketEntry) {
        // A name service may use the network, so it is not asked without need.
        guard entry.socket != nil, let given = settings[entry.app]?.made, given != entry.given else { return }
        do {
            entry.given = given
            let made = try fileSettings(of: entry)
            if made == entry.settings { return }
            entry.settings = made
            try entry.socket?.apply(made)
        } catch {
            journal.logWarning("the settings of \(entry.address) cannot be changed: \(error)", app: entry.app)
        }
        if isBoundAsGiven(entry) { return }
        guard hasRun(entry.app) else { return prepare(entry) }
        entry.problem = "BindIPv6Only= or ReusePort= has changed; it is made again when the app has ended"
    }

    // MARK: Trying again

    /// Logs a problem once, and tries again later.
    func fail(_ entry: HeldSocketEntry, _ problem: String) {
        if entry.problem != problem {
            journal.log(
                .error, MessageID.warning, app: entry.app,
                "cannot listen at \(entry.address): \(problem); retrying, and the app is not launched until then")
        }
        entry.fail(problem, now: loop.now())
        if !hasRun(entry.app) { for other in entries[entry.app] ?? [] { removeFromSet(other) } }
        if let at = entry.retryAt, nextRetry.map({ at < $0 }) ?? true { armRetry(at: at) }
    }

    private func armRetry(at time: Duration?) {
        if retryTimer == nil { retryTimer = try? loop.makeTimer(kind: .timer) { [weak self] _ in self?.retry() } }
        nextRetry = time
        retryTimer?.arm(at: time)
    }

    private func retry() {
        let now = loop.now()
        nextRetry = now
        let due = bySerial.values.filter { $0.retryAt.map { $0 <= now } ?? false }.map(\.serial).sorted()
        loop.work.add(each: due) { [weak self] serial in
            guard let self, let entry = self.bySerial[serial], entry.socket == nil, entry.retryAt != nil else { return }
            self.change(entry.app) { self.bind(entry) }
            if entry.socket == nil { self.rejectLateConnections(entry) }
        } completion: { [weak self] in
            guard let self else { return }
            self.armRetry(at: self.bySerial.values.lazy.compactMap(\.retryAt).min())
        }
    }

    /// Resets connections that have waited for `ConnectionWaitSec=` at the other sockets of the app. The core does not know of
    /// them, because none is reported to it while a socket is missing. Binding is tried at least once a minute, so none waits for
    /// more than a minute longer.
    private func rejectLateConnections(_ entry: HeldSocketEntry) {
        guard let since = entry.failingSince, let wait = settings[entry.app]?.connectionWait, !hasRun(entry.app),
            loop.now() - since >= wait, hasWaitingConnection(entry.app)
        else { return }
        journal.logWarning(
            "reset the connections that waited: its socket \(entry.address) is not bound", app: entry.app)
        rejectConnections(entry.app)
    }

    // MARK: Closing

    /// Closes a socket of which the manifest no longer speaks, and removes its file.
    func close(_ entry: HeldSocketEntry) {
        release(entry)
        bySerial[entry.serial] = nil
    }

    /// Closes the socket and removes its file, if it still has one.
    func release(_ entry: HeldSocketEntry) {
        removeFromSet(entry)
        guard let socket = entry.socket else { return }
        entry.socket = nil
        count -= 1
        budget.giveBack(1)
        if local[entry.wanted.address] === entry { local[entry.wanted.address] = nil }
        files.unwatch(entry)
        socket.removeFile()
        logbook.removeRecord(HeldSocketRecord.name(entry.serial))
        store.remove(RecoveredDescriptors.socket(entry.serial))
    }
}
