import LifecycleCore
import Manifest
import Systemd

/// The calls of ModemManager (ModemManager's D-Bus reference, org.freedesktop.ModemManager1.Call). While there is one, the app that `Dialer=`
/// names is in the mode `call` (L28): ModemManager does not say which program handles a call. With `Interruptions=calls` the apps that are
/// active when the first one begins are interrupted until the last one has ended (L13).
///
/// Without these settings nothing is watched. ModemManager may start late, end and come back; it is never started for this.
final class Calls {
    private enum Names {
        static let service = "org.freedesktop.ModemManager1"
        static let path = "/org/freedesktop/ModemManager1"
        static let voice = "org.freedesktop.ModemManager1.Modem.Voice"
        static let call = "org.freedesktop.ModemManager1.Call"
        static let objectManager = "org.freedesktop.DBus.ObjectManager"
        static let properties = "org.freedesktop.DBus.Properties"
    }
    private static let rules =
        [
            "type='signal',sender='\(BusDaemon.name)',member='NameOwnerChanged',arg0='\(Names.service)'"
        ]
        + [
            "interface='\(Names.voice)',member='CallAdded'", "interface='\(Names.voice)',member='CallDeleted'",
            "interface='\(Names.call)',member='StateChanged'",
            "interface='\(Names.objectManager)',member='InterfacesRemoved'",
        ].map { "type='signal',sender='\(Names.service)',\($0)" }
    /// The default of D-Bus libraries.
    private static let timeout = Duration.seconds(25)
    /// The most calls that are followed. A modem has a handful.
    private static let mostCalls = 64
    /// MMCallState: dialing, ringing-out, ringing-in, active, held, waiting. 0 is unknown, 7 terminated.
    private static let liveStates: ClosedRange<Int64> = 1...6

    private let driver: CoreDriver
    private let answers: AnswerTable
    private let modes: ModeReports
    private var dialer: AppID?
    private var interrupts = false
    /// The system bus while it is connected.
    private weak var peer: BusPeer?
    private var isWatching = false
    /// The unique name of ModemManager; `nil`: it does not run.
    private var owner: String?
    /// The calls that have not ended.
    private var calls: Set<String> = []
    /// How many states of calls are being read: until then nothing is known to have ended.
    private var reads = 0
    /// The interruptions that end with the last call; `nil`: there is no call.
    private var interruptions: [RequestID]?

    init(driver: CoreDriver, answers: AnswerTable, modes: ModeReports) {
        self.driver = driver
        self.answers = answers
        self.modes = modes
    }

    /// The configuration was read.
    func configure(_ configuration: ManagerConfiguration) {
        if dialer != configuration.dialer {
            show([])
            dialer = configuration.dialer
        }
        interrupts = configuration.interruptions.contains(.calls)
        watch()
        follow()
    }

    /// The state of an app has changed.
    func observe(_ app: AppID) { if app == dialer { show(calls.isEmpty ? [] : .call) } }

    // MARK: The bus

    func busIsUp(_ peer: BusPeer) {
        self.peer = peer
        isWatching = false
        watch()
    }

    func busIsDown() {
        peer = nil
        isWatching = false
        ownerChanged(nil)
    }

    private func watch() {
        let isWanted = dialer != nil || interrupts
        guard let peer, isWanted != isWatching else { return }
        isWatching = isWanted
        guard isWanted else {
            for rule in Self.rules { peer.removeMatch(rule) }
            return ownerChanged(nil)
        }
        for rule in Self.rules { peer.addMatch(rule) }
        // A call to the service itself would start it.
        peer.callDaemon("GetNameOwner", [.string(Names.service)]) { [weak self] result in
            guard let self, self.isWatching else { return }
            self.ownerChanged((try? result.get())?.first?.stringValue)
        }
    }

    private func ownerChanged(_ name: String?) {
        guard name != owner else { return }
        owner = name
        (calls, reads) = ([], 0)
        follow()
        read()
    }

    func received(_ signal: BusSignal) {
        guard isWatching else { return }
        if signal.sender == BusDaemon.name, signal.member == "NameOwnerChanged",
            signal.arguments.first == .string(Names.service), let new = signal.arguments.last?.stringValue
        {
            return ownerChanged(new.isEmpty ? nil : new)
        }
        // Every client of the bus can send a signal of this name. Only those of ModemManager count.
        guard let owner, signal.sender == owner else { return }
        switch (signal.interface, signal.member) {
        case (Names.voice, "CallAdded"): if let call = signal.arguments.first?.stringValue { readState(of: call) }
        case (Names.voice, "CallDeleted"):
            if let call = signal.arguments.first?.stringValue { set(call, isLive: false) }
        case (Names.call, "StateChanged"):
            // The previous state, the new one, and why.
            guard signal.arguments.count >= 2, let state = signal.arguments[1].intValue else { return }
            set(signal.path, isLive: Self.liveStates.contains(state))
        // A modem with calls was removed.
        case (Names.objectManager, "InterfacesRemoved"): read()
        default: break
        }
    }

    // MARK: Calls

    /// Reads which calls there are.
    private func read() {
        guard let owner, let peer else { return }
        try? peer.call(
            owner, path: Names.path, interface: Names.objectManager, member: "GetManagedObjects", timeout: Self.timeout
        ) { [weak self] result in
            guard let self, self.owner == owner else { return }
            var found: Set<String> = []
            // a{oa{sa{sv}}}
            for case .entry(_, let interfaces) in (try? result.get())?.first?.arrayValue ?? [] {
                for case .entry(.string(Names.voice), let voice) in interfaces.arrayValue ?? [] {
                    let all = voice["Calls"]?.unwrapped.arrayValue ?? []
                    found.formUnion(all.prefix(Self.mostCalls).compactMap(\.stringValue))
                }
            }
            self.calls.formIntersection(found)
            self.follow()
            for call in found.sorted().prefix(Self.mostCalls) { self.readState(of: call) }
        }
    }

    private func readState(of call: String) {
        guard let owner, let peer else { return }
        do throws(BusError) {
            try peer.call(
                owner, path: call, interface: Names.properties, member: "Get", [.string(Names.call), .string("State")],
                timeout: Self.timeout
            ) { [weak self] result in
                guard let self, self.owner == owner else { return }
                self.reads -= 1
                let state = (try? result.get())?.first?.unwrapped.intValue
                self.set(call, isLive: state.map(Self.liveStates.contains) ?? false)
            }
            reads += 1
        } catch {}
    }

    private func set(_ call: String, isLive: Bool) {
        if !isLive { calls.remove(call) } else if calls.count < Self.mostCalls { calls.insert(call) }
        follow()
    }

    // MARK: Apps

    private func follow() {
        if calls.isEmpty, reads > 0 { return }
        show(calls.isEmpty ? [] : .call)
        if calls.isEmpty || !interrupts {
            let ended = interruptions ?? []
            interruptions = nil
            for request in ended { driver.send(.requestAbandoned(request)) }
        } else if interruptions == nil {
            let apps = driver.core.foregroundApps.filter { driver.core.state(of: $0) == .active && $0 != dialer }
            let requests = apps.map { ($0, answers.expect { _ in }) }
            interruptions = requests.map(\.1)
            for (app, request) in requests { driver.send(.requested(request, app, .interruptWhileConnected)) }
        }
    }

    private func show(_ shown: BackgroundModes) {
        guard let dialer, let run = driver.core.run(of: dialer) else { return }
        modes.show(shown, of: dialer, run, by: .calls)
    }
}
