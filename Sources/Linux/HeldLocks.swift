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
    /// Begins the search for the locks that processes of the app hold on files that others can open. The app is frozen.
    package func lockSearch() throws(SystemError) -> LockSearch {
        switch kind {
        case .cgroup: LockSearch(proc, try pids())
        // A search of /proc takes milliseconds, and the freeze has just made one.
        case .family(let family): LockSearch(proc, try family.knownPids())
        }
    }
}

/// Searches for the locks of an app, in pieces of some 100 µs: each of its descriptors that is not a socket, a pipe or the like
/// shows the locks that were taken with it (proc_pid_fdinfo(5)).
///
/// /proc/locks is the exception: to open it the kernel keeps all programs from taking locks, and waits some 10 ms until none
/// is about to (`percpu_down_write` in fs/locks.c), so the loop would serve no other app for so long at each suspension.
package final class LockSearch {
    /// How much of /proc/locks is read, in bytes: some 20,000 locks. The kernel returns no more than a page or so at once.
    private static let longestLocks = 1 << 20
    private static let lockPiece = 16 * 1024
    /// The most descriptors that are examined.
    static let mostDescriptors = 16_384
    private static let descriptorPiece = 16

    private enum Step { case descriptors, locks, finished }

    private let proc: ProcFS
    private let group: [Int32]
    private let limit: Int
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
    /// All descriptors were examined.
    private var isComplete = true

    /// What was found at the end; `nil`: no lock.
    package private(set) var held: HeldLocks?

    init(_ proc: ProcFS, _ processes: [Int32], limit: Int = LockSearch.mostDescriptors) {
        self.proc = proc
        self.limit = limit
        group = processes.sorted()
        unlisted = group[...]
    }

    /// Does the next piece.
    /// - Returns: whether there is more.
    package func advance() throws(SystemError) -> Bool {
        switch step {
        case .descriptors:
            if try examineDescriptors() { return true }
            step = isComplete ? .finished : .locks
            if isComplete { finish() }
        case .locks:
            if readLocks() { return true }
            step = .finished
            addUnseen(lockLines(bytes))
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
        } catch {
            if error.meansGone { return }
            guard error.errno == EACCES || error.errno == EPERM else { throw error }
            isComplete = false
        }
    }

    private func examine(_ name: String) throws(SystemError) {
        let path = "\(proc.root)/\(examined)/fd/\(name)"
        // Sockets, pipes and the like have no path, and no locks that concern other apps.
        guard let link = linkTarget(path, limit: 4097), link.first == UInt8(ascii: "/") else { return }
        let bytes: [UInt8]
        do {
            guard let info = try proc.read("fdinfo/\(name)", of: examined) else { return }
            bytes = info
        } catch {
            guard error.errno == EACCES || error.errno == EPERM || error.errno == EFBIG else { throw error }
            isComplete = false
            return
        }
        let locks = lockLines(bytes, isDescriptor: true)
        if locks.isEmpty { return }
        if clinux_known_links(path) == 0 {
            unreachable.formUnion(locks.map(\.file))
            return
        }
        for lock in locks where found[lock] == nil { found[lock] = link.text }
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

    /// What the daemon could not examine counts.
    private func addUnseen(_ all: [LockLine]) {
        bytes = []
        let members = Set(group)
        for lock in all where members.contains(lock.pid) && found[lock] == nil && !unreachable.contains(lock.file) {
            found[lock] = lock.fileName
        }
    }

    private func finish() {
        guard let first = found.min(by: { ($0.key.file, $0.key.pid) < ($1.key.file, $1.key.pid) }) else { return }
        held = HeldLocks(count: found.count, file: first.value)
    }
}
