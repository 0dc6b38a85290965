/// Notifications to apps (L31, L32).
extension LifecycleCore {
    mutating func sendRequested(_ request: RequestID, _ index: AppIndex, _ notification: Notification, _ now: Instant) {
        switch apps[index].phase {
        case .notRunning: return answer(request, .refused(.notRunning))
        case .terminating, .ending: return answer(request, .refused(.ending))
        case .launching, .foreground, .enteringBackground, .background, .suspending, .suspended, .waking: break
        }
        var notification = notification
        if notification.isEvent { notification.id = apps[index].wakes.nextNumber() }
        if notify(index, notification) == .full {
            let limit =
                notification.isEvent
                ? "\(NotificationQueue.maximumEvents) notifications of its own kinds are pending"
                : "\(NotificationQueue.maximumKinds) kinds of its own are pending"
            return answer(request, .refused(.tooMany(limit)))
        }
        answer(request, .done(apps[index].state))
    }

    /// Delivers a notification, or keeps it for an app that cannot take it now.
    @discardableResult
    mutating func notify(_ index: AppIndex, _ notification: Notification) -> NotificationQueue.Filing? {
        let filing = file(index, notification)
        if filing == .full { return filing }
        switch apps[index].execution {
        case .foreground?: deliverNotifications(index, inForeground: true)
        case .enteringBackground?, .background?:
            deliverNotifications(index, inForeground: false)
        case .waking(let waking)?:
            deliverNotifications(index, inForeground: waking.pending == .foreground)
        case nil, .launching?, .suspending?, .suspended?,
            .terminating?:
            break
        }
        return filing
    }

    /// Puts a notification into the app's queue.
    /// - Returns: what became of it; `nil`: there was none.
    @discardableResult
    mutating func file(_ index: AppIndex, _ notification: Notification?) -> NotificationQueue.Filing? {
        guard let notification else { return nil }
        let isHeld =
            switch apps[index].phase {
            case .suspending, .suspended: true
            case .notRunning, .launching, .foreground, .enteringBackground, .background, .waking, .terminating,
                .ending:
                false
            }
        return apps[index].notifications.file(notification, isHeld: isHeld)
    }

    /// No process is left that notifications could be delivered to, and wakes begin in.
    mutating func resetDeliveries(_ index: AppIndex) {
        apps[index].notifications.reset()
        apps[index].wakes.reset()
    }

    /// The process after the end is launched: it gets what was meant for it.
    mutating func beginNextDeliveries(_ index: AppIndex) {
        apps[index].notifications.beginNext()
        apps[index].wakes.beginNext()
    }

    /// No process follows the end.
    mutating func dropNextDeliveries(_ index: AppIndex) {
        apps[index].notifications.dropNext()
        apps[index].wakes.dropNext()
        apps[index].urls.afterEnd = []
    }

    @discardableResult
    mutating func deliverNotifications(_ index: AppIndex, inForeground: Bool) -> [Notification] {
        let due = apps[index].notifications.take(inForeground: inForeground)
        if due.isEmpty { return due }
        endIdleHint(index)
        effects.append(.run(self[run: index].id, .deliver(due)))
        return due
    }
}
