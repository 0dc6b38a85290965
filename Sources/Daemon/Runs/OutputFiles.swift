import Glibc
import LifecycleCore
import Linux
import LoopPolicy
import Posix
import Systemd

/// The files for the output of apps without a journal (L56): `output/APP` in the state folder, and `output/APP~1`, the one before.
///
/// Each app writes to its file itself, so its output does not depend on the daemon. A file that got more than `most` bytes is replaced
/// at the next launch. While the app runs, the daemon looks at the size when it measures memory (10 s at most, while an app is awake),
/// when the app is suspended and when it ends: beyond `most` the space of all but the last `kept` bytes is freed. Offsets stay what
/// they are, so that no line is lost or divided while the app writes on.
final class OutputFiles {
    /// In bytes.
    static let most: UInt64 = 1 << 20
    static let kept: UInt64 = 1 << 19
    /// A multiple of the block size of every common file system: only whole blocks can be freed.
    private static let block: UInt64 = 1 << 12

    /// A run whose output goes to the file of its app.
    private struct Output {
        let app: AppID
        /// The size of the file when the run began.
        let start: UInt64
        /// Up to here the space is freed.
        var freed: UInt64 = 0
    }

    private let path: String
    private let loop: EventLoop
    private let journal: Journal
    private var folder: SharedDescriptor?
    private var runs: [RunID: Output] = [:]
    private lazy var thread = try? HelperThread(name: "output", .reports)
    private var source: EventSource?
    /// Only while the daemon has a terminal.
    private var echo: OutputEcho?

    init(folders: Folders, loop: EventLoop, journal: Journal) {
        path = folders.output
        self.loop = loop
        self.journal = journal
        // `log --follow` waits there for the first file. An error is reported at a launch.
        guard !isInJournal, let folder = try? openFolder(), journal.isOnTerminal else { return }
        do throws(SystemError) {
            echo = try OutputEcho(path, folder, loop: loop, journal: journal)
        } catch {
            journal.logWarning("the output of apps is not shown here: \(error)")
        }
    }

    /// Whether output that the manifest does not direct elsewhere goes to the journal. In the terminal of a daemon its output is shown,
    /// and comes from the files.
    var isInJournal: Bool { journal.usesJournald && !journal.isOnTerminal }

    func path(of app: AppID) -> String { "\(path)/\(app.name)" }

    /// An ID has no tilde.
    private func older(_ name: String) -> String { name + "~1" }

    // MARK: Runs

    /// Opens the file of an app for the output of a new run.
    /// - Parameters:
    ///   - owner: the user of the app, which owns the file: a program can open /dev/stdout again. `nil`: the daemon's.
    ///   - heading: a line before the output of the run, if there is output of an earlier one.
    func open(
        for run: RunID, of app: AppID, owner: Owner?, _ heading: String?
    ) throws(SystemError) -> Descriptor {
        let owner = owner ?? Owner(uid: geteuid(), gid: getegid())
        let file: Descriptor
        do throws(SystemError) {
            file = try open(app.name, owner)
        } catch  where error.errno == ENOENT {
            // The folder was removed, or does not exist yet.
            folder = nil
            file = try open(app.name, owner)
        }
        try file.setNonBlocking(false)
        var start = try file.size(app.name)
        if let heading, start > 0 || exists(at: older(path(of: app))) {
            // The last line before it may have no end. Without space for it the output has none either.
            _ = try? writeAll(Array("\(start > 0 ? "\n" : "")\(heading)\n".utf8), to: file)
            start = try file.size(app.name)
        }
        runs[run] = Output(app: app, start: start)
        echo?.follow(run, of: app, from: start)
        return file
    }

    /// Opens the file of a run once more, for another process of it; `nil`: its output goes elsewhere.
    func openAgain(for run: RunID) throws(SystemError) -> Descriptor? {
        guard let output = runs[run] else { return nil }
        let flags = O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY
        let file = try openFolder().descriptor.open(output.app.name, flags)
        try file.refuseIrregular(path(of: output.app))
        try file.setNonBlocking(false)
        return file
    }

    /// A run of the previous daemon.
    func restore(_ run: RunID, of app: AppID, _ start: UInt64) {
        runs[run] = Output(app: app, start: start)
        echo?.follow(run, of: app, from: nil)
    }

    /// Where the output of a run begins in the file of its app; `nil`: it goes elsewhere.
    func start(of run: RunID) -> UInt64? { runs[run]?.start }

    /// The receipt of the run is written.
    func ended(_ run: RunID) {
        echo?.end(run)
        bound(run)
        runs[run] = nil
    }

    /// Removes the files of an app.
    func remove(_ app: AppID) throws(SystemError) {
        for path in [path(of: app), older(path(of: app))] { try removeFile(at: path) }
    }

    // MARK: The last lines

    /// The lines, and the bytes of them all, that stand in a receipt: as many lines as systemctl shows of a unit.
    private static let lastLines = 10
    private static let lastBytes = 1024

