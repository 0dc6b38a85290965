import Glibc
import LifecycleCore
import Linux
import LoopPolicy
import Posix
import Systemd

/// The inhibitors of logind that processes of apps hold: such an app does something that must not be cut off, so it is not suspended
/// (L28). It needs no declaration and no change of a program: `systemd-inhibit(1)`, media players and package managers take them.
///
/// Delay inhibitors count for nothing: programs hold them all the time, to be notified of a sleep.
final class Inhibitors {
    /// Where logind keeps a file for each.
    private static let folder = "/run/systemd/inhibit"
    /// The most block inhibitors whose holders are looked up. A machine has a handful.
    private static let mostHolders = 256
    /// After a change, so that several count as one.
    private static let delay = Duration.milliseconds(20)
    /// Between two looks: a program that takes and releases inhibitors without end costs two calls a second at most.
    private static let interval = Duration.milliseconds(500)
    /// Bytes of the text that `status` shows.
    private static let mostText = 160
    private static let callTimeout = Duration.seconds(25)

    private let loop: EventLoop
    private let bus: MessageBus
    private let containment: Containment
    private unowned let events: any EventSink
    /// The apps for which an earlier daemon has recorded an inhibitor.
    private let recorded: () -> [AppID]
    private var timer: Systemd.Timer?
    private var watch: EventSource?
    private var lastLook = Duration.zero
    private var isAsking = false
    private var hasChangedMeanwhile = false
    /// The apps for which an inhibitor was reported; `nil`: nothing was compared yet.
    private var reported: Set<AppID>?

    init(
        loop: EventLoop, bus: MessageBus, containment: Containment, events: any EventSink,
        recorded: @escaping () -> [AppID]
    ) throws {
        self.loop = loop
        self.bus = bus
        self.containment = containment
        self.events = events
        self.recorded = recorded
        timer = try loop.makeTimer(kind: .timer) { [weak self] _ in self?.look() }
    }

    /// logind runs.
    func begin() {
        watchFolder()
        changed()
    }

    /// logind or the bus has ended, and did not come back.
    func end() {
        watch = nil
        timer?.arm(at: nil)
        report([:])
    }

    /// Something about inhibitors has changed.
    func changed() {
        hasChangedMeanwhile = isAsking
        if !isAsking { timer?.arm(at: max(loop.now() + Self.delay, lastLook + Self.interval)) }
    }

    /// logind's signal names the kinds that are inhibited: a second inhibitor of a kind may change nothing there. Without the folder (a
    /// container that shares the bus of its host) the signal has to do.
    private func watchFolder() {
        watch = nil
        guard let folder = try? FolderWatch(Self.folder) else { return }
        let descriptor = folder.descriptor
        watch = try? loop.addDescriptor(descriptor, events: .readable, kind: .folderChange) { [weak self] _ in
            let hasChanged = FolderWatch.clear(descriptor)
            self?.changed()
            return TurnResult(hasChanged)
        }
    }

    private func look() {
        guard !isAsking, let peer = bus.peer else { return }
        isAsking = true
        lastLook = loop.now()
        do {
            try peer.call(
                Logind.Names.service, path: Logind.Names.path, interface: Logind.Names.manager,
                member: "ListInhibitors",
                timeout: Self.callTimeout
            ) { [weak self] result in self?.answered(result) }
        } catch {
            isAsking = false
        }
    }

    private func answered(_ result: Result<[Variant], BusError>) {
        isAsking = false
        if let list = (try? result.get())?.first?.arrayValue { report(holders(list)) }
        if hasChangedMeanwhile { changed() }
    }

    /// What each app inhibits, and why.
    /// - Parameter list: `a(ssssuu)`: what, who, why, mode, user, pid.
    private func holders(_ list: [Variant]) -> [AppID: String] {
        var found: [AppID: String] = [:]
        var count = 0
        for entry in list.lazy.compactMap(\.structureValue) where entry.count == 6 && count < Self.mostHolders {
            guard let mode = entry[3].stringValue, mode.hasPrefix("block"), let what = entry[0].stringValue,
                let pid = entry[5].uintValue.flatMap({ Int32(exactly: $0) }), pid > 0, pid != getpid()
            else { continue }
            let kinds = what.split(separator: ":").filter { ["idle", "sleep", "shutdown"].contains($0) }
            guard !kinds.isEmpty else { continue }
            count += 1
            guard case .app(let name)? = try? containment.owner(of: pid), let app = AppID(name) else { continue }
            let (who, why) = (entry[1].stringValue ?? "", entry[2].stringValue ?? "")
            // Of several the first in logind's order.
            let text = "\(kinds.joined(separator: " ")), by \(who): \(why)".printable(upTo: Self.mostText)
            found[app] = found[app] ?? text
        }
        return found
    }

    private func report(_ found: [AppID: String]) {
        let before = reported ?? Set(recorded())
        reported = Set(found.keys)
        for app in before.union(found.keys).sorted() {
            guard let view = events.view(of: app), let run = view.run, view.inhibitor != found[app] else { continue }
            events.send(.run(run, .mode(.inhibitorChanged(found[app]))))
        }
    }
}
