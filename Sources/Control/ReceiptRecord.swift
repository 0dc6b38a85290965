/// Why an app ended (L45), as `Receipt` and `greenroomctl receipt` show it and as the daemon stores it.
package struct ReceiptRecord: Record {
    /// Counts up, over restarts of the daemon too.
    package var id: UInt64 = 0
    package var app = ""
    /// Absent where there was no process.
    package var pid: Int32?
    /// When the end was recorded.
    package var time = Timestamp(microseconds: 0)
    /// The app's state when its end began.
    package var state = ""
    /// `watchdog`, `lifecycle`, `user`, `resource`, `jetsam`, `signal` or `exit`.
    package var namespace = ""
    /// The code of docs/RULES.md: `0`, `0x8badf00d`.
    package var code = ""
    /// One sentence, the cause first.
    package var explanation = ""
    /// The exit status, of a main process that exited.
    package var exitStatus: Int32?
    /// The number of the signal, of a main process that a signal ended.
    package var signal: Int32?
    /// Whether the kernel wrote a core dump; with `signal` only.
    package var coreDumped: Bool?
    /// From the creation of the process to its end.
    package var wall = Duration.zero
    package var cpu = Duration.zero
    /// The size when the end began: what it gave back.
    package var memoryBytes: UInt64 = 0
    /// The largest size that was measured. Absent in receipts of earlier versions.
    package var peakMemoryBytes: UInt64?
    /// Whether the app was ended for the memory that it had, by jetsam, the OOM killer or a limit, or after `UnloadAfterSec=`. Absent where it
    /// was not, and in receipts of earlier versions.
    package var endedForMemory: Bool?
    /// The deadline that counted at the end.
    package var deadline: DeadlineStatus?
    /// How many processes outlived the main process and were killed (L47); absent where there were none.
    package var remainingProcesses: UInt64?
    /// The names of some of them.
    package var remainingNames: [String] = []
    /// The apps that jetsam could have killed, in its order.
    package var candidates: [JetsamCandidate] = []
    /// The last lines that the app wrote before a failure (`isFailure`), printable, at most 1,024 bytes. Empty if they are in the journal
    /// or in a file that the manifest names, and for callers that are neither root nor the daemon's user.
    package var output: [String] = []

    package init() {}

    /// Whether the end is a failure of the app itself. One that was terminated, or that was killed to free memory, has not failed.
    package var isFailure: Bool {
        switch namespace {
        case "user", "jetsam": false
        case "exit": exitStatus.map { $0 != 0 || state == "launching" } ?? false
        default: true
        }
    }

    package static let fields: [RecordField<ReceiptRecord>] = [
        .required("id", \.id), .required("app", \.app), .process("pid", \.pid), .required("time", \.time),
        .required("state", \.state), .required("namespace", \.namespace), .required("code", \.code),
        .required("explanation", \.explanation), .optional("exitStatus", \.exitStatus), .optional("signal", \.signal),
        .optional("coreDumped", \.coreDumped), .required("wallSeconds", \.wall), .required("cpuSeconds", \.cpu),
        .required("memoryBytes", \.memoryBytes), .optional("peakMemoryBytes", \.peakMemoryBytes),
        .optional("endedForMemory", \.endedForMemory), .optional("deadline", \.deadline),
        .optional("remainingProcesses", \.remainingProcesses), .list("remainingNames", \.remainingNames),
        .list("candidates", \.candidates), .list("output", \.output),
    ]
}

/// An app that jetsam could have killed.
package struct JetsamCandidate: Record {
    package var app = ""
    package var state = ""
    package var memoryBytes: UInt64 = 0

    package init() {}

    package static let fields: [RecordField<JetsamCandidate>] = [
        .required("app", \.app), .required("state", \.state), .required("memoryBytes", \.memoryBytes),
    ]
}
