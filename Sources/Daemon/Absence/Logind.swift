import Glibc
import LifecycleCore
import Linux
import LoopPolicy
import Posix
import Reports
import Systemd

/// Connects the daemon to logind (org.freedesktop.login1(5)): the machine sleeps or powers off after the apps have
/// entered the background (L15), and no app is in the foreground while the screen is locked.
///
/// The daemon holds a delay inhibitor, a descriptor that it closes when all apps are ready. logind waits for that until
/// InhibitDelayMaxSec= has passed (logind.conf(5), 5 s by default).
final class Logind {
    enum Names {
        static let service = "org.freedesktop.login1"
        static let path = "/org/freedesktop/login1"
        static let manager = "org.freedesktop.login1.Manager"
        static let session = "org.freedesktop.login1.Session"
        static let sessions = "/org/freedesktop/login1/session"
        static let properties = "org.freedesktop.DBus.Properties"
    }

    /// The default of D-Bus libraries. logind answers at once, unless it hangs.
    private static let callTimeout = Duration.seconds(25)
    /// How long screens count as locked after logind or the bus has ended. Until then both are expected to be started
    /// again.
    private static let restartTimeout = Duration.seconds(10)
    /// The default of InhibitDelayMaxSec= (logind.conf(5)).
    private static let defaultDelay = Duration.seconds(5)

    private let bus: MessageBus
    private let loop: EventLoop
    private let journal: Journal
    private unowned let events: any EventSink
    private let inhibitors: Inhibitors
    private let directory: ProtectedDirectory
    /// The user whose sessions count; `nil`: all users'.
    private let user: UInt32?
    /// logind's unique name on the bus; `nil`: it is not running.
    private var owner: String?
    /// Whether it reports sleep and locks.
    var isPresent: Bool { owner != nil }
    private var inhibitor: SharedDescriptor?
    /// The inhibitor is the previous daemon's, and logind was not found yet.
    private var isRecovered: Bool
    /// A call of `Inhibit` is under way.
    private var isInhibiting = false
    /// From PrepareForSleep(true) or PrepareForShutdown(true) to false.
    private var preparation: Preparation?

    private enum Preparation { case sleep, shutdown }
    /// InhibitDelayMaxSec=
    private var delay = defaultDelay
    private var timer: Systemd.Timer?
    /// The active local sessions whose screens are locked, by path.
    private var lockedSessions: Set<String> = []
    private var restartTimer: Systemd.Timer?

    /// - Parameters:
    ///   - user: the user whose sessions' locks count; `nil`: all users'.
    ///   - inhibitor: the inhibitor of the previous daemon. The machine may be about to sleep and wait for it.
    init(
        loop: EventLoop, bus: MessageBus, journal: Journal, user: UInt32?, inhibitor: consuming Descriptor?,
        events: any EventSink, inhibitors: Inhibitors, directory: ProtectedDirectory
    ) throws {
        self.inhibitors = inhibitors
        self.directory = directory
        isRecovered = inhibitor != nil
        if let inhibitor { self.inhibitor = SharedDescriptor(inhibitor) }
        self.loop = loop
        self.bus = bus
        self.journal = journal
        self.user = user
        self.events = events
        timer = try loop.makeTimer(kind: .machineTimer) { [weak self] _ in self?.delayIsOver() }
        restartTimer = try loop.makeTimer(kind: .machineTimer) { [weak self] _ in self?.didNotRestart() }
    }

    private func send(_ event: Event) { events.send(event) }

    // MARK: Connecting

    func busIsUp(_ peer: BusPeer) {
        let sender = "type='signal',sender='\(Names.service)'"
        peer.addMatch(
            "type='signal',sender='\(BusDaemon.name)',member='NameOwnerChanged',arg0='\(Names.service)'")
        peer.addMatch("\(sender),interface='\(Names.manager)',member='PrepareForSleep'")
        peer.addMatch("\(sender),interface='\(Names.manager)',member='PrepareForShutdown'")
        peer.addMatch("\(sender),interface='\(Names.manager)',member='SessionRemoved'")
        peer.addMatch(
            "\(sender),interface='\(Names.properties)',member='PropertiesChanged',path='\(Names.path)'")
        peer.addMatch(
            "\(sender),interface='\(Names.properties)',member='PropertiesChanged',path_namespace='\(Names.sessions)',"
                + "arg0='\(Names.session)'")
        // A call to logind itself would start it. Without logind the machine does not wait.
        peer.callDaemon("GetNameOwner", [.string(Names.service)]) { [weak self] result in
            self?.ownerChanged((try? result.get())?.first?.stringValue)
        }
    }

