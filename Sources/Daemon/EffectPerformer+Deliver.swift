import LifecycleCore
import Linux

/// Notifications (L31, L32): files in the app's inbox, one of each kind, in place before the app runs again. A shell
/// script can read them; a program may watch the folder with inotify(7).
extension EffectPerformer {
    func inbox(of app: AppID) -> String { folders.inboxes + "/" + app.name }

    /// Before a launch, and once a run is over: what is found there was told to the process that finds it.
    func emptyInbox(of app: AppID) throws { try removeFiles(in: inbox(of: app)) }

    func deliver(_ run: AppRun, _ notifications: [Notification]) {
        for notification in notifications {
            place(run, notification.kind, notification.payload)
            if notification.kind == "memory" { tell(run, .memoryWarning(.warning)) }
        }
    }

    /// L36: one signal for both levels, so which it is lies in the inbox before it.
    func placeWarning(_ run: AppRun, _ level: MemoryLevel) { place(run, "memory", level.name) }

    private func place(_ run: AppRun, _ kind: String, _ payload: String) {
        attempt(run.app) {
            // The app owns the folder and may have put anything there: replaced by rename, no link is followed.
            try replaceFile(
                at: inbox(of: run.app) + "/" + kind, with: Array((payload + "\n").utf8), mode: 0o600, owner: run.owner)
        }
    }
}