    /// The last lines that a run has written to the file of its app. Empty: it has written none, or its output goes elsewhere.
    func lastLines(of run: RunID) -> [String] {
        guard let output = runs[run], let folder = try? openFolder(),
            let file = try? folder.descriptor.open(output.app.name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY),
            (try? file.refuseIrregular(output.app.name)) != nil, let size = try? file.size(output.app.name)
        else { return [] }
        // With twice as much, a line that is cut off at the start is not among the last ones, unless it is very long.
        let most = UInt64(2 * Self.lastBytes)
        // After a truncation all of it is of this run.
        let start = max(size < output.start ? 0 : output.start, size - min(size, most))
        let number = file.raw
        let bytes = [UInt8](unsafeUninitializedCapacity: Int(most)) { buffer, count in
            count = max(0, pread(number, buffer.baseAddress, Int(min(size - start, most)), off_t(start)))
        }
        return Self.lines(of: bytes)
    }

    /// Control characters are U+FFFD: the text is shown on terminals.
    static func lines(of bytes: [UInt8]) -> [String] {
        var left = lastBytes
        var lines: [String] = []
        for line in bytes.split(separator: UInt8(ascii: "\n")).reversed() where lines.count < lastLines {
            let line = line.last == UInt8(ascii: "\r") ? line.dropLast() : line
            let text = String(decoding: line, as: UTF8.self).printable(upTo: left)
            left -= text.utf8.count
            lines.append(text)
            // Less would only be an ellipsis.
            if left < 16 { break }
        }
        return lines.reversed()
    }

    // MARK: The bound

    /// Frees what a run has written beyond the bound, on a helper thread.
    func bound(_ run: RunID) {
        guard let output = runs[run], let folder = try? openFolder() else { return }
        var about = Glibc.stat()
        guard fstatat(folder.raw, output.app.name, &about, AT_SYMLINK_NOFOLLOW) == 0 else { return }
        let size = UInt64(clamping: about.st_size)
        // It was truncated.
        if size < output.freed { runs[run]?.freed = 0 }
        guard size > (runs[run]?.freed ?? 0) + Self.most else { return }
        let end = (size - Self.kept) / Self.block * Self.block
        do throws(SystemError) {
            // A FIFO in its position would block.
            let file = try folder.descriptor.open(output.app.name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)
            try file.refuseIrregular(path(of: output.app))
            if try free(file, upTo: end) { runs[run]?.freed = end }
        } catch {
            journal.logWarning("its output has no bound: \(error)", app: output.app)
        }
    }

    private func free(_ file: consuming Descriptor, upTo end: UInt64) throws(SystemError) -> Bool {
        guard let thread, let completions = thread.completions else { return false }
        if source == nil {
            // The results are of no interest; reading them empties the queue.
            source = try? loop.addDescriptor(completions, events: .readable, kind: .helperAnswer) { _ in
                TurnResult((try? thread.collect())?.isEmpty == false)
            }
        }
        return try thread.freeStart(of: file, upTo: end)
    }

    // MARK: Files

    private func open(_ name: String, _ owner: Owner) throws(SystemError) -> Descriptor {
        let folder = try openFolder()
        let flags = O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY
        do throws(SystemError) {
            let file = try folder.descriptor.open(name, flags)
            if try isUsable(file, name, owner) { return file }
        } catch {
            switch error.errno {
            case ENOENT: return try create(name, flags, owner)
            // A link, a FIFO, a folder, or a file that the app has closed to the daemon: it makes way like a full one.
            case ELOOP, ENXIO, EISDIR, EACCES: break
            default: throw error
            }
        }
        try checkErrno(renameat(folder.raw, name, folder.raw, older(name)), "rename", "\(path)/\(name)")
        return try create(name, flags, owner)
    }

    /// A file with another name as well could be any file.
    private func isUsable(_ file: borrowing Descriptor, _ name: String, _ owner: Owner) throws(SystemError) -> Bool {
        var about = Glibc.stat()
        try checkErrno(fstat(file.raw, &about), "fstat", name)
        return about.st_mode & S_IFMT == S_IFREG && about.st_nlink == 1 && about.st_uid == owner.uid
            && UInt64(clamping: about.st_size) <= Self.most
    }

    private func create(_ name: String, _ flags: Int32, _ owner: Owner) throws(SystemError) -> Descriptor {
        let file = try openFolder().descriptor.open(name, flags | O_CREAT | O_EXCL, mode: 0o600)
        if owner.uid != geteuid() || owner.gid != getegid() {
            try checkErrno(fchown(file.raw, owner.uid, owner.gid), "fchown", "\(path)/\(name)")
        }
        return file
    }

    private func openFolder() throws(SystemError) -> SharedDescriptor {
        if let folder { return folder }
        // Another user, who could put anything there, owns it no longer.
        try createDirectories(at: path, mode: 0o700, owner: Owner(uid: geteuid(), gid: getegid()))
        let opened = SharedDescriptor(try Descriptor.open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW))
        folder = opened
        return opened
    }
}

extension Descriptor {
    fileprivate borrowing func size(_ path: String) throws(SystemError) -> UInt64 {
        var about = Glibc.stat()
        try checkErrno(fstat(raw, &about), "fstat", path)
        return UInt64(clamping: about.st_size)
    }
}
