import CLinux
import Glibc
package import Posix

/// File locks that processes of an app hold (L43).
package struct HeldLocks: Equatable, Sendable {
    package var count: Int
    /// All are shared, and no program is known to wait for one.
    package var isShared = false
    /// It is no lock, or a lock that the manifest names: what the app was to let go of (`Releases=`).
    package var isResource = false
    /// The path of one of the files, else `inode 123 on device 8:1`. It can contain any characters.
    package var file: String
}

/// A line of /proc/locks (proc_locks(5)), or of `lock:` in /proc/PID/fdinfo/N (proc_pid_fdinfo(5)).
struct LockLine: Hashable {
    enum Kind: Hashable { case posix, flock, ofd }

    var kind: Kind
    /// The process that has taken it; less than 1: it has no process that is visible here.
    var pid: Int32
    /// `MAJOR:MINOR:INODE`: hexadecimal, hexadecimal, decimal.
    var file: String
    /// It is a lock for reading, which keeps programs from writing only.
    var isShared: Bool
    /// The first and the last byte; `UInt64.max`: to the end of the file.
    var bytes: ClosedRange<UInt64>

    /// - Returns: `nil` for a process that waits for a lock, a lease, and lines of another form.
    init?(parsing line: ArraySlice<UInt8>) {
        var words = ByteScanner(line)
        // "1:", and "->" for a process that waits.
        guard words.word()?.last == UInt8(ascii: ":"), let type = words.word() else { return nil }
        if type.elementsEqual("POSIX".utf8) {
            kind = .posix
        } else if type.elementsEqual("FLOCK".utf8) {
            kind = .flock
        } else if type.elementsEqual("OFDLCK".utf8) {
            kind = .ofd
        } else {
            return nil
        }
        // ADVISORY, and READ or WRITE.
        guard words.word() != nil, let access = words.word(), let pid: Int32 = words.number(), let file = words.word(),
            file.count <= 64, file.count(where: { $0 == UInt8(ascii: ":") }) == 2, let first: UInt64 = words.number(),
            let end = words.word()
        else { return nil }
        self.pid = pid
        self.file = file.text
        isShared = access.elementsEqual("READ".utf8)
        let last: UInt64? = end.elementsEqual("EOF".utf8) ? .max : parseNumber(end)
        guard let last, first <= last else { return nil }
        bytes = first...last
    }

    /// It is exclusive, and on the file as a whole: locks of databases on parts of a file begin and end with transactions.
    var isOnWholeFile: Bool { !isShared && bytes == 0...UInt64.max }

    /// A shared lock on SQLite's shared memory of a database in WAL mode, which keeps no program from reading or writing: bytes
    /// 123 to 127 of readers, and 128 of each connection (sqlite.org/walformat.html, "WAL-Index Locks"; unixShmLock).
    func isOfWALIndex(at path: String) -> Bool {
        isShared && kind != .flock && 120...128 ~= bytes.lowerBound && bytes.upperBound <= 128
            && path.utf8.suffix(Self.walIndex.utf8.count).elementsEqual(Self.walIndex.utf8)
    }
    static let walIndex = "-shm"

    /// A shared lock on SQLite's SHARED bytes of a database (SHARED_FIRST and SHARED_SIZE of sqlite.org/fileformat2.html, "The Lock-Byte
    /// Page"). In WAL mode each connection holds it as long as it is open.
    var isOfDatabase: Bool {
        isShared && kind != .flock && 0x4000_0002...0x4000_01ff ~= bytes.lowerBound && bytes.upperBound <= 0x4000_01ff
    }

    /// For people.
    var fileName: String {
        let parts = file.split(separator: ":")
        guard parts.count == 3, let major = UInt32(parts[0], radix: 16), let minor = UInt32(parts[1], radix: 16) else {
            return "inode \(file)"
        }
        return "inode \(parts[2]) on device \(major):\(minor)"
    }
}

