import Glibc
import Posix

/// Prepares this process: file modes, SIGPIPE, and the number of open files.
func prepareProcess() {
    umask(0o022)
    signal(SIGPIPE, SIG_IGN)
    raiseDescriptorLimit()
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
