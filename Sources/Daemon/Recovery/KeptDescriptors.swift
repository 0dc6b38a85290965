import LifecycleCore
import Linux
import Posix
import Systemd

/// What has to outlive this daemon and is no file: kept by the service manager, where one offers it (sd_notify(3),
/// FDSTORE=1), from the moment it is there.
extension EffectPerformer {
    func keepDescriptors(of run: AppRun) {
        guard store.isThere else { return }
        store.keep(run.channel.descriptor, HandedDescriptors.notifySocket(run.id))
        if let process = run.process { store.keep(process.descriptor, HandedDescriptors.process(run.id)) }
    }

    /// All that a program which takes this one's place needs.
    var descriptorsToKeep: [(name: String, descriptor: SharedDescriptor)] {
        var all = stored.all
        for run in runs.values {
            all.append((HandedDescriptors.notifySocket(run.id), run.channel.descriptor))
            if let process = run.process { all.append((HandedDescriptors.process(run.id), process.descriptor)) }
        }
        return all
    }

    func forgetKeptProcess(of run: AppRun) {
        if store.isThere { store.forget(HandedDescriptors.process(run.id)) }
    }

    func forgetNote(of run: AppRun) {
        logbook.note(RunNote.name(run.id), nil)
        guard store.isThere else { return }
        store.forget(HandedDescriptors.notifySocket(run.id))
        store.forget(HandedDescriptors.process(run.id))
    }
}

/// systemd's store of descriptors for this service.
struct DescriptorStore {
    /// systemd says how many it keeps since 254 (`FDSTORE`); before, that it has started us has to do.
    let isThere: Bool
    var complain: (String) -> Void = { _ in }

    init(environment: (String) -> String?) {
        isThere =
            environment("NOTIFY_SOCKET") != nil
            && (environment("FDSTORE") != nil || environment("INVOCATION_ID") != nil)
    }

    func keep(_ descriptor: SharedDescriptor, _ name: String) {
        do { _ = try ServiceManager.store([descriptor], name: name) } catch { complain("\(error)") }
    }

    func forget(_ name: String) {
        do { _ = try ServiceManager.removeStored(name: name) } catch { complain("\(error)") }
    }
}