    func busIsDown() { ownerChanged(nil) }

    private func ownerChanged(_ name: String?) {
        guard name != owner else { return }
        owner = name
        if !isRecovered { inhibitor = nil }
        isRecovered = false
        isInhibiting = false
        // The logind that would report that the machine is awake has ended. When the machine powers off, logind ends,
        // too.
        if preparation == .sleep || preparation == .shutdown && name != nil { prepare(nil) }
        // Screens stay locked while logind or the bus is restarted.
        restartTimer?.arm(at: loop.now() + Self.restartTimeout)
        guard name != nil else { return }
        inhibitors.begin()
        readDelay()
        inhibit()
        readSessions()
    }

    private func didNotRestart() {
        unlockAll(except: [])
        if owner == nil { inhibitors.end() }
    }

    // MARK: Signals

    func received(_ signal: BusSignal) {
        if signal.sender == BusDaemon.name, signal.member == "NameOwnerChanged",
            signal.arguments.first == .string(Names.service), let new = signal.arguments.last?.stringValue
        {
            return ownerChanged(new.isEmpty ? nil : new)
        }
        // Every client of the bus can send a signal of this name. Only those of logind count.
        guard let owner, signal.sender == owner else { return }
        switch (signal.interface, signal.member) {
        case (Names.manager, "PrepareForSleep"):
            if let isBeginning = signal.arguments.first?.boolValue { prepare(isBeginning ? .sleep : nil) }
        case (Names.manager, "PrepareForShutdown"):
            if let isBeginning = signal.arguments.first?.boolValue { prepare(isBeginning ? .shutdown : nil) }
        case (Names.manager, "SessionRemoved"):
            if let path = signal.arguments.last?.stringValue { setLocked(path, false) }
        case (Names.properties, "PropertiesChanged"):
            let changed = signal.arguments.dropFirst().first
            if signal.path == Names.path {
                if changed?["BlockInhibited"] != nil { inhibitors.changed() }
                return
            }
            if changed?["LockedHint"] != nil || changed?["Active"] != nil { readSession(signal.path) }
        default: break
        }
    }

    // MARK: Sleep

    private func prepare(_ what: Preparation?) {
        preparation = what
        timer?.arm(at: what == nil ? nil : loop.now() + delay)
        if what == nil {
            send(.absence(.awoke))
            inhibit()
        } else {
            send(.absence(.sleepRequested))
        }
    }

    /// For a program that replaces this one by execve(2), so that the machine keeps waiting.
    var inhibitorForReexec: [(name: String, descriptor: SharedDescriptor)] {
        inhibitor.map { [(RecoveredDescriptors.inhibitor, $0)] } ?? []
    }

    /// All apps have entered the background: logind need not wait any longer.
    func allowSleep() {
        timer?.arm(at: nil)
        inhibitor = nil
    }

    /// logind no longer waits. Deadlines do not count the time in which the machine sleeps (L48).
    private func delayIsOver() {
        journal.log(
            .warning, MessageID.bus,
            "the machine sleeps or powers off before all apps have entered the background: logind waits for at most "
                + "\(delay.timeSpan) (InhibitDelayMaxSec= in logind.conf)")
        inhibitor = nil
    }

    private func inhibit() {
        guard owner != nil, inhibitor == nil, !isInhibiting, preparation == nil, bus.peer != nil else { return }
        isInhibiting = true
        do throws(SystemError) {
            try bus.callForDescriptor(
                Names.service, path: Names.path, interface: Names.manager, member: "Inhibit",
                [
                    .string("sleep:shutdown"), .string("Greenroom"), .string("Apps enter the background"),
                    .string("delay"),
                ], timeout: Self.callTimeout
            ) { [weak self] result in self?.inhibited(result) }
        } catch {
            isInhibiting = false
        }
    }

    private func inhibited(_ result: Result<SharedDescriptor, BusError>) {
        isInhibiting = false
        switch result {
        case .success(let descriptor):
            // If the machine is about to sleep already, an inhibitor has no effect.
            if preparation == nil, owner != nil { inhibitor = descriptor }
        case .failure(let error):
            guard owner != nil, preparation == nil else { return }
            journal.log(
                .warning, MessageID.bus,
                "the machine will not wait for apps to enter the background before it sleeps: \(error.message)")
        }
    }

