import Glibc
import LifecycleCore
import Linux
import Posix
import Systemd

/// The folder that contains the inboxes of all apps. Empties those of runs that are over.
final class InboxFolders {
    /// The most entries that are removed at once: unlink(2) takes some microseconds, and rmdir(2) more.
    private static let entriesAtOnce = 64
    /// The name of a file that is being written. App IDs do not begin with a dot.
    private static let temporary = ".new"

    let path: String
    private let loop: EventLoop
    private let journal: Journal
    private var removal: FolderRemoval
    private var folder: KeptFolder?

    init(folders: Folders, loop: EventLoop, journal: Journal) {
        path = folders.inboxes
        self.loop = loop
        self.journal = journal
        removal = FolderRemoval(in: folders.inboxes)
        folder = try? KeptFolder(folders.inboxes)
        if !removal.isEmpty { removeRest() }
    }

    /// The folder. It is opened again if it was removed and made again (`FolderGuard`).
    func opened() throws(SystemError) -> KeptFolder {
        if let folder, folder.isLinked { return folder }
        let opened = try KeptFolder(path)
        folder = opened
        return opened
    }

    /// The runtime folder was removed, in whole or in part: the folder is opened again.
    func reopen() { folder = nil }

    /// Removes all notifications: they were meant for the process that is over. If there are too many files for one turn, the
    /// folder is renamed, and removed in later turns.
    func empty(_ inbox: Inbox) throws(SystemError) {
        guard let folder = try inbox.folderIfPresent() else { return }
        if try folder.removeFiles(limit: Self.entriesAtOnce) { return try inbox.endRun() }
        // The app may have put another folder in its position.
        if try opened().contains(folder, as: inbox.name) { try remove(inbox.name) }
        inbox.close()
    }

    /// Creates an empty inbox.
    func create(_ inbox: Inbox) throws(SystemError) {
        do throws(SystemError) { try empty(inbox) } catch {
            // No folder, or a file system is mounted on it.
            guard Inbox.isReplaced(error) else { throw error }
        }
        if let problem = try inbox.create() { journal.logWarning(problem, app: inbox.app) }
    }

    /// Writes a file of an inbox.
    func write(_ name: String, in target: KeptFolder, _ contents: [UInt8], owner: Owner?) throws(SystemError) {
        try opened().replaceFile(
            name, in: target, with: contents, mode: 0o600, owner: owner, temporary: Self.temporary)
    }

    /// Removes a folder that an app has made in its inbox, in later turns.
    func remove(_ name: String, in folder: KeptFolder) throws(SystemError) {
        let isRemoving = !removal.isEmpty
        try removal.add(name, in: folder)
        if !isRemoving { removeRest() }
    }

    private func remove(_ name: String) throws(SystemError) {
        let isRemoving = !removal.isEmpty
        try removal.add(name)
        if !isRemoving { removeRest() }
    }

    /// Removes the inbox of an app that no longer exists, in later turns.
    func removeInbox(of app: AppID) throws(SystemError) {
        do throws(SystemError) { try remove(app.name) } catch { if error.errno != ENOENT { throw error } }
    }

    /// Behind the sources of apps, and in turn with clients: an app may leave any number of files.
    private func removeRest() {
        loop.work.add { [weak self] in
            guard let self else { return false }
            do { try self.removal.step(limit: Self.entriesAtOnce) } catch { self.journal.logWarning("\(error)") }
            return !self.removal.isEmpty
        }
    }

    /// Empties the inboxes of apps that do not run, and removes those of apps without a manifest, in later turns. An app may
    /// have ended while there was no daemon.
    /// - Parameters:
    ///   - isUsed: whether a run has the inbox of this name.
    ///   - isKnown: whether the app of this name has a manifest.
    func removeUnused(isUsed: @escaping (String) -> Bool, isKnown: @escaping (String) -> Bool) {
        guard let reader = try? FolderReader(path) else { return }
        loop.work.add { [weak self] in
            guard let self, let names = try? reader.next(Self.entriesAtOnce) else { return false }
            for name in names where !name.hasPrefix(".") && !isUsed(name) {
                do { try self.removeUnused(name, isKnown: isKnown(name)) } catch {
                    self.journal.logWarning("the inbox \(name.printable()) cannot be removed: \(error)")
                }
            }
            return !reader.isAtEnd
        }
    }

    private func removeUnused(_ name: String, isKnown: Bool) throws(SystemError) {
        let parent = try opened()
        let unused: KeptFolder
        do throws(SystemError) { unused = try parent.subfolder(name) } catch {
            // Of no app, and in the way of none: `create` removes it.
            if Inbox.isReplaced(error) || error.errno == ENOENT { return }
            throw error
        }
        if isKnown, try unused.removeFiles(limit: Self.entriesAtOnce) { return }
        try remove(name)
    }
}

