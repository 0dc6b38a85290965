import Glibc
import Posix

/// The stage at which a new process failed. The numbers are those of `enum clinux_stage`.
package enum SpawnStage: Int32, CaseIterable {
    case signals = 1
    case session
    case cgroup
    case oomScoreAdjust
    case standardInput
    case standardOutput
    case standardError
    case descriptors
    case limits
    case groups
    case group
    case user
    case workingDirectory
    case noNewPrivileges
    case readOnlyProgram
    case programDigest
    case executable

    /// The exit status of the child, as in systemd.exec(5), "Process Exit Codes".
    package var exitStatus: Int32 {
        switch self {
        case .signals: 207
        case .session: 220
        case .cgroup: 219
        case .oomScoreAdjust: 206
        case .standardInput: 208
        case .standardOutput: 209
        case .standardError: 222
        case .descriptors: 202
        case .limits: 205
        case .groups, .group: 216
        case .user: 217
        case .workingDirectory: 200
        case .noNewPrivileges: 227
        case .readOnlyProgram: 226
        case .programDigest, .executable: 203
        }
    }
}

/// The executable exists, but its interpreter does not.
package enum MissingInterpreter: Equatable {
    /// The interpreter of the `#!` line.
    case script(String)
    /// The dynamic loader of an ELF file, or of a file that could not be read.
    case loader

    init(firstBytes: String) {
        guard firstBytes.hasPrefix("#!") else {
            self = .loader
            return
        }
        // By bytes, as the kernel reads it: a Swift character can contain "\r" and a line feed.
        let line = firstBytes.utf8.dropFirst(2).prefix { $0 != 0x0a }
        let name = line.drop { $0 == 0x20 || $0 == 0x09 }.prefix { $0 != 0x20 && $0 != 0x09 }
        self = .script(String(decoding: Array(name), as: UTF8.self))
    }
}

/// The program has another digest than the wanted one.
package struct DigestMismatch: Equatable {
    package let found: FileDigest
    package let wanted: FileDigest
}

/// Why a new process did not execute its program.
package struct SpawnFailure: Error, Equatable {
    package let stage: SpawnStage
    package let errno: Int32
    /// The subject of the stage: the executable, the working directory, the file for
    /// output, the name of a descriptor or limit, an ID.
    package let path: String
    package let missingInterpreter: MissingInterpreter?
    /// Of a program with another digest than the wanted one.
    package let digest: DigestMismatch?

    package init(
        stage: SpawnStage, errno: Int32, path: String, missingInterpreter: MissingInterpreter? = nil,
        digest: DigestMismatch? = nil
    ) {
        self.stage = stage
        self.errno = errno
        self.path = path
        self.missingInterpreter = missingInterpreter
        self.digest = digest
    }

    package var exitStatus: Int32 { stage.exitStatus }

    /// A sentence for the log: "cannot execute /usr/bin/foo: No such file or directory".
    package var sentence: String { "cannot \(attempt): \(reason)" }

    private var attempt: String {
        let path = path.printable()
        return switch stage {
        case .executable, .programDigest: "execute \(path)"
        case .workingDirectory: "change to the working directory \(path)"
        case .user: "become user \(path)"
        case .group: "become group \(path)"
        case .groups: path.isEmpty ? "drop the supplementary groups" : "set the supplementary groups \(path)"
        case .limits: "set the limit \(path)"
        case .oomScoreAdjust: "set the OOM score adjustment"
        case .descriptors: path.isEmpty ? "pass descriptors" : "pass the descriptor \"\(path)\""
        case .standardInput: "set up standard input"
        case .standardOutput: path.isEmpty ? "set up standard output" : "open \(path) as standard output"
        case .standardError: path.isEmpty ? "set up standard error" : "open \(path) as standard error"
        case .cgroup: "enter its cgroup"
        case .session: "start a session"
        case .signals: "reset signals"
        case .noNewPrivileges: "set no_new_privs"
        case .readOnlyProgram: "make the folder of \(path) read-only"
        }
    }

    private var reason: String {
        let text = SystemError.text(of: errno)
        switch (stage, errno) {
        case (.executable, ENOENT):
            switch missingInterpreter {
            case .script(let name) where name.utf8.last == 0x0d:
                return
                    "its #! line ends with a carriage return, which belongs to the name of the interpreter then; expected a "
                    + "line feed alone"
            case .script(let name): return "its interpreter \(name.printable()) does not exist"
            case .loader: return "the file exists, but its program loader does not"
            case nil: return text
            }
        case (.executable, ENOEXEC):
            return "it is neither a program for this machine nor a script with a #! line"
        case (.executable, EACCES):
            return "\(text) (is it a file, executable for this user, and not on a noexec mount?)"
        case (.executable, EAGAIN):
            return "\(text) (the user has reached its limit of processes)"
        case (.readOnlyProgram, EPERM):
            return "\(text) (the daemon needs CAP_SYS_ADMIN for ReadOnlyProgram=)"
        case (.readOnlyProgram, ENOSYS):
            return "\(text) (ReadOnlyProgram= needs Linux 5.12)"
        case (.readOnlyProgram, EINVAL):
            return "its folder is the root folder, or the root folder is no mount point"
        case (.programDigest, EBADMSG):
            return digest.map { "its digest is \($0.found); expected \($0.wanted) (ProgramDigest=)" } ?? text
        case (.programDigest, ENODATA), (.programDigest, ENOTTY), (.programDigest, EOPNOTSUPP):
            return "it has no digest of fs-verity (ProgramDigest=)"
        case (.programDigest, EOVERFLOW):
            return "its digest of fs-verity is none with SHA-256 (ProgramDigest=)"
        case (.programDigest, _):
            return "its digest cannot be read: \(text)"
        default:
            return text
        }
    }
}

extension ResourceLimit {
    /// The name in setrlimit(2).
    package var name: String {
        let names = [
            "RLIMIT_CPU", "RLIMIT_FSIZE", "RLIMIT_DATA", "RLIMIT_STACK", "RLIMIT_CORE", "RLIMIT_RSS", "RLIMIT_NPROC",
            "RLIMIT_NOFILE", "RLIMIT_MEMLOCK", "RLIMIT_AS", "RLIMIT_LOCKS", "RLIMIT_SIGPENDING", "RLIMIT_MSGQUEUE",
            "RLIMIT_NICE", "RLIMIT_RTPRIO", "RLIMIT_RTTIME",
        ]
        return names.indices.contains(Int(resource)) ? names[Int(resource)] : "limit \(resource)"
    }
}
