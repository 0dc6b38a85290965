import LifecycleCore
import Linux
import Posix

/// An app's inbox: a folder with one file for each kind of notification (L31, L32). The file is there before the app is
/// thawed or notified. Shell scripts can read it, and programs can watch the folder with inotify(7).
struct Inbox {
    let path: String
    private let owner: Owner?

    init(of app: AppID, _ folders: Folders, owner: Owner?) {
        path = folders.inboxes + "/" + app.name
        self.owner = owner
    }

    /// Creates the folder and removes what the previous run left in it.
    func create() throws {
        try createDirectories(at: path, mode: 0o700, owner: owner)
        try empty()
    }

    /// Removes all notifications. They were meant for the process that is over.
    func empty() throws { try removeFiles(in: path) }

    /// Writes a notification in place of the previous one of its kind. The app owns the folder and may have put
    /// anything there: the file is replaced by rename(2), and no symbolic link is followed.
    func write(_ kind: String, _ payload: String) throws {
        try replaceFile(at: path + "/" + kind, with: Array((payload + "\n").utf8), mode: 0o600, owner: owner)
    }
}
