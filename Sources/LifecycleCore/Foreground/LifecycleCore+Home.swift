/// The home app (`Role=home`): the app that comes to the foreground when no other app of its seat is there (L49).
extension LifecycleCore {
    /// Which app is the home app. Of several, the first one by its ID. Called when a manifest was read or removed.
    mutating func updateHome(_ index: AppIndex) {
        let before = home
        if !isHomeApp(index) {
            if home == index { findHome() }
        } else if before.map({ apps[index].id < apps[$0].id }) ?? true {
            home = index
        }
        guard home != before else { return }
        // What follows from being the home app is derived anew: the order of returns, among others.
        if let before { touch(before) }
        if let home { touch(home) }
    }

    /// Looks for the home app among all apps.
    mutating func findHome() {
        home = apps.indices.filter(isHomeApp).min { apps[$0].id < apps[$1].id }
    }

    private func isHomeApp(_ index: AppIndex) -> Bool {
        apps[index].policy.role == .home && apps[index].isRegistered && !apps[index].isRemoved
    }

    /// A user sent the app away. If no other app is in the foreground, the home app stays away until one was there.
    mutating func sentAway(_ index: AppIndex) {
        guard index == home, foregroundSlots.allSatisfy({ $0.app == index || !areOnOneSeat($0.app, index) }) else {
            return
        }
        returns.isHomeWanted = false
    }

    /// The home app was to come to the foreground after early ends, and another app is there now. Unless its manifest keeps it
    /// running, it is launched when it is needed.
    func isUnneededHome(_ index: AppIndex, _ relaunch: NotRunning.Relaunch) -> Bool {
        let policy = apps[index].policy
        return index == home && relaunch.state == .foreground && !isSlotFree(index)
            && policy.relaunch != .always && policy.launchAtStart == nil
    }

    /// No app of its seat is in the foreground, or on the way there: the home app is next. Called when the event is carried out.
    mutating func bringHome(_ now: Instant) {
        guard let home, returns.isHomeWanted, !isShuttingDown, !absence.isAway else { return }
        if isSeatTaken(home) { return }
        switch apps[home].phase {
        case .notRunning: launchHome(home, now)
        case .launching, .enteringBackground, .waking:
            if apps[home].execution?.pending == .terminate { return }
            supersede(home, .background, by: .active)
            takeForegroundSlot(home, now)
            setPending(home, .foreground)
            touch(home)
        case .background:
            takeForegroundSlot(home, now)
            enterForeground(home, .woken, now)
        case .suspending, .suspended:
            takeForegroundSlot(home, now)
            wake(home, pending: .foreground, for: nil, isUnrequested: true, now)
        // What comes after its end is decided then.
        case .terminating, .ending, .foreground: break
        }
    }

    /// After early ends it waits (L11), and after jetsam for space.
    private mutating func launchHome(_ home: AppIndex, _ now: Instant) {
        guard case .notRunning(let notRunning) = apps[home].life else { return }
        if var wait = notRunning.memoryWait {
            if wait.state == .foreground { return }
            wait.state = .foreground
            touch(home)
            return apps[home].life = .notRunning(NotRunning(memoryWait: wait))
        }
        let at = max(now, earliestRelaunch(home) ?? now)
        guard at > now else {
            if notRunning.relaunch != nil {
                report(.relaunchScheduled(apps[home].id, after: .zero, deaths: apps[home].earlyEnds))
            }
            if apps[home].isTaken { return awaitMemory(home, .foreground, now) }
            supersede(home, .background, by: .active)
            return launch(home, Launch(state: .foreground, reason: .user), isRequested: false, now)
        }
        let relaunch = NotRunning.Relaunch(at: at, state: .foreground)
        guard notRunning.relaunch != relaunch else { return }
        touch(home)
        apps[home].life = .notRunning(NotRunning(relaunch: relaunch))
        if notRunning.relaunch?.at != at {
            report(.relaunchScheduled(apps[home].id, after: at - now, deaths: apps[home].earlyEnds))
        }
    }
}
