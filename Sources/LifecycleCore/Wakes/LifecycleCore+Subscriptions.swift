/// What apps want to be notified of by the machine (L33). Sources are watched only while an app with a process wants them.
extension LifecycleCore {
    /// What an app wants now. One that is about to end is notified of nothing any more.
    func subscription(_ index: AppIndex) -> NotificationKinds {
        switch apps[index].phase {
        case .notRunning, .terminating, .ending: []
        case .launching, .foreground, .enteringBackground, .background, .suspending, .suspended, .waking:
            apps[index].policy.notifications
        }
    }

    mutating func followSubscription(_ index: AppIndex) {
        let kinds = subscription(index)
        guard kinds != apps[index].subscribed else { return }
        apps[index].subscribed = kinds
        effects.append(.subscribe(apps[index].id, kinds))
    }

    /// The sources of the dead daemon have ended with it.
    mutating func recoverSubscriptions() {
        for app in apps where !app.subscribed.isEmpty { effects.append(.subscribe(app.id, app.subscribed)) }
    }

    /// A source has read something, perhaps the same as before. Each app compares it with what it knows, so that a daemon that is
    /// started anew notifies of what has changed meanwhile, and of nothing else.
    mutating func observed(_ reading: Notification, _ id: AppID?) {
        guard let kind = NotificationKinds(named: reading.kind) else { return }
        if let id {
            if let index = indices[id] { observe(index, reading, kind) }
        } else {
            for index in apps.indices { observe(index, reading, kind) }
        }
    }

    private mutating func observe(_ index: AppIndex, _ reading: Notification, _ kind: NotificationKinds) {
        guard apps[index].subscribed.contains(kind) else { return }
        touch(index)
        if apps[index].notifications.isChange(reading) { notify(index, reading) }
    }
}
