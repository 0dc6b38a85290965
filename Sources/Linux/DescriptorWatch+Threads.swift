import CLinux
import Glibc
import Posix

/// A descriptor table of an app: that of a process, or that of threads that have left it (unshare(2), CLONE_FILES).
struct DescriptorTable {
    /// The position of the process in the list of processes.
    let process: Int
    /// The thread that shows it; the first thread of the process, unless it has left it.
    let thread: Int32
    /// A pidfd of the thread; `nil`: that of the process shows the table.
    var own: SharedDescriptor?

    /// As `status` shows it.
    var what: String { own == nil ? "process" : "thread" }
}

/// Looks for threads of a process that have a descriptor table of their own, some threads at a time.
final class ThreadSearch {
    /// How many threads one step looks at: some µs each.
    static let threadsInStep = 32

    private let process: Int32
    private let folder: FolderReader
    /// The threads that show the tables found so far, with that of the process.
    private var shown: [Int32]

    /// - Returns: `nil` if the process has one thread, or has ended.
    init?(of process: Process, _ proc: ProcFS) {
        let path = "\(proc.root)/\(process.pid)/task"
        guard clinux_count_threads(path) > 1, let folder = try? FolderReader(path) else { return nil }
        self.process = process.pid
        self.folder = folder
        shown = [process.pid]
    }

    /// There are no more threads.
    private(set) var isOver = false

    /// Returns threads whose tables were not found before.
    func next() -> [Int32] {
        var found: [Int32] = []
        // A folder that cannot be read is that of a process that has ended.
        let names = (try? folder.next(Self.threadsInStep)) ?? []
        isOver = names.isEmpty || folder.isAtEnd
        for name in names {
            guard let thread = Int32(name), thread != process, !isShown(thread) else { continue }
            found.append(thread)
            // Each further thread is compared with all of them.
            if shown.count <= DescriptorWatch.maximumThreadTables { shown.append(thread) }
        }
        return found
    }

    /// What cannot be compared has ended, or may not be examined.
    private func isShown(_ thread: Int32) -> Bool {
        // Most threads share the table of the first one.
        shown.contains { clinux_share_descriptors(process, $0, thread) != 0 }
    }
}

extension DescriptorWatch {
    /// The most tables of threads of one app, and the most threads that are looked at.
    static let maximumThreadTables = 16
    static let maximumThreads = 8192

    /// What is found in a step of the search for threads.
    /// - Returns: whether there are more threads.
    func searchThreads(_ search: ThreadSearch, of process: Int) -> Bool {
        let found = search.next()
        lookedAtThreads += ThreadSearch.threadsInStep
        for thread in found { addTable(of: thread, process) }
        if search.isOver { return false }
        guard lookedAtThreads < Self.maximumThreads else {
            count("thread", .tooMany)
            return false
        }
        return true
    }

    /// Whether the first thread has ended and others run: /proc/PID/fd and a pidfd of the process show only what the first
    /// thread has.
    func hidesDescriptors(_ process: Process) -> Bool {
        guard let stat = (try? proc.stat(of: process.pid)) ?? nil else { return false }
        return stat.isZombie && !stat.isDead && !process.isOver
    }

    /// The folder in /proc that shows the table of a descriptor.
    func folder(of item: ListedDescriptor) -> String { folder(of: tables[item.table]) }

    func folder(of table: DescriptorTable) -> String {
        let process = "\(proc.root)/\(processes[table.process].pid)"
        return table.own == nil ? process : process + "/task/\(table.thread)"
    }

    /// pidfd_getfd(2): a duplicate, or -errno.
    func duplicate(_ item: ListedDescriptor) -> Int32 {
        let owner = tables[item.table].own ?? processes[item.process].descriptor
        return clinux_pidfd_getfd(owner.raw, item.number)
    }

    private func addTable(of thread: Int32, _ process: Int) {
        guard threadTables < Self.maximumThreadTables, budget.available > 0 else { return count("thread", .tooMany) }
        let number = clinux_pidfd_open_thread(thread)
        guard number >= 0 else {
            let error = SystemError(call: "pidfd_open", errno: -number)
            // EINVAL: before Linux 6.9. While the others can be examined, the app is not left where nothing reaches it.
            if !error.meansGone { count("thread", error.errno == EINVAL ? .failed : error.problem) }
            return
        }
        let descriptor = SharedDescriptor(Descriptor(adopting: number))
        // Its number may belong to another thread by now. While the process lives, all of it is frozen.
        if processes[process].isOver { return }
        budget.take()
        threadTables += 1
        tables.append(DescriptorTable(process: process, thread: thread, own: descriptor))
    }

    /// The pidfds of threads are needed only while the watch is made.
    func closeTables() {
        tables = []
        budget.giveBack(threadTables)
        threadTables = 0
    }
}
