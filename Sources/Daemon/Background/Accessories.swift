import LifecycleCore
import Linux
import LoopPolicy
import Manifest
import Systemd

/// Finds the runs that have an accessory open (L28), of apps that declare the mode: when they enter the background, when they are frozen, and
/// from then on each `interval` for as long as that keeps them awake in the background. The kernel does not report when another process closes
/// a device.
final class Accessories {
    private static let interval = Duration.seconds(5)

    private let loop: EventLoop
    private let runs: RunTable
    private let library: ManifestLibrary
    private unowned let events: any EventSink
    /// Shows the core whether a run has one open.
    var show: (AppID, RunID, Bool) -> Void = { _, _, _ in }
    /// The runs that had one open at the last look.
    private var open: [RunID: AppID] = [:]
    private var timer: Systemd.Timer?

    init(loop: EventLoop, runs: RunTable, library: ManifestLibrary, events: any EventSink) {
        (self.loop, self.runs, self.library, self.events) = (loop, runs, library, events)
    }

    func areDeclared(by run: RunController) -> Bool {
        (library.manifests[run.app]?.value ?? run.manifest).policy.backgroundModes.contains(.accessory)
    }

    /// All apps are recovered.
    /// - Parameter apps: those of which the core knows modes that sources show.
    func started(_ apps: [AppID]) {
        for app in apps {
            guard let run = runs[app], events.view(of: app)?.shownModes.contains(.accessory) ?? false
            else { continue }
            found(run)
        }
    }

    /// Looks at an app that has entered the background, before it would be suspended.
    func enteredBackground(_ app: AppID) {
        guard let run = runs[app], areDeclared(by: run) else { return }
        search(run)
    }

    /// An accessory was found open, or the previous daemon had found one.
    func found(_ run: RunController) {
        open[run.id] = run.app
        show(run.app, run.id, true)
        if !(timer?.isArmed ?? false) { arm() }
    }

    private func arm() {
        if timer == nil { timer = try? loop.makeTimer(kind: .timer) { [weak self] _ in self?.lookAtAll() } }
        // Without a timer it would be awake for ever.
        guard let timer else { return open.keys.sorted().forEach(end) }
        timer.arm(at: loop.now() + Self.interval)
    }

    private func lookAtAll() {
        open.keys.sorted().forEach(look)
        if !open.isEmpty { arm() }
    }

    private func look(_ id: RunID) {
        // In the foreground it needs no reason to be awake. It is looked at again when it enters the background.
        guard let run = runs[id], areDeclared(by: run),
            events.view(of: run.app)?.state == .background
        else { return end(id) }
        search(run)
    }

    private func search(_ run: RunController) {
        let id = run.id
        guard let search = try? run.enclosure.accessorySearch() else { return end(id) }
        loop.work.add { [weak self] in
            if (try? search.advance()) ?? false { return true }
            guard let self else { return false }
            if search.isFound, let run = self.runs[id] { self.found(run) } else { self.end(id) }
            return false
        }
    }

    private func end(_ id: RunID) {
        if let app = open.removeValue(forKey: id) { show(app, id, false) }
    }
}