/// Returns the locks that are held, from /proc/locks, or from a file of /proc/PID/fdinfo.
func lockLines(_ bytes: [UInt8], isDescriptor: Bool = false) -> [LockLine] {
    var lines: [LockLine] = []
    var scanner = ByteScanner(bytes)
    while let line = scanner.line() {
        let prefix = Array("lock:".utf8)
        if isDescriptor, !line.starts(with: prefix) { continue }
        if let lock = LockLine(parsing: isDescriptor ? line.dropFirst(prefix.count) : line) { lines.append(lock) }
    }
    return lines
}

extension Enclosure {
    /// Begins the search for the locks that processes of the app hold on files that others can open. The app is frozen.
    /// - Parameters:
    ///   - resources: what else is searched for.
    ///   - findsAccessories: whether an open accessory is searched for (L28).
    ///   - mayFindWaiters: whether /proc/locks may be read to find programs that wait for a shared lock.
    package func lockSearch(
        _ resources: SharedResources, findsAccessories: Bool, mayFindWaiters: @escaping () -> Bool
    ) throws(SystemError) -> LockSearch {
        let processes =
            switch kind {
            case .cgroup: try pids()
            // A search of /proc takes milliseconds, and the freeze has just made one.
            case .family(let family): try family.knownPids()
            }
        let search = LockSearch(proc, processes, resources, mayFindWaiters: mayFindWaiters)
        if findsAccessories { search.accessories = AccessoryCheck() }
        return search
    }
}

