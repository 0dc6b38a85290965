import LifecycleCore
import LoopPolicy
import Systemd

/// Compares the mode `location` that apps assert with what GeoClue reports (org.freedesktop.GeoClue2.Manager, L28). `InUse` says whether
/// any program is located, and not which: it shows that a claim is false, never that it is true. A claim counts as it is while GeoClue does not
/// run, which is never started for this; it is watched while an app asserts the mode.
final class LocationClaims {
    static let geoclue = BusReader.Object(
        service: "org.freedesktop.GeoClue2", path: "/org/freedesktop/GeoClue2/Manager",
        interface: "org.freedesktop.GeoClue2.Manager")
    /// For so long no program may be located while the app is in the background.
    static let longestTime = Duration.seconds(30)

    private let loop: EventLoop
    private unowned let events: any EventSink
    private let longestTime: Duration
    private weak var peer: BusPeer?
    private var reader: BusReader?
    /// Whether a program is located; `nil`: GeoClue does not run, or does not say.
    private var isInUse: Bool?
    /// The apps that assert the mode, with the time since when nothing is located while they are in the background; `nil`: that is not so.
    private var claims: [AppID: Duration?] = [:]
    private var timer: Systemd.Timer?

    init(loop: EventLoop, events: any EventSink, longestTime: Duration = LocationClaims.longestTime) {
        self.loop = loop
        self.events = events
        self.longestTime = longestTime
    }

    /// The app has begun the mode, or an earlier daemon knew it.
    func modeBegan(_ app: AppID) {
        if claims[app] == nil { claims[app] = .some(nil) }
        if reader == nil {
            reader = BusReader(Self.geoclue, peer) { [weak self] in self?.take($0["InUse"]?.boolValue) }
        }
        follow(app)
    }

    /// The state of an app, or its mode, has changed.
    func changed(_ app: AppID) { if claims[app] != nil { follow(app) } }

    // MARK: The bus

    func busIsUp(_ peer: BusPeer) {
        self.peer = peer
        reader?.busIsUp(peer)
    }

    func busIsDown() {
        peer = nil
        reader?.busIsDown()
    }

    func received(_ signal: BusSignal) { reader?.received(signal) }

    private func take(_ isInUse: Bool?) {
        guard isInUse != self.isInUse else { return }
        self.isInUse = isInUse
        for app in claims.keys.sorted() { follow(app) }
    }

    // MARK: Apps

    private func follow(_ app: AppID) {
        let view = events.view(of: app)
        let isUnused = view?.unusedModes.contains(.location) ?? false
        guard let view, let run = view.run, isUnused || view.modes.contains(.location) else {
            claims[app] = nil
            if claims.isEmpty { (reader, isInUse) = (nil, nil) }
            return
        }
        let since = claims[app] ?? nil
        claims[app] = .some(!isUnused && isInUse == false && view.state == .background ? since ?? loop.now() : nil)
        // A suspended app is not the one that is located.
        if isUnused, isInUse == true, view.state != .suspended { events.send(.run(run, .mode(.unused([])))) }
        arm()
    }

    private func arm() {
        if timer == nil { timer = try? loop.makeTimer(kind: .timer) { [weak self] _ in self?.timeIsOver() } }
        timer?.arm(at: claims.values.compactMap { $0 }.min().map { $0 + longestTime })
    }

    private func timeIsOver() {
        for (app, since) in claims.sorted(by: { $0.key < $1.key }) {
            guard let since, since + longestTime <= loop.now(), let run = events.view(of: app)?.run else { continue }
            claims[app] = .some(nil)
            events.send(.run(run, .mode(.unused(.location))))
        }
        arm()
    }
}
