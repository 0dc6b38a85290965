package import Posix

/// The user a process runs as.
package struct Credentials: Equatable {
    package var uid: UInt32
    package var gid: UInt32
    /// All supplementary groups; the daemon's own are not inherited.
    package var groups: [UInt32]

    package init(uid: UInt32, gid: UInt32, groups: [UInt32]) {
        self.uid = uid
        self.gid = gid
        self.groups = groups
    }
}

/// A resource limit in its own unit (setrlimit(2)); `UInt64.max` is RLIM_INFINITY.
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

/// A descriptor that a new process gets, as sd_listen_fds(3) describes.
package struct PassedDescriptor: Equatable {
    package var descriptor: SharedDescriptor
    /// At most 255 printable characters without a colon (LISTEN_FDNAMES joins the names with colons).
    package var name: String

    package init(_ descriptor: SharedDescriptor, name: String) {
        self.descriptor = descriptor
        self.name = name
    }
}

/// A file that receives the output of a new process. The process opens it itself, as the user of the daemon: a file system that does
/// not answer keeps only this process waiting.
package struct OutputFile: Equatable {
    /// An absolute path. The file is created with the mode 0666, less the process's umask.
    package var path: String
    /// Each write goes to the end of the file; otherwise the first goes to its start.
    package var appends: Bool

    package init(_ path: String, appends: Bool) {
        self.path = path
        self.appends = appends
    }
}

/// Everything that a new process gets. It inherits nothing else of signal handlers, ignored and blocked signals, the session
/// and descriptors. It has no parent-death signal: apps outlive the daemon.
package struct SpawnRequest {
    /// An absolute path; `PATH` is not searched.
    package var executable: String
    /// Without argv[0].
    package var arguments: [String]
    /// argv[0]; nil: `executable`.
    package var argumentZero: String?
    /// "NAME=value" each. The daemon's own environment is not inherited.
    package var environment: [String]
    /// Variables that the child sets to its own pid, which is not known before: "WATCHDOG_PID".
    package var processIDVariables: [String]
    /// An absolute path; `nil`: the daemon's.
    package var workingDirectory: String?
    /// `nil`: the daemon's own.
    package var credentials: Credentials?
    package var umask: UInt32
    package var resourceLimits: [ResourceLimit]
    /// -1000 … 1000; nil: the daemon's own.
    package var oomScoreAdjust: Int?
    package var noNewPrivileges: Bool
    /// A write to a pipe or a connection without a reader fails with EPIPE, and sends no signal that would end the process.
    package var ignoresSIGPIPE = false
    /// The process cannot write in the folder of this program, an absolute path (`program_protect` in program.h): the executable, or
    /// that of the app for which it runs. `nil`: as its user may.
    package var readOnlyProgram: String?
    /// Another file is not executed. A program without a `#!` line is executed by the descriptor that was compared.
    package var programDigest: FileDigest?
    /// The folder of the cgroup in which the process is created. It must not be frozen: the process would not reach exec.
    package var cgroup: SharedDescriptor?
    /// nil: /dev/null.
    package var standardInput: SharedDescriptor?
    package var standardOutput: SharedDescriptor?
    package var standardError: SharedDescriptor?
    /// Instead of the descriptors.
    package var outputFile: OutputFile?
    package var errorFile: OutputFile?
    /// Standard error is a duplicate of standard output, whatever that is.
    package var errorIsOutput = false
    /// Numbered from 3, with LISTEN_FDS, LISTEN_PID and LISTEN_FDNAMES.
    package var passedDescriptors: [PassedDescriptor]

    package init(
        executable: String, arguments: [String] = [], argumentZero: String? = nil, environment: [String] = [],
        processIDVariables: [String] = [], workingDirectory: String? = nil, credentials: Credentials? = nil,
        umask: UInt32 = 0o022, resourceLimits: [ResourceLimit] = [], oomScoreAdjust: Int? = nil,
        noNewPrivileges: Bool = false, cgroup: SharedDescriptor? = nil, standardInput: SharedDescriptor? = nil,
        standardOutput: SharedDescriptor? = nil, standardError: SharedDescriptor? = nil,
        passedDescriptors: [PassedDescriptor] = []
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
