/// The user a process runs as.
package struct Credentials: Equatable {
    package var uid: UInt32
    package var gid: UInt32
    /// All supplementary groups; none are kept from the daemon.
    package var groups: [UInt32]

    package init(uid: UInt32, gid: UInt32, groups: [UInt32]) {
        self.uid = uid
        self.gid = gid
        self.groups = groups
    }
}

/// One of setrlimit(2)'s limits, in its own unit; `UInt64.max` is RLIM_INFINITY.
package struct ResourceLimit: Equatable {
    package var resource: Int32
    package var soft: UInt64
    package var hard: UInt64

    package init(resource: Int32, soft: UInt64, hard: UInt64) {
        self.resource = resource
        self.soft = soft
        self.hard = hard
    }
}

/// A descriptor handed over as sd_listen_fds(3) wants it; it stays the caller's own.
package struct PassedDescriptor: Equatable {
    package var fd: Int32
    /// At most 255 printable characters without a colon (LISTEN_FDNAMES joins the names with colons).
    package var name: String

    package init(fd: Int32, name: String) {
        self.fd = fd
        self.name = name
    }
}

/// All that a new process is given. Everything else it would inherit is taken away: handlers, ignored and blocked
/// signals, the session, descriptors. It has no parent-death signal: apps outlive the daemon.
package struct SpawnRequest {
    /// An absolute path; `PATH` is not searched.
    package var executable: String
    /// Without argv[0].
    package var arguments: [String]
    /// argv[0]; nil: `executable`.
    package var argumentZero: String?
    /// "NAME=value" each; the whole of it, nothing is inherited.
    package var environment: [String]
    /// Variables that shall hold the new process's own pid, which nobody knows before it runs: "WATCHDOG_PID".
    package var processIDVariables: [String]
    /// An absolute path; nil: the daemon's.
    package var workingDirectory: String?
    /// nil: the daemon's own.
    package var credentials: Credentials?
    package var umask: UInt32
    package var resourceLimits: [ResourceLimit]
    /// -1000 … 1000; nil: the daemon's own.
    package var oomScoreAdjust: Int?
    package var noNewPrivileges: Bool
    /// A descriptor of a cgroup's folder. The process is born in it; never a frozen one, where it would not get to exec.
    package var cgroup: Int32?
    /// nil: /dev/null.
    package var standardInput: Int32?
    package var standardOutput: Int32?
    package var standardError: Int32?
    /// Become 3, 4, … and LISTEN_FDS, LISTEN_PID and LISTEN_FDNAMES.
    package var passedDescriptors: [PassedDescriptor]

    package init(
        executable: String, arguments: [String] = [], argumentZero: String? = nil, environment: [String] = [],
        processIDVariables: [String] = [], workingDirectory: String? = nil, credentials: Credentials? = nil,
        umask: UInt32 = 0o022, resourceLimits: [ResourceLimit] = [], oomScoreAdjust: Int? = nil,
        noNewPrivileges: Bool = false, cgroup: Int32? = nil, standardInput: Int32? = nil,
        standardOutput: Int32? = nil, standardError: Int32? = nil, passedDescriptors: [PassedDescriptor] = []
    ) {
        self.executable = executable
        self.arguments = arguments
        self.argumentZero = argumentZero
        self.environment = environment
        self.processIDVariables = processIDVariables
        self.workingDirectory = workingDirectory
        self.credentials = credentials
        self.umask = umask
        self.resourceLimits = resourceLimits
        self.oomScoreAdjust = oomScoreAdjust
        self.noNewPrivileges = noNewPrivileges
        self.cgroup = cgroup
        self.standardInput = standardInput
        self.standardOutput = standardOutput
        self.standardError = standardError
        self.passedDescriptors = passedDescriptors
    }
}
