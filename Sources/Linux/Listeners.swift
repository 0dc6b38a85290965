import Glibc
package import Posix

/// What was found of a run's sockets.
package struct ListenerSearch: Equatable, Sendable {
    /// A process listens on a stream socket: TCP, or a Unix socket.
    package var listens = false
    /// If not: the processes whose sockets could not be examined (EACCES, EPERM).
    package var hidden: [Int32] = []

    package init() {}
}

extension Enclosure {
    /// How many processes are examined.
    private static let mostListeners = 64

    /// Searches for a process of the run that listens.
    package func searchListeners() throws(SystemError) -> ListenerSearch {
        var search = ListenerSearch()
        if listensInGroup() {
            search.listens = true
            return search
        }
        for pid in try pids().prefix(Self.mostListeners) {
            guard let listens = try proc.listens(pid) else {
                search.hidden.append(pid)
                continue
            }
            if listens {
                search.listens = true
                search.hidden = []
                return search
            }
        }
        return search
    }
}

extension Enclosure {
    /// Whether a TCP socket of the daemon's network namespace listens that was created in the run's cgroup. On a machine with a
    /// thousand servers this takes a hundredth of the time that the tables of /proc take. If not, they are read: the socket may be
    /// of another kind, of another namespace, or of a process that created it before it came into the group.
    private func listensInGroup() -> Bool {
        // Where the kernel carries out one request at a time, another process's request could delay this one.
        guard !DiagnosticSocket.isSerialized, let cgroupID else { return false }
        return DiagnosticRequest.families.contains { (try? listensInGroup(cgroupID, family: $0)) ?? false }
    }

    /// - Throws: if the kernel has no such filter.
    private func listensInGroup(_ cgroup: UInt64, family: UInt8) throws(SystemError) -> Bool {
        let socket = try DiagnosticSocket()
        try socket.send(
            DiagnosticRequest.all(
                family: family, protocol: DiagnosticRequest.tcp, cgroup: cgroup, onlyListening: true))
        while true {
            let messages = try socket.receive()
            if messages.isEmpty { return false }
            for message in messages {
                switch message {
                case .socket(let bytes):
                    // A socket that is being closed has no inode.
                    if let found = InternetSocket(parsing: bytes), found.isListening, found.inode != 0 { return true }
                case .done, .failed: return false
                }
            }
        }
    }
}

extension ProcFS {
    /// How many descriptors of a process are examined.
    private static let mostDescriptors = 1024
    /// How many threads of a process are examined, some µs each.
    private static let mostThreads = 1024
    /// How much of a table is read, in bytes. TCP's tables begin with the sockets that listen.
    private static let longestTable = 1 << 20

    /// Whether a process has a socket that listens, in its network namespace. Its descriptors are not opened: a socket that
    /// the process closes meanwhile would stay open.
    /// - Returns: `nil` without the permission to examine it.
    func listens(_ pid: Int32) throws(SystemError) -> Bool? {
        guard let listens = try listens(in: "\(pid)") else { return nil }
        if listens { return true }
        // Threads with a descriptor table of their own, and all others if the first thread has ended.
        guard let process = try Process.open(pid), let search = ThreadSearch(of: process, self) else { return false }
        var tables = 0
        for _ in 0..<Self.mostThreads / ThreadSearch.threadsInStep {
            for thread in search.next() where tables < DescriptorWatch.maximumThreadTables {
                tables += 1
                if try self.listens(in: "\(pid)/task/\(thread)") ?? false { return true }
            }
            if search.isOver { break }
        }
        return false
    }

    /// - Parameter task: the folder of a process or a thread below /proc.
    private func listens(in task: String) throws(SystemError) -> Bool? {
        guard let sockets = try sockets(of: task) else { return nil }
        if sockets.isEmpty { return false }
        for table in ["tcp", "tcp6", "unix"] {
            guard let bytes = try tableStart("net/\(table)", of: task) else { continue }
            if !sockets.isDisjoint(with: listeningSockets(bytes, isUnix: table == "unix")) { return true }
        }
        return false
    }

    /// Returns the inodes of a task's sockets; `nil` without permission.
    private func sockets(of task: String) throws(SystemError) -> Set<UInt64>? {
        let names: [String]
        do {
            names = try folderEntries(at: "\(root)/\(task)/fd")
        } catch {
            if error.meansGone { return [] }
            if error.isRefusal { return nil }
            throw error
        }
        var sockets: Set<UInt64> = []
        var target = [CChar](repeating: 0, count: 64)
        for name in names.prefix(Self.mostDescriptors) {
            let length = readlink("\(root)/\(task)/fd/\(name)", &target, target.count)
            // With CAP_DAC_OVERRIDE alone the names can be listed, and nothing more.
            if length < 0, errno == EACCES || errno == EPERM { return nil }
            guard length > 0 else { continue }
            let text = String(decoding: target.prefix(length).map { UInt8(bitPattern: $0) }, as: UTF8.self)
            guard text.hasPrefix("socket:["), let inode = UInt64(text.dropFirst(8).dropLast()) else { continue }
            sockets.insert(inode)
        }
        return sockets
    }

    /// Reads the start of a table, which the kernel returns in pieces of a page.
    private func tableStart(_ name: String, of task: String) throws(SystemError) -> [UInt8]? {
        let file: Descriptor
        do {
            file = try openFile("\(root)/\(task)/\(name)", O_RDONLY | O_NOCTTY, in: nil)
        } catch {
            if error.meansGone || error.errno == EACCES { return nil }
            throw error
        }
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 16 * 1024)
        while bytes.count < Self.longestTable {
            let number = file.raw
            let count = piece.withUnsafeMutableBytes { buffer in
                retryInterrupted { Glibc.read(number, buffer.baseAddress, buffer.count) }
            }
            if count <= 0 { break }
            bytes += piece.prefix(count)
        }
        return bytes
    }
}

/// Returns the inodes of the sockets that listen, from /proc/PID/net/tcp, tcp6 (proc_pid_net(5)) or unix.
func listeningSockets(_ bytes: [UInt8], isUnix: Bool) -> [UInt64] {
    var inodes: [UInt64] = []
    var lines = ByteScanner(bytes)
    _ = lines.line()  // the names of the columns
    while let line = lines.line() {
        var words = ByteScanner(line)
        var fields: [ArraySlice<UInt8>] = []
        while fields.count < 10, let word = words.word() { fields.append(word) }
        let (position, isListening): (Int, Bool)
        if isUnix {
            // __SO_ACCEPTCON
            let flags: UInt32? = fields.count > 3 ? parseNumber(fields[3], radix: 16) : nil
            (position, isListening) = (6, (flags ?? 0) & 0x1_0000 != 0)
        } else {
            // TCP_LISTEN
            (position, isListening) = (9, fields.count > 3 && fields[3].elementsEqual("0A".utf8))
            if fields.count > 3, !isListening { break }
        }
        if isListening, fields.count > position, let inode: UInt64 = parseNumber(fields[position]) {
            inodes.append(inode)
        }
    }
    return inodes
}
