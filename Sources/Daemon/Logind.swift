import Glibc
import LifecycleCore
import Linux
import Posix
import Systemd

/// logind (org.freedesktop.login1(5)): the machine waits for the apps before it sleeps or is switched off (L15), and a
/// locked screen is nobody's foreground.
///
/// The machine is held by a delay inhibitor, a descriptor that is closed when everything is ready; logind goes on without
/// us after InhibitDelayMaxSec= (logind.conf(5), 5 s).
final class Logind {
    private enum Names {
        static let service = "org.freedesktop.login1"
        static let path = "/org/freedesktop/login1"
        static let manager = "org.freedesktop.login1.Manager"
        static let session = "org.freedesktop.login1.Session"
        static let sessions = "/org/freedesktop/login1/session"
        static let properties = "org.freedesktop.DBus.Properties"
    }

    /// Its answers come at once, or it hangs.
    private static let patience = Duration.seconds(25)
    /// Who follows a logind that ended, or one that the bus ended with, is there within this.
    private static let succession = Duration.seconds(10)
    /// logind.conf(5).
    private static let defaultDelay = Duration.seconds(5)

    private let bus: MessageBus
    private let loop: EventLoop
    private let journal: Journal
    private let send: (Event) -> Void
    /// Of a user's own daemon, only that user's sessions count.
    private let user: UInt32?
    /// The unique name of logind; `nil`: there is none.
    private var owner: String?
    private var inhibitor: SharedDescriptor?
    /// It is an earlier daemon's, and logind was not found yet.
    private var isInherited: Bool
    private var isAsking = false
    /// From PrepareForSleep(true) or PrepareForShutdown(true) to false.
    private var preparation: Preparation?

    private enum Preparation { case sleep, shutdown }
    /// How long logind waits at most.
    private var delay = defaultDelay
    private var timer: Systemd.Timer?
    /// The active sessions with a seat whose screens are locked, by path.
    private var lockedSessions: Set<String> = []
    private var successionTimer: Systemd.Timer?

    /// - Parameters:
    ///   - user: whose sessions' locks count; `nil`: those of everybody who sits at the machine.
    ///   - inherited: the inhibitor of an earlier daemon: the machine may be waiting for it just now.
    init(
        loop: EventLoop, bus: MessageBus, journal: Journal, user: UInt32?, inherited: consuming Descriptor?,
        send: @escaping (Event) -> Void
    ) throws {
        isInherited = inherited != nil
        if let inherited { inhibitor = SharedDescriptor(inherited) }
        self.loop = loop
        self.bus = bus
        self.journal = journal
        self.user = user
        self.send = send
        timer = try loop.makeTimer { [weak self] _ in self?.delayIsOver() }
        successionTimer = try loop.makeTimer { [weak self] _ in self?.keepLocked([]) }
    }

    // MARK: The bus comes and goes

    func busIsUp(_ peer: BusPeer) {
        let sender = "type='signal',sender='\(Names.service)'"
        peer.addMatch(
            "type='signal',sender='\(BusDaemon.name)',member='NameOwnerChanged',arg0='\(Names.service)'")
        peer.addMatch("\(sender),interface='\(Names.manager)',member='PrepareForSleep'")
        peer.addMatch("\(sender),interface='\(Names.manager)',member='PrepareForShutdown'")
        peer.addMatch("\(sender),interface='\(Names.manager)',member='SessionRemoved'")
        peer.addMatch(
            "\(sender),interface='\(Names.properties)',member='PropertiesChanged',path_namespace='\(Names.sessions)',"
                + "arg0='\(Names.session)'")
        // Not started for our sake: where there is none, nobody is asked to wait.
        peer.callDaemon("GetNameOwner", [.string(Names.service)]) { [weak self] result in
            self?.ownerChanged((try? result.get())?.first?.stringValue)
        }
    }

    func busIsDown() { ownerChanged(nil) }