/// An app's inbox: a folder with one file for each event, and one for each other kind of notification (L31, L32). The file is
/// there before the app is thawed or notified. Shell scripts can read it, and programs can watch the folder with inotify(7).
///
/// The folder belongs to the app, which can do anything to it, and an app of the daemon's user also to its name: remove it, put
/// a symbolic link in its position, or mount a file system on it that does not answer. So the folder is kept open.
final class Inbox {
    /// The most files of events that an app leaves in its inbox. The oldest one is removed before one more is written.
    static let maximumEvents = 256
    /// The most names that are read at the start of the daemon. The app may have added files of its own. Files that are not
    /// read do not count as events.
    private static let maximumListed = 1024
    /// Digits of an event's number in the name of its file, so that names sort as the events came. JSON's exact numbers have no
    /// more.
    private static let digits = 16
    /// How many further names an inbox may have: one more is used if a file system that the daemon cannot detach is mounted on
    /// the folder.
    static let furtherNames: UInt8 = 3
    private static let mode: UInt32 = 0o700

    let app: AppID
    private let parent: InboxFolders
    /// The user of the app; `nil`: the daemon's.
    let owner: Owner?
    /// Of `furtherNames`; 0: the folder has the app's name.
    private var nameNumber: UInt8
    private var folder: KeptFolder?

    /// - Parameter name: of the folder that the previous daemon has created; `nil`: the app's.
    init(of app: AppID, in parent: InboxFolders, owner: Owner?, name: String? = nil) {
        self.app = app
        self.parent = parent
        self.owner = owner
        nameNumber = (1...Self.furtherNames).first { Self.name(of: app, $0) == name } ?? 0
    }

    /// The name of the folder: the app's, or with `~` and a number if a file system is mounted on that.
    var name: String { Self.name(of: app, nameNumber) }

    /// App IDs contain no `~`.
    private static func name(of app: AppID, _ number: UInt8) -> String {
        number == 0 ? app.name : "\(app.name)~\(number)"
    }

    /// The ID of the app whose inbox has this name.
    static func app(ofFolder name: String) -> AppID? { AppID(String(name.prefix { $0 != "~" })) }

    var path: String { parent.path + "/" + name }

    // MARK: The folder

    /// Whether an app has put something else in the position of the folder: the error of opening it.
    static func isReplaced(_ error: SystemError) -> Bool {
        [EXDEV, ELOOP, ENOTDIR, EACCES].contains(error.errno)
    }

    /// Creates the folder, if it does not exist, and opens it. A file in its position is removed, and a file system that is
    /// mounted on it is detached, or another name is used.
    /// - Returns: a warning about that; `nil`: none was needed.
    func create() throws(SystemError) -> String? {
        let parent = try self.parent.opened()
        var problem: String?
        for number in 0...Self.furtherNames {
            let candidate = Self.name(of: app, number)
            let path = parent.path + "/" + candidate
            var attempts = 0
            repeat {
                attempts += 1
                do throws(SystemError) {
                    folder = try parent.makeFolder(candidate, mode: Self.mode, owner: owner)
                    nameNumber = number
                    return problem
                } catch {
                    guard error.errno == EXDEV || error.errno == EBUSY else { throw error }
                    problem =
                        "a file system was mounted on its inbox \(path); it was detached, or another folder is used"
                }
            } while attempts < Self.furtherNames && detachMount(at: path)
        }
        throw SystemError(call: "open", errno: EXDEV, path: path)
    }

    /// Opens the folder that the previous daemon has created.
    /// - Returns: `nil` if it does not exist.
    func folderIfPresent() throws(SystemError) -> KeptFolder? {
        if let folder { return folder }
        do throws(SystemError) {
            folder = try parent.opened().subfolder(name)
        } catch {
            if error.errno != ENOENT { throw error }
        }
        return folder
    }

    func close() { folder = nil }

    /// The run is over and its files are removed. An inbox of another name than the app's is not used again.
    func endRun() throws(SystemError) {
        folder = nil
        guard name != app.name else { return }
        do throws(SystemError) { try parent.opened().removeFolder(name) } catch {
            if error.errno != ENOENT && error.errno != ENOTEMPTY && error.errno != EBUSY { throw error }
        }
    }

    /// Makes the folder again, if it was removed with the runtime folder.
    func makeAgain() throws(SystemError) {
        if let folder, try parent.opened().contains(folder, as: name) { return }
        folder = nil
        _ = try create()
    }

