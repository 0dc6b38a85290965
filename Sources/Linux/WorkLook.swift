import CLinux
import Glibc
import Idleness
package import Posix

/// One look at what the processes of an app have to do, in pieces of some 100 µs. It needs no help of the app: it reads its
/// descriptors, sock_diag(7), and in which system calls its threads wait. Of a frozen app it examines the threads alone.
package final class WorkLook {
    /// The most processes, descriptors and threads that are examined. An app with more processes or threads stays awake; the look at one with
    /// more descriptors is incomplete.
    package static let mostProcesses = 1024
    package static let mostDescriptors = 16_384
    package static let mostThreads = 4096
    /// How many threads a piece examines, and how many sockets it asks for.
    private static let threadPiece = 16
    private static let lookUpPiece = 8

    private enum Step { case descriptors, sockets, threads, finished }

    package private(set) var findings: WorkFindings
    private let isFrozen: Bool
    private let proc: ProcFS
    private let known: [UInt64: WorkBaseline.Known]
    private var step = Step.descriptors

    private var unlisted: ArraySlice<Int32>
    private var folder: SharedDescriptor?
    private var listedProcess: Int32 = 0
    private var descriptors = 0
    /// The ends of pipes that the app has: a pipe with both ends in the app carries nothing from outside.
    private var readEnds: Set<UInt64> = []
    private var writeEnds: Set<UInt64> = []
    private let reader: ThreadReader
    private var kinds: [UInt64: SocketKind] = [:]
    private let ownNamespace: String?
    /// A process of each other network namespace.
    private var namespaces: [String: Int32] = [:]
    private let search: SocketSearch

    private var unexamined: ArraySlice<Int32>
    private var threads: ArraySlice<Int32> = []
    private var threadsOf: Int32 = 0
    private var threadCount = 0

    /// - Parameters:
    ///   - now: the time (CLOCK_MONOTONIC).
    ///   - cgroup: the ID of the app's cgroup, if it has one.
    ///   - isFrozen: only its threads are examined.
    ///   - mayAsk: false: a helper thread still waits for an answer, so the look has no `question`. With an established
    ///     connection it is incomplete.
    package init(
        _ members: Enclosure.Members, at now: Duration, cgroup: UInt64? = nil, baseline: WorkBaseline,
        tables: SocketTables, clocks: SchedulerClocks, isFrozen: Bool = false, mayAsk: Bool = true,
        proc: ProcFS = ProcFS()
    ) {
        self.isFrozen = isFrozen
        reader = ThreadReader(proc: proc, clocks: clocks, now: now, history: baseline.waits)
        let processes = members.processes.prefix(Self.mostProcesses)
        var findings = WorkFindings(began: now, processes: members.processes, cpu: members.cpu)
        if processes.count < members.processes.count {
            findings.isIncomplete = true
            let next = members.processes[processes.count]
            findings.threads.append(ThreadSighting(thread: Int(next), activity: .unreadable))
        }
        self.findings = findings
        unlisted = processes
        unexamined = processes
        known = baseline.sockets
        self.proc = proc
        search = SocketSearch(
            baseline: baseline, cgroup: cgroup, tables: tables, mayAsk: mayAsk, proc: proc)
        ownNamespace = proc.networkNamespace(of: "self")
    }

    /// Does the next piece.
    /// - Parameter now: the time (CLOCK_MONOTONIC).
    /// - Returns: whether there is more. If not, the look is finished or has a `question`.
    package func advance(at now: Duration) throws(SystemError) -> Bool {
        switch step {
        case .descriptors:
            if try !listDescriptors() {
                findings.outsidePipes = readEnds.symmetricDifference(writeEnds)
                if isFrozen {
                    step = .threads
                    break
                }
                search.begin(kinds, namespaces: namespaces, process: findings.processes.min(), at: now)
                step = .sockets
            }
        case .sockets:
            if try !search.advance(at: now, limit: Self.lookUpPiece) {
                findings.sockets = search.found
                findings.ports = search.ports
                findings.isIncomplete = findings.isIncomplete || search.isIncomplete
                step = .threads
            }
        case .threads: if try !lookAtThreads() { step = .finished }
        case .finished: break
        }
        return step != .finished && question == nil
    }

    // MARK: Questions

    /// What a helper thread is to ask before the look can continue: it may wait for as long as another process likes.
    package var question: SocketQuestion? { search.question }

    /// Continues with the answers.
    /// - Parameter bytes: their size.
    package func answered(_ bytes: UInt64) { search.answered(bytes) }

    /// Continues without answers. The look will be incomplete.
    package func giveUp() { search.giveUp() }

    // MARK: Descriptors

    private func listDescriptors() throws(SystemError) -> Bool {
        guard let folder else {
            guard let pid = unlisted.popFirst() else { return false }
            if let namespace = proc.networkNamespace(of: String(pid)), let ownNamespace, namespace != ownNamespace {
                namespaces[namespace] = pid
            }
            listedProcess = pid
            if isFrozen { try permitted { () throws(SystemError) in try self.findSignalTimers(of: pid) } }
            try permitted { () throws(SystemError) in
                self.folder = SharedDescriptor(
                    try Descriptor.open("\(self.proc.root)/\(pid)/fd", O_RDONLY | O_DIRECTORY))
            }
            try permitted { () throws(SystemError) in try self.countTransfers(of: pid) }
            return true
        }
        let listed = try nextDescriptors(folder.raw, process: 0, table: 0)
        for item in listed { try inspect(item) }
        descriptors += listed.count
        if listed.isEmpty { self.folder = nil }
        if descriptors > Self.mostDescriptors {
            findings.isIncomplete = true
            self.folder = nil
            unlisted = []
        }
        return true
    }

    /// Does nothing for a process that has ended. One that may not be examined makes the look incomplete.
    private func permitted(_ body: () throws(SystemError) -> Void) throws(SystemError) {
        do {
            try body()
        } catch {
            if error.isRefusal {
                findings.isIncomplete = true
            } else if !error.meansGone {
                throw error
            }
        }
    }

    private func inspect(_ item: ListedDescriptor) throws(SystemError) {
        switch item.kind {
        case .socket:
            // To ask for its attributes could reach another file that has got its number meanwhile.
            if kinds[item.inode] == nil { kinds[item.inode] = known[item.inode]?.kind ?? .unknown }
        case .pipe:
            // A FIFO is there for other programs.
            if item.canRead || item.device != 0 { readEnds.insert(item.inode) }
            if item.canWrite, item.device == 0 { writeEnds.insert(item.inode) }
        case .timerfd: try inspectTimer(item.number)
        case .notPermitted: findings.isIncomplete = true
        case .ignored, .terminal, .eventfd, .inotify, .pidfd, .epoll, .signalfd, .ioUring, .device, .maybeQueue,
            .unknown:
            break
        }
    }

    /// A timer descriptor waits as a thread does that sleeps until then (proc_pid_fdinfo(5)).
    private func inspectTimer(_ number: Int32) throws(SystemError) {
        guard let bytes = try proc.readRecord("fdinfo/\(number)", of: listedProcess),
            let timer = TimerDescriptor(parsing: bytes),
            let rest = timer.rest
        else { return }
        var wait = Wait(call: Wait.timerDescriptor, arguments: [UInt64(listedProcess), UInt64(number)])
        wait.length = timer.interval ?? rest
        wait.due = findings.began + rest
        // Threads have positive numbers.
        let id = -(Int(listedProcess) << 24 | Int(number))
        findings.threads.append(ThreadSighting(thread: id, activity: .waiting(wait)))
        findings.processOf[id] = listedProcess
    }

    private func findSignalTimers(of pid: Int32) throws(SystemError) {
        if let timer = try SignalTimer(of: pid, proc) { findings.signalTimers.append(timer) }
    }

    private func countTransfers(of pid: Int32) throws(SystemError) {
        guard let bytes = try proc.readRecord("io", of: pid) else { return }
        findings.transfers.calls &+= (flatKeyed(bytes, "syscr:") ?? 0) &+ (flatKeyed(bytes, "syscw:") ?? 0)
        findings.transfers.written[pid] = flatKeyed(bytes, "wchar:") ?? 0
        findings.transfers.received &+= flatKeyed(bytes, "rchar:") ?? 0
    }

    // MARK: Threads

    private func addUnreadable(_ thread: Int32, of process: Int32) {
        findings.threads.append(ThreadSighting(thread: Int(thread), activity: .unreadable))
        findings.processOf[Int(thread)] = process
    }

    private func lookAtThreads() throws(SystemError) -> Bool {
        guard !threads.isEmpty else {
            guard let pid = unexamined.popFirst() else { return false }
            var all: [Int32] = []
            try permitted { () throws(SystemError) in all = try self.proc.threads(of: pid) }
            all.sort()
            threads = all.prefix(Self.mostThreads - threadCount)
            threadsOf = pid
            // What the others do is not known.
            if threads.count < all.count { addUnreadable(all[threads.count], of: pid) }
            threadCount += threads.count
            return true
        }
        for thread in threads.prefix(Self.threadPiece) {
            guard case .found(let sighting) = try reader.look(atThread: thread, of: threadsOf) else { continue }
            findings.threads.append(sighting)
            findings.processOf[sighting.thread] = threadsOf
        }
        threads = threads.dropFirst(Self.threadPiece)
        return true
    }
}