/// Searches for the locks of an app, in pieces of some 100 µs: each of its descriptors that is not a socket, a pipe or the like
/// shows the locks that were taken with it (proc_pid_fdinfo(5)).
///
/// /proc/locks is the exception: to open it the kernel keeps all programs from taking locks, and waits some 10 ms until none
/// is about to (`percpu_down_write` in fs/locks.c), so the loop would serve no other app for so long at each suspension. It is read
/// only for descriptors that cannot be examined, and for programs that wait for a shared lock, when the caller permits it.
///
/// Locks that keep no program waiting do not count: those of SQLite's WAL mode, and an exclusive lock on a whole file that no other
/// program has open (`isOwnFile`).
package final class LockSearch {
    /// How much of /proc/locks is read, in bytes: some 20,000 locks. The kernel returns no more than a page or so at once.
    private static let longestLocks = 1 << 20
    private static let readPiece = 16 * 1024
    /// The most descriptors that are examined.
    static let mostDescriptors = 16_384
    private static let descriptorPiece = 16

    private enum Step { case descriptors, mappings, locks, finished }

    private let proc: ProcFS
    private let group: [Int32]
    private let limit: Int
    private let mayFindWaiters: () -> Bool
    private let resources: SharedResources
    /// What it holds of them.
    private var heldResources: Set<String> = []
    private var step = Step.descriptors
    private var file: SharedDescriptor?
    private var bytes: [UInt8] = []

    private var unlisted: ArraySlice<Int32>
    private var names: ArraySlice<String> = []
    private var examined: Int32 = 0
    private var count = 0
    /// The locks, with the names of their files.
    private var found: [LockLine: String] = [:]
    /// Files that no other process can open: they have no name.
    private var unreachable: Set<String> = []
    /// Locks that keep no program waiting.
    private var harmless: Set<LockLine> = []
    /// The paths of databases whose connections use WAL mode.
    private var walDatabases: Set<String> = []
    /// A program waits for a lock of the app.
    private var isContended = false
    private let check = DescriptorCheck()
    /// With the mounts of the process that is examined, once a file needs them.
    private var foreign: (pid: Int32, check: DescriptorCheck)?
    /// All descriptors were examined.
    private var isComplete = true

    /// `nil`: they are not searched for.
    fileprivate var accessories: AccessoryCheck?
    /// A process of the app has an accessory open.
    package private(set) var hasAccessory = false

    /// What was found at the end; `nil`: no lock.
    package private(set) var held: HeldLocks?

    init(
        _ proc: ProcFS, _ processes: [Int32], _ resources: SharedResources = SharedResources(),
        limit: Int = LockSearch.mostDescriptors, mayFindWaiters: @escaping () -> Bool = { true }
    ) {
        self.proc = proc
        self.mayFindWaiters = mayFindWaiters
        self.limit = limit
        self.resources = resources
        group = processes.sorted()
        unlisted = group[...]
    }

    /// Does the next piece.
    /// - Returns: whether there is more.
    package func advance() throws(SystemError) -> Bool {
        switch step {
        case .descriptors:
            if try examineDescriptors() { return true }
            dropDatabases()
            step = isComplete && !(isShared && mayFindWaiters()) ? .finished : .locks
            if step == .finished { finish() }
            return step != .finished
        case .mappings:
            if !readMappings() { step = .descriptors }
            return true
        case .locks:
            if readLocks() { return true }
            step = .finished
            if !isComplete { addUnseen(lockLines(bytes)) }
            if isShared { findWaiters() }
            bytes = []
            finish()
        case .finished: break
        }
        return step != .finished
    }

    // MARK: Descriptors

    /// - Returns: whether there is more.
    private func examineDescriptors() throws(SystemError) -> Bool {
        guard !names.isEmpty else {
            guard let pid = unlisted.popFirst() else { return false }
            try list(pid)
            return true
        }
        for name in names.prefix(Self.descriptorPiece) {
            guard count < limit else {
                isComplete = false
                return false
            }
            count += 1
            try examine(name)
        }
        names = names.dropFirst(Self.descriptorPiece)
        return true
    }

    private func list(_ pid: Int32) throws(SystemError) {
        do {
            names = try folderEntries(at: "\(proc.root)/\(pid)/fd")[...]
            examined = pid
            if !resources.paths.isEmpty { step = .mappings }
        } catch {
            if error.meansGone { return }
            guard error.isRefusal else { throw error }
            isComplete = false
        }
    }

    /// The kernel returns whole lines, of up to a page or so at once; a file in a test is cut anywhere.
    /// - Returns: whether there is more. What cannot be read has no mappings.
    private func readMappings() -> Bool {
        guard let piece = nextPiece("\(examined)/maps") else {
            bytes = []
            return false
        }
        bytes += piece
        guard let end = bytes.lastIndex(of: UInt8(ascii: "\n")) else { return true }
        heldResources.formUnion(mappedPaths(bytes[...end]).filter { resources.containsHeld($0) })
        bytes.removeSubrange(...end)
        return true
    }

    private func examine(_ name: String) throws(SystemError) {
        let path = "\(proc.root)/\(examined)/fd/\(name)"
        guard let link = linkTarget(path, limit: 4097) else { return }
        if !hasAccessory, let accessories, accessories.isAccessory(path, link) { hasAccessory = true }
        // Sockets, pipes and the like have no path, and no locks that concern other apps.
        guard link.first == UInt8(ascii: "/") else { return }
        if resources.containsHeld(link.text) { heldResources.insert(link.text) }
        let bytes: [UInt8]
        do {
            guard let info = try proc.readRecord("fdinfo/\(name)", of: examined) else { return }
            bytes = info
        } catch {
            guard error.isRefusal || error.errno == EFBIG else { throw error }
            isComplete = false
            return
        }
        let locks = lockLines(bytes, isDescriptor: true)
        if locks.isEmpty { return }
        if resources.containsLocked(link.text) { heldResources.insert(link.text) }
        if clinux_known_links(path) == 0 {
            unreachable.formUnion(locks.map(\.file))
            return
        }
        for lock in locks where found[lock] == nil && !harmless.contains(lock) {
            if lock.isOfWALIndex(at: link.text) {
                harmless.insert(lock)
                walDatabases.insert(String(link.text.dropLast(LockLine.walIndex.count)))
            } else if lock.isOnWholeFile, isOwnFile(name, lock) {
                harmless.insert(lock)
            } else {
                found[lock] = link.text
            }
        }
    }

    private func dropDatabases() {
        for (lock, path) in found where lock.isOfDatabase && walDatabases.contains(path) {
            found[lock] = nil
            harmless.insert(lock)
        }
    }

    /// Whether no other program has the locked file open, as that of a PID file or of a database for one program. The kernel grants a
    /// lease for writing only then (F_SETLEASE, fcntl(2)); it is given back at once. False if that is not known.
    private func isOwnFile(_ name: String, _ lock: LockLine) -> Bool {
        guard let number = Int32(name), let process = try? Process.open(examined) else { return false }
        let raw = clinux_pidfd_getfd(process.descriptor.raw, number)
        guard raw >= 0 else { return false }
        let duplicate = Descriptor(adopting: raw)
        // Its close(2) could wait for a file system.
        let mayClose =
            check.reasonToRefuse(duplicate) == nil
            // In a mount namespace of its own the program has other mounts.
            || foreignCheck(examined).reasonToRefuse(duplicate) == nil
        guard mayClose else {
            DescriptorCloser().close(duplicate)
            return false
        }
        return lock.file.split(separator: ":").last.map(String.init) == String(clinux_inode(duplicate.raw))
            && clinux_is_only_open_file(duplicate.raw)
    }

    /// The mounts of a process are read once, however many locked files it has.
    private func foreignCheck(_ pid: Int32) -> DescriptorCheck {
        if let foreign, foreign.pid == pid { return foreign.check }
        let check = DescriptorCheck(mountsOf: pid, proc)
        foreign = (pid, check)
        return check
    }

    // MARK: /proc/locks

    /// - Returns: whether there is more. A file that cannot be read has no locks.
    private func readLocks() -> Bool {
        guard let piece = nextPiece("locks") else { return false }
        bytes += piece
        if bytes.count < Self.longestLocks { return true }
        file = nil
        return false
    }

    /// The next bytes of a file of /proc; `nil`: its end, or it cannot be read.
    private func nextPiece(_ name: String) -> [UInt8]? {
        do {
            let open = try file ?? SharedDescriptor(try openFile("\(proc.root)/\(name)", O_RDONLY | O_NOCTTY, in: nil))
            file = open
            let number = open.raw
            let piece = try readBuffer(Self.readPiece, "read", nil) { Glibc.read(number, $0, Self.readPiece) }
            if !piece.isEmpty { return piece }
        } catch {}
        file = nil
        return nil
    }

    /// What the daemon could not examine counts.
    private func addUnseen(_ all: [LockLine]) {
        let members = Set(group)
        for lock in all where members.contains(lock.pid) && found[lock] == nil && !unreachable.contains(lock.file) {
            if !harmless.contains(lock) { found[lock] = lock.fileName }
        }
    }

    /// Processes that wait follow the lock that they wait for, with its number: `7: -> FLOCK …`.
    private func findWaiters() {
        var scanner = ByteScanner(bytes)
        var number: ArraySlice<UInt8> = []
        while let line = scanner.line() {
            var words = ByteScanner(line)
            guard let first = words.word() else { continue }
            if let lock = LockLine(parsing: line) {
                number = found[lock] == nil ? [] : first
            } else if words.word()?.elementsEqual("->".utf8) ?? false, first.elementsEqual(number) {
                isContended = true
            }
        }
    }

    private var isShared: Bool { !found.isEmpty && found.keys.allSatisfy(\.isShared) }

    private func finish() {
        if let first = heldResources.min() {
            held = HeldLocks(count: heldResources.count, isResource: true, file: first)
            return
        }
        // An exclusive lock is the one to name.
        let first = found.min {
            ($0.key.isShared ? 1 : 0, $0.key.file, $0.key.pid) < ($1.key.isShared ? 1 : 0, $1.key.file, $1.key.pid)
        }
        guard let first else { return }
        held = HeldLocks(count: found.count, isShared: isShared && !isContended, file: first.value)
    }
}
