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
    /// Begins the search for the locks that processes of the app hold on files that others can open.
    package func lockSearch() -> LockSearch {
        LockSearch(proc) { (all: [LockLine]) throws(SystemError) -> [Int32] in
            if case .family(let family) = self.kind {
                // To list the processes takes a search of /proc, and the freeze has just made one.
                let takers = Set(all.map(\.pid))
                var isCandidate = takers.count > LockSearch.mostTakers || all.contains { $0.kind == .ofd }
                for pid in takers where !isCandidate { isCandidate = pid < 1 || !self.proc.hasProcess(pid) }
                for pid in takers where !isCandidate && pid > 0 {
                    if let stat = try self.proc.stat(of: pid) { isCandidate = family.isKnown(stat) }
                }
                if !isCandidate { return [] }
            }
            return try self.pids()
        }
    }
}

extension ProcFS {
    /// Whether a lock belongs to a descriptor only: it is of F_OFD_SETLK, or of flock(2) and its taker has ended.
    fileprivate func hasNoProcess(_ lock: LockLine) -> Bool {
        switch lock.kind {
        case .posix: false
        case .ofd: true
        case .flock: lock.pid < 1 || !hasProcess(lock.pid)
        }
    }

    fileprivate func hasProcess(_ pid: Int32) -> Bool { access("\(root)/\(pid)", F_OK) == 0 }
}

/// Searches for the locks of an app, in pieces of some 100 µs. Without any lock in the machine there is one piece, of
/// some 10 µs.
package final class LockSearch {
    /// How much of /proc/locks is read, in bytes: some 20,000 locks. The kernel returns no more than a page or so at once.
    private static let longestLocks = 1 << 20
    private static let lockPiece = 16 * 1024
    /// The most descriptors that are examined.
    private static let mostDescriptors = 4096
    private static let descriptorPiece = 16
    /// Of how many locks a piece looks whether their taker has ended.
    private static let takerPiece = 64
    /// With locks of more processes the app's processes are listed in any case (process-group mode).
    fileprivate static let mostTakers = 64

    private enum Step { case locks, takers, descriptors, finished }

    private let proc: ProcFS
    /// Returns the app's processes; none: no lock can be theirs.
    private let processes: (_ all: [LockLine]) throws(SystemError) -> [Int32]
    private var step = Step.locks
    private var file: SharedDescriptor?
    private var bytes: [UInt8] = []

    private var group: [Int32] = []
    private var own: [LockLine] = []
    private var others: ArraySlice<LockLine> = []

    private var unlisted: ArraySlice<Int32> = []
    private var names: ArraySlice<String> = []
    private var examined: Int32 = 0
    private var count = 0
    /// The locks, with the names of their files.
    private var found: [LockLine: String] = [:]
    /// Files that no other process can open: they have no name.
    private var unreachable: Set<String> = []
    /// All descriptors were examined.
    private var isComplete = true

    /// What was found at the end; `nil`: no lock.
    package private(set) var held: HeldLocks?

    init(_ proc: ProcFS, _ processes: @escaping (_ all: [LockLine]) throws(SystemError) -> [Int32]) {
        self.proc = proc
        self.processes = processes
    }

    /// Does the next piece.
    /// - Returns: whether there is more.
    package func advance() throws(SystemError) -> Bool {
        switch step {
        case .locks: if !readLocks() { try begin(lockLines(bytes)) }
        case .takers: findOrphans()
        case .descriptors: if try !examineDescriptors() { finish() }
        case .finished: break
        }
        return step != .finished
    }

    // MARK: /proc/locks

    /// - Returns: whether there is more. A file that cannot be read has no locks.
    private func readLocks() -> Bool {
        do {
            let open: SharedDescriptor
            if let file {
                open = file
            } else {
                open = SharedDescriptor(try openFile("\(proc.root)/locks", O_RDONLY | O_NOCTTY, in: nil))
                file = open
            }
            let number = open.raw
            let piece = try readBuffer(Self.lockPiece, "read", nil) { Glibc.read(number, $0, Self.lockPiece) }
            bytes += piece
            if !piece.isEmpty, bytes.count < Self.longestLocks { return true }
        } catch {}
        file = nil
        return false
    }

    private func begin(_ all: [LockLine]) throws(SystemError) {
        bytes = []
        step = .finished
        if all.isEmpty { return }
        group = try processes(all)
        if group.isEmpty { return }
        let members = Set(group)
        own = all.filter { members.contains($0.pid) }
        others = all.filter { !members.contains($0.pid) && $0.kind != .posix }[...]
        step = .takers
    }

    /// Looks for locks without a process: any process that has their descriptor may hold them.
    private func findOrphans() {
        if others.prefix(Self.takerPiece).contains(where: { proc.hasNoProcess($0) }) {
            search(group)
        } else if others.count > Self.takerPiece {
            others = others.dropFirst(Self.takerPiece)
        } else if own.isEmpty {
            step = .finished
        } else {
            // Those of fcntl(2) are found by their process; the others only by a descriptor.
            search(own.contains { $0.kind != .posix } ? group : Array(Set(own.map(\.pid))))
        }
    }

    // MARK: Descriptors

    private func search(_ processes: [Int32]) {
        unlisted = processes.sorted()[...]
        step = .descriptors
    }

    /// - Returns: whether there is more.
    private func examineDescriptors() throws(SystemError) -> Bool {
        guard !names.isEmpty else {
            guard let pid = unlisted.popFirst() else { return false }
            try list(pid)
            return true
        }
        for name in names.prefix(Self.descriptorPiece) {
            guard count < Self.mostDescriptors else {
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
            names = try folderEntries(at: "\(proc.root)/\(pid)/fdinfo")[...]
            examined = pid
        } catch {
            if error.meansGone { return }
            guard error.errno == EACCES || error.errno == EPERM else { throw error }
            isComplete = false
        }
    }

    private func examine(_ name: String) throws(SystemError) {
        let bytes: [UInt8]
        do {
            guard let info = try proc.read("fdinfo/\(name)", of: examined) else { return }
            bytes = info
        } catch {
            // Of some kinds it is longer than is read, such as that of a large epoll descriptor. Those have no locks.
            guard error.errno == EACCES || error.errno == EPERM || error.errno == EFBIG else { throw error }
            if error.errno != EFBIG { isComplete = false }
            return
        }
        let locks = lockLines(bytes, isDescriptor: true)
        if locks.isEmpty { return }
        let path = "\(proc.root)/\(examined)/fd/\(name)"
        if clinux_known_links(path) == 0 {
            unreachable.formUnion(locks.map(\.file))
            return
        }
        let target = linkTarget(path, limit: 4096)?.text
        for lock in locks where found[lock] == nil { found[lock] = target ?? lock.fileName }
    }

    private func finish() {
        step = .finished
        var all = found
        // A lock of fcntl(2) is held by its process in any case, and what the daemon may not examine counts.
        for lock in own where lock.kind == .posix || !isComplete {
            if all[lock] == nil, !unreachable.contains(lock.file) { all[lock] = lock.fileName }
        }
        guard let first = all.min(by: { ($0.key.file, $0.key.pid) < ($1.key.file, $1.key.pid) }) else { return }
        held = HeldLocks(count: all.count, file: first.value)
    }
}
