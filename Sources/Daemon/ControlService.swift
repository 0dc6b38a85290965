import Control
import JSON
import LifecycleCore
import Linux
import Manifest
import Systemd

/// What the bus shows of the daemon, and what changes it: apps, memory, manifests.
final class ControlService {
    let loop: EventLoop
    let clock = WallClock()
    let receipts: ReceiptStore
    let shell: CoreDriver
    let performer: DaemonContext
    let library: ManifestLibrary
    let containment: Containment
    private unowned let daemon: any DaemonControl

    init(driver: CoreDriver, context: DaemonContext, daemon: any DaemonControl) {
        loop = context.loop
        shell = driver
        performer = context
        receipts = context.receipts
        library = context.library
        containment = context.containment
        self.daemon = daemon
    }

    /// Executes the installed program in place of this one. Returns only by throwing.
    func reexec() throws { try daemon.reexec() }

    func view(of id: AppID) -> AppView? { shell.core.view(of: id, at: shell.now) }

    // MARK: Records (a{sv}, with the keys of the command line's JSON)

    func appRecords() -> [[(String, Variant)]] {
        let names = Set(shell.core.appIDs.map(\.name)).union(library.broken.keys.map(\.name))
        return names.sorted().compactMap(appRecord)
    }

    func appRecord(_ name: String) -> [(String, Variant)]? {
        guard let id = AppID(name) else { return nil }
        let error = library.broken[id].map { [("error", Variant.string($0))] } ?? []
        guard let view = view(of: id) else {
            guard !error.isEmpty else { return nil }
            return [("id", .string(name)), ("name", .string(name)), ("state", .string("notRunning"))] + error
        }
        let run = view.run.flatMap { performer.runs[$0] }
        var record: [(String, Variant)] = [
            ("id", .string(name)), ("name", .string(performer.manifests[id]?.name ?? name)),
            ("state", .string(view.state.rawValue)),
        ]
        if let pid = view.pid { record.append(("pid", .int32(pid))) }
        record.append(("since", .string(clock.format(ago: shell.now - view.since))))
        record += [
            ("memoryBytes", .uint64(memory(of: view))), ("tasks", .dictionaries(view.tasks.map(taskRecord))),
            ("foreground", .bool(view.isForeground)), ("launches", .uint64(UInt64(view.launches))),
            ("interruptions", .uint64(UInt64(view.interruptions))),
        ]
        if let deadline = view.deadline {
            record.append(
                (
                    "deadline",
                    .dictionary([
                        ("what", .string(deadline.what.rawValue)),
                        ("remainingSeconds", .double(deadline.remaining.seconds)),
                    ])
                ))
        }
        if let left = view.backgroundTimeRemaining {
            record.append(("backgroundTimeRemainingSeconds", .double(left.seconds)))
        }
        if let time = view.launchPostponed { record.append(("launchPostponedSeconds", .double(time.seconds))) }
        if let text = run?.statusText { record.append(("statusText", .string(text))) }
        if let last = receipts.last(of: id) { record.append(("lastReceipt", .dictionary(last))) }
        return record + error
    }

    private func taskRecord(_ task: AppView.Task) -> [(String, Variant)] {
        var record: [(String, Variant)] = [("name", .string(task.name)), ("ageSeconds", .double(task.age.seconds))]
        if let left = task.remaining { record.append(("remainingSeconds", .double(left.seconds))) }
        return record + [("owner", .int32(task.owner))]
    }

    func memoryRecord() -> [(String, Variant)] {
        let memory = shell.core.memory
        let machine = performer.memory.read()
        var record: [(String, Variant)] = [
            ("level", .string(memory.level.name)), ("totalBytes", .uint64(machine.total)),
            ("availableBytes", .uint64(machine.available)), ("appsBytes", .uint64(memory.apps)),
            ("containment", .string(containment.mode.summary)),
        ]
        if let cause = memory.cause { record.append(("cause", .string(cause.rawValue))) }
        if let budget = memory.budget { record.append(("budgetBytes", .uint64(budget))) }
        return record
    }

    func logWarning(_ sentence: String) {
        performer.journal.logWarning(sentence)
    }

    // MARK: Errors

    func unknownApp(_ name: String) -> BusError {
        guard AppID(name) != nil else {
            return ControlNames.Failure.unknownApp.error(
                "“\(name.prefix(64))” is no app's name: those have 1 to \(AppID.maximumLength) letters, digits, “_”, “.” "
                    + "or “-”, and begin with no dot")
        }
        if let id = AppID(name), let error = library.broken[id] {
            return ControlNames.Failure.unknownApp.error("\(name) is disabled by an error in its manifest: \(error)")
        }
        let near = library.nearest(name).map { "; did you mean \($0)?" } ?? ""
        return ControlNames.Failure.unknownApp.error("there is no app \(name)\(near)")
    }

    func error(_ refusal: Refusal, about app: String) -> BusError {
        let (failure, sentence): (ControlNames.Failure, String) =
            switch refusal {
            case .unknownApp: (.unknownApp, "there is no app \(app) any more")
            case .notRunning: (.notRunning, "\(app) is not running")
            case .running:
                (
                    .running,
                    "\(app) runs already; a URL reaches only an app that is launched with it (activate it without)"
                )
            case .ending: (.ending, "\(app) is about to end")
            case .notInForeground:
                (.notInForeground, "\(app) is not in the foreground: only there it can be interrupted")
            case .notInterrupted: (.notInterrupted, "\(app) is not interrupted")
            case .modeNotDeclared(let mode):
                (.modeNotDeclared, "\(app) does not declare BackgroundModes=\(mode) in its manifest")
            case .launchPostponed(let time):
                (
                    .launchPostponed,
                    "\(app) ended early the last times: it is not launched for another \(time.timeSpan), "
                        + "unless a user launches it"
                )
            case .shuttingDown: (.shuttingDown, "Greenroom is shutting down")
            case .tooMany(let sentence): (.tooMany, "\(app): \(sentence)")
            }
        return failure.error(sentence)
    }

    // MARK: Manifests

    /// Reads all manifests and the configuration anew. Apps that run go on; what changed counts from the next transition.
    func reload() -> [(String, Variant)] {
        let changes = library.read()
        apply(changes)
        return [
            ("apps", .uint64(UInt64(library.manifests.count))), ("errors", .strings(changes.errors)),
            ("warnings", .strings(changes.warnings)),
        ]
    }

    func apply(_ changes: ManifestLibrary.Changes) {
        performer.manifestsChanged()
        shell.send(.configured(library.configuration.policy))
        for id in changes.gone { shell.send(.unregistered(id)) }
        for manifest in library.manifests.values.sorted(by: { $0.id < $1.id }) {
            shell.send(.registered(manifest.id, manifest.policy, launches: performer.launches.count(manifest.id)))
        }
        performer.memory.watch(library.configuration.pressureThresholds)
        // What `systemctl status` shows. A service manager that is gone is no reason to fail.
        _ = try? ServiceManager.notify(.status(summary))
    }

    /// “3 apps”.
    var summary: String {
        let count = library.manifests.count
        let broken = library.broken.isEmpty ? "" : ", \(library.broken.count) disabled by an error in its manifest"
        return "\(count) app\(count == 1 ? "" : "s")" + broken
    }
}
