/// Instances of templates without a file of their own: they exist as long as something is left of them.
extension LifecycleCore {
    /// A request for a transient instance: the one that it was created for, or a later one.
    mutating func instanceRequested(_ index: AppIndex) {
        guard apps[index].awaitsRequest else { return }
        touch(index)
        apps[index].awaitsRequest = false
    }

    /// Whether nothing is left of a transient instance: it does not run, nothing will launch it but a request, and the daemon
    /// holds no sockets for it. A user can remove it with its sockets (L42).
    @inline(__always)
    func isGone(_ index: AppIndex) -> Bool {
        guard apps[index].policy.isTransient, !apps[index].isRemoved, !apps[index].awaitsRequest,
            case .notRunning(let notRunning) = apps[index].life, !notRunning.isToLaunch
        else { return false }
        return !apps[index].policy.holdsSockets || apps[index].isToRemove
    }

    mutating func removeInstance(_ index: AppIndex, _ now: Instant) {
        apps[index].isRegistered = false
        updateHome(index)
        remove(index)
        followSockets(index, now)
        refresh(index)
        effects.append(.removeInstance(apps[index].id))
    }
}
