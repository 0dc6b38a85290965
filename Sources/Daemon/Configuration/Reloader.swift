import Control
import LifecycleCore
import Linux
import Manifest
import Reports
import Systemd

/// Reads all manifests and the configuration again, and passes what has changed to the core, in pieces. Running apps keep
/// running; a change takes effect with an app's next transition.
final class Reloader {
    private unowned let service: ControlService
    private var context: DaemonContext { service.context }
    private var loop: EventLoop { service.loop }
    /// Called after the reload that is under way.
    private var current: [(ReloadResult) -> Void] = []
    /// Called after the next one: files may have changed after the one under way has read them.
    private var waiting: [(ReloadResult) -> Void] = []
    private var isRunning = false

    init(_ service: ControlService) { self.service = service }

    /// Reads all files again. Requests during a reload are served by one more.
    func reload(_ completion: @escaping (ReloadResult) -> Void) {
        waiting.append(completion)
        if !isRunning { begin() }
    }

    private func begin() {
        isRunning = true
        (current, waiting) = (waiting, [])
        read { changes in self.apply(changes) { self.finish(changes) } }
    }

    private func finish(_ changes: ManifestLibrary.Changes) {
        var result = ReloadResult()
        result.apps = UInt64(context.library.manifests.count)
        result.errors = changes.errors.map(\.reported)
        result.warnings = changes.warnings.map(\.reported)
        let finished = current
        current = []
        isRunning = false
        for completion in finished { completion(result) }
        if !waiting.isEmpty, !isRunning { begin() }
    }

    /// Reads all files, and logs their errors and warnings. An error disables one app and lets no reload fail.
    func read(_ completion: @escaping (ManifestLibrary.Changes) -> Void) {
        let reading = context.library.beginReading()
        loop.work.add { [self] in
            if reading.advance() { return true }
            let changes = context.library.adopt(reading)
            loop.work.add { changes.replaced.release() }
            for error in changes.errors { context.journal.log(.error, MessageID.manifest, error.logged) }
            for warning in changes.warnings { context.journal.log(.warning, MessageID.manifest, warning.logged) }
            completion(changes)
            return false
        }
    }

    /// Passes the manifests and the configuration to the core.
    func apply(_ changes: ManifestLibrary.Changes, _ completion: @escaping () -> Void) {
        context.manifestsChanged()
        context.logbook.recording?.limit = context.library.configuration.traceSize
        service.driver.send(
            .configuration(.configured(context.library.configuration.policy(processors: usableProcessors()))))
        // A reload during this one begins after it, so these stay in effect.
        let ids = context.library.ids
        loop.work.add(each: changes.gone) { [self] id in
            // An instance may have been created again since.
            if context.library.manifests[id] != nil { return }
            service.remove(id)
            context.instances.persist(id)
        } completion: { [self] in
            loop.work.add(each: ids) { [self] id in
                guard let manifest = context.library.manifests[id] else { return }
                context.instances.persist(id)
                context.instances.register(manifest.value)
            } completion: { [self] in
                service.onDisabledChange?(changes.disabled)
                context.memory.watch.watch(context.library.configuration)
                service.onConfiguration?(context.library.configuration)
                // `systemctl status` shows it. An unreachable service manager is not an error here.
                _ = try? ServiceManager.notify(.status(service.summary))
                completion()
            }
        }
    }
}