    private func ownerChanged(_ name: String?) {
        guard name != owner else { return }
        owner = name
        if !isInherited { inhibitor = nil }
        isInherited = false
        isAsking = false
        // Whoever would have told that the machine is awake is gone. A machine that is switched off stops logind as well.
        if preparation == .sleep || preparation == .shutdown && name != nil { prepare(nil) }
        // A screen that is locked stays so while logind is replaced, or the bus: a successor tells what is so now.
        if !lockedSessions.isEmpty { successionTimer?.arm(at: loop.now() + Self.succession) }
        guard name != nil else { return }
        readDelay()
        inhibit()
        lookAtSessions()
    }

    // MARK: Signals

    func heard(_ signal: BusSignal) {
        if signal.sender == BusDaemon.name, signal.member == "NameOwnerChanged",
            signal.arguments.first == .string(Names.service), let new = signal.arguments.last?.stringValue
        {
            return ownerChanged(new.isEmpty ? nil : new)
        }
        // Anybody may send us a signal of any name; only logind's count.
        guard let owner, signal.sender == owner else { return }
        switch (signal.interface, signal.member) {
        case (Names.manager, "PrepareForSleep"):
            if let isBeginning = signal.arguments.first?.boolValue { prepare(isBeginning ? .sleep : nil) }
        case (Names.manager, "PrepareForShutdown"):
            if let isBeginning = signal.arguments.first?.boolValue { prepare(isBeginning ? .shutdown : nil) }
        case (Names.manager, "SessionRemoved"):
            if let path = signal.arguments.last?.stringValue { setLocked(path, false) }
        case (Names.properties, "PropertiesChanged"):
            // Whether it is locked counts only for an active one.
            let changed = signal.arguments.dropFirst().first
            if changed?["LockedHint"] != nil || changed?["Active"] != nil { lookAt(signal.path) }
        default: break
        }
    }

    // MARK: Sleep

    private func prepare(_ what: Preparation?) {
        preparation = what
        timer?.arm(at: what == nil ? nil : loop.now() + delay)
        if what == nil {
            send(.awoke)
            inhibit()
        } else {
            send(.sleepRequested)
        }
    }

    /// For a program that takes this one's place: the machine is held on.
    var inhibitorToKeep: [(name: String, descriptor: SharedDescriptor)] {
        inhibitor.map { [(HandedDescriptors.inhibitor, $0)] } ?? []
    }

    /// Every app is where it should be.
    func allowSleep() {
        timer?.arm(at: nil)
        inhibitor = nil
    }

    /// logind does not wait any longer. Deadlines stand still while the machine sleeps (L48), and go on after it.
    private func delayIsOver() {
        journal.log(
            .warning, MessageID.bus,
            "the machine sleeps, or is switched off, before every app has entered the background: logind waits for "
                + "\(delay.inSeconds) (InhibitDelayMaxSec= in logind.conf)")
        inhibitor = nil
    }

    private func inhibit() {
        guard owner != nil, inhibitor == nil, !isAsking, preparation == nil, bus.peer != nil else { return }
        isAsking = true
        do throws(SystemError) {
            try bus.callForDescriptor(
                Names.service, path: Names.path, interface: Names.manager, member: "Inhibit",
                [
                    .string("sleep:shutdown"), .string("Greenroom"), .string("Apps enter the background"),
                    .string("delay"),
                ], timeout: Self.patience
            ) { [weak self] result in self?.inhibited(result) }
        } catch {
            isAsking = false
        }
    }

    private func inhibited(_ result: Result<SharedDescriptor, BusError>) {
        isAsking = false
        switch result {
        case .success(let descriptor):
            // Where it is late, the machine is on its way already, and nobody holds it back any more.
            if preparation == nil, owner != nil { inhibitor = descriptor }
        case .failure(let error):
            guard owner != nil, preparation == nil else { return }
            journal.log(
                .warning, MessageID.bus,
                "logind does not wait for apps to enter the background before the machine sleeps: \(error.message)")
        }
    }