extension Enclosure {
    /// The processes of an app, and their processor time since the launch.
    package struct Members {
        package var processes: [Int32]
        package var cpu: Duration

        package init(processes: [Int32], cpu: Duration) {
            self.processes = processes
            self.cpu = cpu
        }
    }

    /// - Parameter scan: a complete search of /proc (process-group mode); `nil`: a new one is made.
    package func measuredMembers(in scan: ProcessScan?) throws(SystemError) -> Members {
        switch kind {
        case .cgroup(let leaf): return Members(processes: try leaf.pids(), cpu: try cpuTime())
        case .family(let family):
            let members = if let scan { family.members(in: scan) } else { try family.members() }
            return Members(processes: members.map(\.pid), cpu: family.cpuTime(of: members))
        }
    }

    /// The ID of the cgroup, by which the kernel filters sockets: the inode of its folder. Groups below it have others.
    package var cgroupID: UInt64? {
        guard let descriptor = cgroupDescriptor else { return nil }
        var about = Glibc.stat()
        return fstat(descriptor.raw, &about) == 0 ? UInt64(about.st_ino) : nil
    }
}

extension ProcFS {
    /// Returns the name of the network namespace of a process, such as `net:[4026531840]`.
    func networkNamespace(of process: String) -> String? {
        linkTarget("\(root)/\(process)/ns/net").map { String(decoding: $0, as: UTF8.self) }
    }
}

/// Returns what a symbolic link of /proc names, if it is shorter than `limit` bytes.
func linkTarget(_ path: String, limit: Int = 64) -> ArraySlice<UInt8>? {
    var target = [CChar](repeating: 0, count: limit)
    let length = readlink(path, &target, limit)
    return (1..<limit).contains(length) ? target[..<length].map { UInt8(bitPattern: $0) }[...] : nil
}