    // MARK: Files

    /// The name of the file of a notification: its kind, and of an event `KIND.NUMBER`. Kinds contain no dot.
    static func fileName(_ notification: Notification) -> String {
        fileName(kind: notification.kind, id: notification.id)
    }

    static func fileName(kind: String, id: UInt64) -> String {
        guard id > 0 else { return kind }
        let number = String(id)
        let zeros = String(repeating: "0", count: max(0, digits - number.utf8.count))
        return "\(kind).\(zeros)\(number)"
    }

    /// Writes a file in place of the previous one of this name. It replaces whatever the app has put there, and no symbolic
    /// link is followed. If the app has made the folder useless, it is made again.
    /// - Returns: a warning about what the app has done; `nil`: nothing.
    func write(_ file: String, _ payload: String) throws(SystemError) -> String? {
        let contents = Array((payload + "\n").utf8)
        let warning: String
        do throws(SystemError) {
            guard let folder = try folderIfPresent() else { throw SystemError(call: "open", errno: ENOENT, path: path) }
            try parent.write(file, in: folder, contents, owner: owner)
            return nil
        } catch {
            warning = try repair(file, after: error)
        }
        guard let folder else { throw SystemError(call: "open", errno: ENOENT, path: path) }
        try parent.write(file, in: folder, contents, owner: owner)
        return warning
    }

    /// - Throws: the error, if nothing can be done about it: there is no space, for example.
    private func repair(_ file: String, after error: SystemError) throws(SystemError) -> String {
        switch error.errno {
        case EACCES, EPERM:
            guard let folder else { throw error }
            try folder.set(mode: Self.mode, owner: owner)
            return "the permissions of its inbox were restored"
        case ENOENT, ENOTDIR, ELOOP:
            folder = nil
            let problem = try create()
            return problem ?? "its inbox \(path) was missing or was no directory; it was made again"
        case EISDIR, ENOTEMPTY, EEXIST:
            guard let folder else { throw error }
            try parent.remove(file, in: folder)
            return "a directory of the app in its inbox, \(file), was removed: a file has this name"
        default: throw error
        }
    }

    /// Removes the file of an event, unless the app has done so.
    /// - Returns: whether it was there.
    func remove(_ file: String) throws(SystemError) -> Bool { try folderIfPresent()?.remove(file) ?? false }

    /// Whether a file of this name exists. No symbolic link is followed.
    func contains(_ file: String) -> Bool { (try? folderIfPresent())?.contains(file) ?? false }

    /// Lists the files of events.
    func eventFiles() throws(SystemError) -> EventFiles {
        guard let folder = try folderIfPresent() else { return EventFiles() }
        return EventFiles(among: try folder.names(limit: Self.maximumListed))
    }

    /// The number of the event whose file has this name; `nil`: the daemon gives no event's file such a name.
    static func eventNumber(ofFile name: String) -> UInt64? {
        // By bytes: the app chooses the names of its own files.
        let parts = name.utf8.split(separator: UInt8(ascii: "."), maxSplits: 1, omittingEmptySubsequences: false)
        let decimal = UInt8(ascii: "0")...UInt8(ascii: "9")
        guard parts.count == 2, parts[1].count == digits, parts[1].allSatisfy({ decimal.contains($0) }) else {
            return nil
        }
        let kind = String(Substring(parts[0]))
        guard kind == Notification.push || Notification(kind: kind, payload: "")?.isEvent == true else { return nil }
        return UInt64(Substring(parts[1]))
    }
}

/// The files of events in an inbox. The app may have removed some of them.
struct EventFiles {
    /// Oldest first.
    private var names: [String] = []

    init() {}

    /// - Parameter found: names of files, also of other ones.
    init(among found: [String]) {
        let events = found.compactMap { name in Inbox.eventNumber(ofFile: name).map { (number: $0, name: name) } }
        // The app can give two files the same number.
        names = events.sorted { ($0.number, $0.name) < ($1.number, $1.name) }.map(\.name)
    }

    /// Adds files that are about to be written.
    /// - Returns: the oldest files, which are too many then, and no longer counted.
    mutating func add(_ added: [String], in inbox: Inbox) -> [String] {
        // After a crash of the daemon an event may be delivered again.
        let known = names
        names += added.filter { !known.contains($0) }
        guard names.count > Inbox.maximumEvents else { return [] }
        // Most apps remove the files, so few remain and the next search is 256 events later.
        names.removeAll { !added.contains($0) && !inbox.contains($0) }
        let surplus = Array(names.prefix(max(0, names.count - Inbox.maximumEvents)))
        names.removeFirst(surplus.count)
        return surplus
    }
}