    private func readDelay() {
        get(Names.path, Names.manager, "InhibitDelayMaxUSec") { [weak self] value in
            self?.delay = value.uintValue.map { .microseconds(min($0, 1 << 53)) } ?? Self.defaultDelay
        }
    }

    /// Reads whether the machine is about to sleep or to power off: what the previous daemon was notified of may be
    /// over. Called after the sessions were requested, so that it is answered after them.
    private func readPreparation() {
        get(Names.path, Names.manager, "PreparingForShutdown") { [weak self] value in
            if let self, value.boolValue == true, self.preparation == nil { self.prepare(.shutdown) }
        }
        get(Names.path, Names.manager, "PreparingForSleep") { [weak self] value in
            guard let self else { return }
            if value.boolValue == true {
                if self.preparation == nil { self.prepare(.sleep) }
            } else if self.preparation == nil {
                self.send(.absence(.awoke))
            }
            if self.lockedSessions.isEmpty { self.directory.unlocked() }
        }
    }

    // MARK: Locked screens

    /// The most sessions that are read. A machine with some seats has fewer.
    private static let maximumSessions = 256

    /// Reads which sessions are locked, when this daemon or logind has started.
    private func readSessions() {
        try? bus.peer?.call(
            Names.service, path: Names.path, interface: Names.manager, member: "ListSessions", timeout: Self.callTimeout
        ) { [weak self] result in
            // a(susso): the last field is the session's path.
            guard let self, let sessions = (try? result.get())?.first?.arrayValue else { return }
            let paths = sessions.prefix(Self.maximumSessions).compactMap { $0.structureValue?.last?.stringValue }
            self.unlockAll(except: Set(paths))
            for path in paths { self.readSession(path) }
            self.readPreparation()
        }
    }

    /// Reads all properties of a session. A signal contains only those that have changed.
    private func readSession(_ path: String) {
        guard let peer = bus.peer else { return }
        // If the call cannot be sent, logind is about to end, and the next one will be asked.
        try? peer.call(
            Names.service, path: path, interface: Names.properties, member: "GetAll", [.string(Names.session)],
            timeout: Self.callTimeout
        ) { [weak self] result in
            switch result {
            case .success(let answer): self?.setLocked(path, self?.isLocked(answer) ?? false)
            case .failure(let error):
                if Self.noSuchSession.contains(error.name) { self?.setLocked(path, false) }
            }
        }
    }

    /// The errors that logind returns for a session that does not exist.
    private static let noSuchSession = ["UnknownObject", "UnknownMethod", "UnknownInterface", "UnknownProperty"]
        .map { "org.freedesktop.DBus.Error.\($0)" }

    private func isLocked(_ answer: [Variant]) -> Bool {
        guard let all = answer.first, all["LockedHint"]?.boolValue == true, all["Active"]?.boolValue == true else {
            return false
        }
        // (so): the seat's name, empty for a remote session. (uo): the user.
        guard let seat = all["Seat"]?.structureValue?.first?.stringValue, !seat.isEmpty else { return false }
        guard let user else { return true }
        return all["User"]?.structureValue?.first?.uintValue == UInt64(user)
    }

    /// All other sessions have ended.
    private func unlockAll(except sessions: Set<String>) {
        restartTimer?.arm(at: nil)
        for ended in lockedSessions.subtracting(sessions) { setLocked(ended, false) }
    }

    private func setLocked(_ path: String, _ isLocked: Bool) {
        let before = lockedSessions.isEmpty
        if isLocked { lockedSessions.insert(path) } else { lockedSessions.remove(path) }
        guard before != lockedSessions.isEmpty else { return }
        if before { directory.locked() } else { directory.unlocked() }
    }

    private func get(_ path: String, _ interface: String, _ property: String, _ found: @escaping (Variant) -> Void) {
        // Without an answer the previous or default value remains.
        try? bus.peer?.call(
            Names.service, path: path, interface: Names.properties, member: "Get",
            [.string(interface), .string(property)], timeout: Self.callTimeout
        ) { result in
            if let value = (try? result.get())?.first { found(value.unwrapped) }
        }
    }
}
