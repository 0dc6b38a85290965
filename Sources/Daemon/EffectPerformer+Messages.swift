import Glibc
import LifecycleCore
import Linux
import Posix
import Systemd

/// What an app says on its notify socket, as events.
extension EffectPerformer {
    func received(
        _ run: AppRun, _ messages: [NotifyMessage], _ descriptors: inout ReceivedDescriptors, _ sender: Int32
    ) {
        for message in messages {
            switch message {
            case .ready: send(.ready(run.id))
            case .status(let text):
                run.statusText = text
                keepNote(of: run)
            case .stopping: send(.stopping(run.id))
            case .errno(let number):
                run.errno = number
                keepNote(of: run)
            case .mainPID(let pid): changeMainProcess(run, pid)
            case .watchdog: send(.heartbeat(run.id))
            case .watchdogTrigger: send(.heartbeatGivenUp(run.id))
            case .extendTimeout(let time): send(.timeoutExtended(run.id, by: time))
            case .background: send(.backgroundEntered(run.id))
            case .beginTask(let task): send(.taskBegan(run.id, name: task, owner: sender))
            case .endTask(let task): send(.taskEnded(run.id, name: task))
            case .wakeDone(let result): send(.wakeCompleted(run.id, WakeResult(result)))
            // Its descriptor is closed with the datagram: that is the answer.
            case .barrier: break
            case .storeDescriptors(let name): store(run, &descriptors, name)
            case .removeDescriptors(let name): stored.remove(name, of: run.app)
            }
        }
    }

    private func store(_ run: AppRun, _ descriptors: inout ReceivedDescriptors, _ name: String) {
        while let descriptor = descriptors.takeFirst() {
            switch stored.add(descriptor, name, of: run.app, closer: run.channel.closer) {
            case .stored(let written): run.channel.charge(bytes: written)
            case .refused(let refusal): run.channel.complainAtTimes(refusal)
            }
        }
    }

    /// `MAINPID=`: only to a process of its own group.
    private func changeMainProcess(_ run: AppRun, _ pid: Int32) {
        guard pid != run.process?.pid else { return }
        guard (try? run.enclosure.contains(pid)) ?? false else {
            return run.channel.complainAtTimes("MAINPID=\(pid) is no process of it; the main process stays the same")
        }
        do {
            // Looked at again behind the open: in between the pid could have been given to a stranger.
            guard let process = try Process.open(pid), try run.enclosure.contains(pid) else { return }
            if let old = run.process?.pid { mainProcesses[old] = nil }
            // Before its descriptor is closed: what systemd keeps of it would hold it in epoll(7) for ever. And before the
            // other is stored, since of two of one name nobody could tell which is which.
            run.exitSource = nil
            forgetKeptProcess(of: run)
            // The kernel tells a parent alone that its child has stopped: one that lives is not us.
            run.isStranger = (try? ProcFS().stat(of: pid))?.parent != getpid()
            noteMainProcess(run, process)
            watchExit(run)
            send(.mainProcessChanged(run.id, pid: pid))
            // The old one may have ended, and been left for `mainProcessEnded` to reap.
            reapOrphans()
        } catch {
            run.channel.complainAtTimes("MAINPID=\(pid): \(error)")
        }
    }
}

extension WakeResult {
    init(_ result: NotifyMessage.WakeResult) {
        switch result {
        case .newData: self = .newData
        case .noData: self = .noData
        case .failed: self = .failed
        }
    }
}
