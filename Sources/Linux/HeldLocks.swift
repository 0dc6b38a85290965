import CLinux
import Glibc
package import Posix

/// File locks that processes of an app hold (L43).
package struct HeldLocks: Equatable, Sendable {
    package var count: Int
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
        // ADVISORY, and READ or WRITE: a lock that is shared keeps others from writing.
        guard words.word() != nil, words.word() != nil, let pid: Int32 = words.number(), let file = words.word(),
            file.count <= 64, file.count(where: { $0 == UInt8(ascii: ":") }) == 2
        else { return nil }
        self.pid = pid
        self.file = file.text
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
    /// Returns the locks that processes of the app hold on files that others can open; `nil`: none. Without any lock in the
    /// machine it takes some 10 µs.
    package func heldLocks() throws(SystemError) -> HeldLocks? {
        let all = proc.allLocks()
        if all.isEmpty { return nil }
        if case .family(let family) = kind {
            // To list the processes takes a search of /proc, and the freeze has just made one.
            var isCandidate = all.contains { proc.hasNoProcess($0) }
            for pid in Set(all.map(\.pid)) where !isCandidate && pid > 0 {
                if let stat = try proc.stat(of: pid) { isCandidate = family.isKnown(stat) }
            }
            if !isCandidate { return nil }
        }
        return try proc.heldLocks(all, by: try pids())
    }
}

extension ProcFS {
    /// How much of /proc/locks is read, in bytes: some 20,000 locks.
    private static let longestLocks = 1 << 20
    /// The most descriptors that are examined.
    private static let mostLockDescriptors = 4096

    /// Returns the locks of the machine; none if the file cannot be read.
    func allLocks() -> [LockLine] {
        let file: Descriptor
        do {
            file = try openFile("\(root)/locks", O_RDONLY | O_NOCTTY, in: nil)
        } catch {
            return []
        }
        var bytes: [UInt8] = []
        while bytes.count < Self.longestLocks {
            let number = file.raw
            // The kernel returns no more than a page or so.
            guard let piece = try? readBuffer(16 * 1024, "read", nil, { Glibc.read(number, $0, 16 * 1024) }),
                !piece.isEmpty
            else { break }
            bytes += piece
        }
        return lockLines(bytes)
    }

    /// Finds the locks of these processes among all locks.
    func heldLocks(_ all: [LockLine], by processes: [Int32]) throws(SystemError) -> HeldLocks? {
        let group = Set(processes)
        let own = all.filter { group.contains($0.pid) }
        let isUnclear = all.contains { !group.contains($0.pid) && hasNoProcess($0) }
        if own.isEmpty, !isUnclear { return nil }
        // Those of fcntl(2) are found by their process; the others only by a descriptor.
        let examined = own.contains { $0.kind != .posix } || isUnclear ? processes : Array(Set(own.map(\.pid)))
        var search = LockSearch(proc: self, limit: Self.mostLockDescriptors)
        for pid in examined.sorted() { try search.examine(pid) }
        var held = search.found
        // A lock of fcntl(2) is held by its process in any case, and what the daemon may not examine counts.
        for lock in own where lock.kind == .posix || !search.isComplete {
            if held[lock] == nil, !search.unreachable.contains(lock.file) { held[lock] = lock.fileName }
        }
        guard let first = held.min(by: { ($0.key.file, $0.key.pid) < ($1.key.file, $1.key.pid) }) else { return nil }
        return HeldLocks(count: held.count, file: first.value)
    }

    /// Whether a lock belongs to a descriptor only: it is of F_OFD_SETLK, or of flock(2) and its taker has ended.
    fileprivate func hasNoProcess(_ lock: LockLine) -> Bool {
        switch lock.kind {
        case .posix: false
        case .ofd: true
        case .flock: lock.pid < 1 || access("\(root)/\(lock.pid)", F_OK) != 0
        }
    }
}

/// Searches the descriptors of processes for locks.
private struct LockSearch {
    let proc: ProcFS
    /// How many descriptors are examined.
    let limit: Int
    /// The locks, with the names of their files.
    var found: [LockLine: String] = [:]
    /// Files that no other process can open: they have no name.
    var unreachable: Set<String> = []
    /// All descriptors were examined.
    var isComplete = true
    private var count = 0

    init(proc: ProcFS, limit: Int) {
        self.proc = proc
        self.limit = limit
    }

    mutating func examine(_ pid: Int32) throws(SystemError) {
        let names: [String]
        do {
            names = try folderEntries(at: "\(proc.root)/\(pid)/fdinfo")
        } catch {
            if error.meansGone { return }
            guard error.errno == EACCES || error.errno == EPERM else { throw error }
            isComplete = false
            return
        }
        for name in names {
            guard count < limit else {
                isComplete = false
                return
            }
            count += 1
            try examine(pid, name)
        }
    }

    private mutating func examine(_ pid: Int32, _ name: String) throws(SystemError) {
        let bytes: [UInt8]
        do {
            guard let info = try proc.read("fdinfo/\(name)", of: pid) else { return }
            bytes = info
        } catch {
            // Of some kinds it is longer than is read, such as that of a large epoll descriptor. Those have no locks.
            guard error.errno == EACCES || error.errno == EPERM || error.errno == EFBIG else { throw error }
            if error.errno != EFBIG { isComplete = false }
            return
        }
        let locks = lockLines(bytes, isDescriptor: true)
        if locks.isEmpty { return }
        let path = "\(proc.root)/\(pid)/fd/\(name)"
        if clinux_known_links(path) == 0 {
            unreachable.formUnion(locks.map(\.file))
            return
        }
        let target = linkTarget(path, limit: 4096)?.text
        for lock in locks where found[lock] == nil { found[lock] = target ?? lock.fileName }
    }
}