    private func readDelay() {
        get(Names.path, Names.manager, "InhibitDelayMaxUSec") { [weak self] value in
            self?.delay = value.uintValue.map { .microseconds(min($0, 1 << 53)) } ?? Self.defaultDelay
        }
    }

    /// What an earlier daemon has heard may be over: that the machine is about to sleep or to be switched off, that a screen
    /// is locked. Asked after the sessions, it is answered after them.
    private func lookAtSleep() {
        get(Names.path, Names.manager, "PreparingForShutdown") { [weak self] value in
            if let self, value.boolValue == true, self.preparation == nil { self.prepare(.shutdown) }
        }
        get(Names.path, Names.manager, "PreparingForSleep") { [weak self] value in
            guard let self else { return }
            if value.boolValue == true {
                if self.preparation == nil { self.prepare(.sleep) }
            } else if self.preparation == nil {
                self.send(.awoke)
            }
            if self.lockedSessions.isEmpty { self.send(.unlocked) }
        }
    }

    // MARK: Locked screens

    /// More than this many sessions at one machine's seats nobody has.
    private static let maximumSessions = 256

    /// Those that are locked already, when we or logind are started.
    private func lookAtSessions() {
        try? bus.peer?.call(
            Names.service, path: Names.path, interface: Names.manager, member: "ListSessions", timeout: Self.patience
        ) { [weak self] result in
            // a(susso): the last field is the session's path.
            guard let self, let sessions = (try? result.get())?.first?.arrayValue else { return }
            let paths = sessions.prefix(Self.maximumSessions).compactMap { $0.structureValue?.last?.stringValue }
            self.keepLocked(Set(paths))
            for path in paths { self.lookAt(path) }
            self.lookAtSleep()
        }
    }

    /// Asks for all of a session's properties that matter, as only one of them is told.
    private func lookAt(_ path: String) {
        guard let peer = bus.peer else { return }
        // What cannot be asked at all is as it was: logind is on its way out, and its successor will tell.
        try? peer.call(
            Names.service, path: path, interface: Names.properties, member: "GetAll", [.string(Names.session)],
            timeout: Self.patience
        ) { [weak self] result in
            switch result {
            case .success(let answer): self?.setLocked(path, self?.isLocked(answer) ?? false)
            case .failure(let error):
                if Self.namesOfNothing.contains(error.name) { self?.setLocked(path, false) }
            }
        }
    }

    /// How logind says that there is no such session (any more).
    private static let namesOfNothing = ["UnknownObject", "UnknownMethod", "UnknownInterface", "UnknownProperty"]
        .map { "org.freedesktop.DBus.Error.\($0)" }

    private func isLocked(_ answer: [Variant]) -> Bool {
        guard let all = answer.first, all["LockedHint"]?.boolValue == true, all["Active"]?.boolValue == true else {
            return false
        }
        // (so): the seat's name, empty for a session from elsewhere. (uo): the user.
        guard let seat = all["Seat"]?.structureValue?.first?.stringValue, !seat.isEmpty else { return false }
        guard let user else { return true }
        return all["User"]?.structureValue?.first?.uintValue == UInt64(user)
    }

    /// No other session is locked, as there is none.
    private func keepLocked(_ sessions: Set<String>) {
        successionTimer?.arm(at: nil)
        for gone in lockedSessions.subtracting(sessions) { setLocked(gone, false) }
    }

    private func setLocked(_ path: String, _ isLocked: Bool) {
        let before = lockedSessions.isEmpty
        if isLocked { lockedSessions.insert(path) } else { lockedSessions.remove(path) }
        guard before != lockedSessions.isEmpty else { return }
        send(before ? .locked : .unlocked)
    }

    private func get(_ path: String, _ interface: String, _ property: String, _ found: @escaping (Variant) -> Void) {
        // Without an answer what was taken for granted stays.
        try? bus.peer?.call(
            Names.service, path: path, interface: Names.properties, member: "Get",
            [.string(interface), .string(property)], timeout: Self.patience
        ) { result in
            if let value = (try? result.get())?.first { found(value.unwrapped) }
        }
    }
}
