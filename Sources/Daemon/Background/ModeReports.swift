import Control
import Glibc
import LifecycleCore
import Linux
import LoopPolicy
import Posix
import Systemd

/// The background modes that clients, such as greenroom-session, report of unmodified programs (`ReportModes`, L28), and those that the
/// daemon finds itself: an app is in a mode as long as a client or a source says so and its manifest declares the mode.
///
/// A report replaces the previous one of its client, and ends with the connection. A client reports processes of its own user; root
/// reports those of any user.
final class ModeReports {
    /// The most processes in a report. A desktop has a dozen streams and players.
    static let mostEntries = 256
    /// How long modes that were reported to the previous daemon count without a new report: clients connect again meanwhile.
    private let recoveryTime: Duration

    /// What is shown of a run.
    private struct Shown {
        var run: RunID
        var modes: BackgroundModes
    }

    /// A source of the daemon itself.
    enum Source { case accessories, calls }

    private struct Report {
        var user: UInt32
        var apps: [AppID: Shown] = [:]
    }

    private let loop: EventLoop
    private let containment: Containment
    private let driver: CoreDriver
    private var reports: [BusClient: Report] = [:]
    /// What sources of the daemon show.
    private var own: [Source: [AppID: Shown]] = [:]
    /// What was reported to the previous daemon, until a client of the same user reports again or the time is over.
    private var recovered: [AppID: Shown] = [:]
    /// What was sent to the core last: it may not have handled that event yet.
    private var sent: [AppID: Shown] = [:]
    private var recoveryTimer: Systemd.Timer?

    init(loop: EventLoop, containment: Containment, driver: CoreDriver, recoveryTime: Duration = .seconds(30)) {
        self.loop = loop
        self.containment = containment
        self.driver = driver
        self.recoveryTime = recoveryTime
    }

    /// All apps are recovered.
    func started() {
        for app in driver.core.appsWithShownModes {
            guard let view = driver.view(of: app), let run = view.run else { continue }
            recovered[app] = Shown(run: run, modes: view.shownModes)
        }
        sent = recovered
        guard !recovered.isEmpty else { return }
        recoveryTimer = try? loop.makeTimer(kind: .timer) { [weak self] _ in self?.endRecovery() }
        recoveryTimer?.arm(at: loop.now() + recoveryTime)
        // Without a timer they would be kept for ever.
        if recoveryTimer == nil { endRecovery() }
    }

    private func endRecovery() { update(Set(dropRecovered { _ in true })) }

    // MARK: Sources of the daemon

    /// A source shows these modes of a run, and no others.
    func show(_ modes: BackgroundModes, of app: AppID, _ run: RunID, by source: Source) {
        if !modes.isEmpty {
            own[source, default: [:]][app] = Shown(run: run, modes: modes)
            // What a source knows is not kept for a client that may report it again.
            recovered[app]?.modes.subtract(modes)
        } else if own[source]?[app]?.run == run {
            own[source]?[app] = nil
        }
        update([app])
    }

    // MARK: Reports

    /// Replaces what the caller has reported before, and answers the call.
    func report(_ call: MethodCall) {
        let entries = call.arguments[0].arrayValue ?? []
        guard entries.count <= Self.mostEntries else {
            return Self.refuse(call, "\(entries.count) modes are reported; expected at most \(Self.mostEntries).")
        }
        var processes: [Int32: BackgroundModes] = [:]
        for entry in entries.lazy.compactMap(\.structureValue) where entry.count == 2 {
            let (number, name) = (entry[0].uintValue ?? 0, entry[1].stringValue ?? "")
            guard let pid = Int32(exactly: number), pid > 0 else {
                return Self.refuse(call, "There is no process \(number).")
            }
            guard let mode = BackgroundModes(named: name), BackgroundModes.assertable.contains(mode) else {
                let names = BackgroundModes.assertableNames.joined(separator: ", ")
                return Self.refuse(
                    call,
                    "Process \(pid): there is no mode '\(name.printable(upTo: 64))' that a client can report; expected \(names)."
                )
            }
            processes[pid, default: []].insert(mode)
        }
        call.identify { [weak self] result in
            switch result {
            case .success(let caller): self?.report(processes, call, caller.uid)
            case .failure(let error): call.fail(error)
            }
        }
    }

    private func report(_ processes: [Int32: BackgroundModes], _ call: MethodCall, _ user: UInt32) {
        var report = Report(user: user)
        for (pid, modes) in processes.sorted(by: { $0.key < $1.key }) {
            // A process that has ended meanwhile, and one of no app, do not matter.
            guard case .app(let name)? = try? containment.owner(of: pid), let app = AppID(name),
                let run = driver.core.run(of: app),
                let owner = try? ProcFS().status(of: pid)?.uids.first
            else { continue }
            guard user == 0 || user == owner else {
                return call.fail(
                    ControlNames.Failure.accessDenied.error(
                        "Process \(pid) runs as uid \(owner); only this user and root may report its modes, not uid \(user)."
                    ))
            }
            report.apps[app] = Shown(run: run, modes: modes.union(report.apps[app]?.modes ?? []))
        }
        let client = call.client
        let before = reports[client]
        if before == nil, !report.apps.isEmpty {
            if let refusal = ReporterLimit.refusal(of: user, among: reports.values.map(\.user), reporting: "modes") {
                return call.fail(refusal)
            }
            call.onDisconnect { [weak self] in self?.disconnected(client) }
        }
        if before != nil || !report.apps.isEmpty { reports[client] = report }
        update(
            Set(report.apps.keys).union(before.map { Array($0.apps.keys) } ?? [])
                .union(dropRecovered { owner(of: $0) == user }))
        call.reply()
    }

    private static func refuse(_ call: MethodCall, _ sentence: String) {
        call.fail(ControlNames.Failure.invalidArgument.error(sentence))
    }

    private func disconnected(_ client: BusClient) {
        guard let report = reports.removeValue(forKey: client) else { return }
        update(Set(report.apps.keys))
    }

    // MARK: Recovery

    /// The real user of the main process; `nil`: it has none any more.
    private func owner(of app: AppID) -> UInt32? {
        driver.view(of: app)?.pid.flatMap { pid in (try? ProcFS().status(of: pid))?.uids.first }
    }

    private func dropRecovered(where isOver: (AppID) -> Bool) -> [AppID] {
        let over = recovered.keys.filter(isOver)
        for app in over { recovered[app] = nil }
        return over
    }

    // MARK: The core

    /// Tells the core what all clients together show of these apps.
    private func update(_ apps: Set<AppID>) {
        driver.batch {
            for app in apps.sorted() {
                let before = sent.removeValue(forKey: app)
                guard let run = driver.core.run(of: app) else { continue }
                var modes: BackgroundModes = []
                let all = reports.values.map { $0.apps[app] } + own.values.map { $0[app] } + [recovered[app]]
                for case let shown? in all where shown.run == run { modes.formUnion(shown.modes) }
                if !modes.isEmpty { sent[app] = Shown(run: run, modes: modes) }
                if modes != (before?.run == run ? before?.modes ?? [] : []) {
                    driver.send(.run(run, .mode(.shown(modes))))
                }
            }
        }
    }
}
