import LifecycleCore
import Linux
import LoopPolicy
import Posix
import Systemd

/// Notices that the files of sockets, or their folders, are removed, and has them made again.
final class HeldSocketFiles {
    private struct Folder {
        var number: Int32
        var entries: [UInt64: HeldSocketEntry] = [:]
    }

    private unowned let sockets: HeldSockets
    private var changes: FolderChanges?
    private var source: EventSource?
    private var timer: Systemd.Timer?
    private var folders: [String: Folder] = [:]
    private var paths: [Int32: Set<String>] = [:]
    /// Folders with changes that were not examined yet.
    private var changed: Set<String> = []

    /// After a change: the program that removes a folder, or replaces a file, is to be finished.
    private static let delay = Duration.milliseconds(100)

    init(_ sockets: HeldSockets) { self.sockets = sockets }

    func watch(_ entry: HeldSocketEntry) {
        guard let path = entry.folder else { return }
        do {
            let number = try open().watch(path)
            // A folder that was made again has another number. What was removed with the old one may not have been read yet.
            if let old = folders[path]?.number, old != number {
                remove(path, from: old)
                changed.insert(path)
                arm()
            }
            folders[path, default: Folder(number: number)].number = number
            folders[path]?.entries[entry.serial] = entry
            paths[number, default: []].insert(path)
        } catch {
            sockets.journal.logWarning("a removal of \(entry.address) will not be noticed: \(error)", app: entry.app)
        }
    }

    func unwatch(_ entry: HeldSocketEntry) {
        guard let path = entry.folder, var folder = folders[path] else { return }
        folder.entries[entry.serial] = nil
        guard folder.entries.isEmpty else { return folders[path] = folder }
        folders[path] = nil
        if remove(path, from: folder.number) { changes?.unwatch(folder.number) }
    }

    /// - Returns: whether the folder has no other path that is watched.
    @discardableResult
    private func remove(_ path: String, from number: Int32) -> Bool {
        paths[number]?.remove(path)
        guard paths[number]?.isEmpty ?? false else { return false }
        paths[number] = nil
        return true
    }

    private func open() throws(SystemError) -> FolderChanges {
        if let changes { return changes }
        let made = try FolderChanges()
        source = try sockets.loop.addDescriptor(made.descriptor, events: .readable, kind: .folderChange) {
            [weak self] _ in TurnResult(self?.read() ?? true)
        }
        timer = try sockets.loop.makeTimer(kind: .timer) { [weak self] _ in self?.check() }
        changes = made
        return made
    }

    /// - Returns: whether there was a change.
    private func read() -> Bool {
        let numbers = changes?.changed() ?? []
        for number in numbers {
            if number < 0 { changed.formUnion(folders.keys) }
            changed.formUnion(paths[number] ?? [])
        }
        if !changed.isEmpty { arm() }
        return !numbers.isEmpty
    }

    private func arm() {
        guard let timer, !timer.isArmed else { return }
        timer.arm(at: sockets.loop.now() + Self.delay)
    }

    private func check() {
        let entries = changed.sorted().flatMap { folders[$0]?.entries.values.sorted { $0.serial < $1.serial } ?? [] }
        changed = []
        sockets.loop.work.add(each: entries) { [weak self] in self?.check($0) }
    }

    private func check(_ entry: HeldSocketEntry) {
        guard let socket = entry.socket, !socket.isFileInPlace else { return }
        guard sockets.hasRun(entry.app) else { return sockets.prepare(entry.app) }
        // Another socket at the path would not be the one that the process has.
        let problem = "its file was removed; it is made again when the app has ended"
        if entry.problem != problem {
            sockets.journal.logWarning("the socket \(entry.address): \(problem)", app: entry.app)
        }
        entry.problem = problem
    }
}
