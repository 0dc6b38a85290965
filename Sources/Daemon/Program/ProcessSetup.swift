import Glibc
import Linux
import Posix

/// Prepares this process: file modes, SIGPIPE and SIGIO, the number of open files, and memory that stays resident.
/// - Throws: a `Problem` that says what to do.
func prepareProcess(_ memory: OwnMemory) throws {
    umask(0o022)
    signal(SIGPIPE, SIG_IGN)
    // Another program opens a file of an app while `LockSearch` has a lease for it.
    signal(SIGIO, SIG_IGN)
    shareStandardError()
    raiseDescriptorLimit()
    let limit = maximumDescriptors()
    guard limit >= leastDescriptors else {
        throw Problem(
            "the limit of open files (RLIMIT_NOFILE) is \(limit); expected at least \(leastDescriptors): raise it with "
                + "LimitNOFILE= or ulimit -n")
    }
    memory.boundHeap()
    lock(memory)
}

/// Apps open the file of the daemon's standard error again, and write at its end. Without O_APPEND the daemon would overwrite that.
private func shareStandardError() {
    let flags = fcntl(2, F_GETFL)
    var about = stat()
    guard flags >= 0, fstat(2, &about) == 0, about.st_mode & S_IFMT == S_IFREG else { return }
    _ = fcntl(2, F_SETFL, flags | O_APPEND)
}

/// Keeps what the daemon uses of its code and data in memory. While the machine thrashes, to read a page of its own code again takes
/// the time in which it should kill an app. lmkd and earlyoom(1) lock their memory in the same way: page by page as it is used
/// (MCL_ONFAULT), so that what is never used takes no memory. The apps are not affected: the lock ends with execve(2).
///
/// Without CAP_IPC_LOCK nothing is locked: each allocation above RLIMIT_MEMLOCK would fail (mlockall(2)).
private func lock(_ memory: OwnMemory) {
    let isAllowed = (try? ProcFS().status(of: getpid()))?.hasCapability(14) ?? false  // CAP_IPC_LOCK
    if isAllowed { memory.lock() }
}

/// A variable of this process's environment.
func ownVariable(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }

/// The environment of this process, as `NAME=value`.
func ownEnvironment() -> [String] {
    var entries: [String] = []
    var next = environ
    while let entry = next.pointee {
        entries.append(String(cString: entry))
        next += 1
    }
    return entries
}

/// The fewest files that the daemon must be allowed to open. Half of them are for what is watched and held for apps
/// (`DescriptorBudget`). Of the other half about 30 are open without an app, a launch needs 12, and each client 5: then one app can
/// be launched while four clients are connected.
let leastDescriptors: UInt64 = 128

/// The hard limit of open files (RLIMIT_NOFILE).
func maximumDescriptors() -> UInt64 {
    var limit = rlimit()
    return getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 ? UInt64(limit.rlim_max) : 1024
}

/// Raises the soft limit of open files to the hard limit: 1,000 apps need some thousand. Apps have a limit of their own
/// (`LimitNOFILE=`).
private func raiseDescriptorLimit() {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
    limit.rlim_cur = limit.rlim_max
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
}
