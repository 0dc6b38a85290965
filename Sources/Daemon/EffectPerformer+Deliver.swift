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
            // The app owns the folder and may have put anything there: replaced by rename, no link is followed.
            attempt(run.app) {
                try replaceFile(
                    at: inbox(of: run.app) + "/" + notification.kind, with: Array((notification.payload + "\n").utf8), mode: 0o600,
                    owner: run.owner)
            }
            if notification.kind == "memory" { perform(.tell(run.id, .memoryWarning(.warning))) }
        }
    }
}
