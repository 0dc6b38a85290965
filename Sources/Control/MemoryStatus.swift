/// The state of memory, as `Pressure` and `greenroomctl pressure` show it. Sizes are in bytes.
package struct MemoryStatus: Record {
    /// `normal`, `warning` or `critical`.
    package var level = ""
    /// What brought memory to its level: `budget`, `available`, `pressure` or `simulated`.
    package var reason: String?
    package var totalBytes: UInt64 = 0
    package var availableBytes: UInt64 = 0
    /// All apps together.
    package var appsBytes: UInt64 = 0
    /// `Budget=` of greenroom.conf; absent where it is infinite.
    package var budgetBytes: UInt64?
    /// How the daemon contains apps, in words.
    package var containment = ""
    /// Where less is available: `machine`, or `limit` of a group. Absent in answers of earlier versions.
    package var source: String?
    /// The tightest limit of a group; absent where no group has one.
    package var limit: MemoryLimitStatus?
    /// What the apps can have in swap; absent without swap.
    package var swapTotalBytes: UInt64?
    package var swapFreeBytes: UInt64?
    /// What was read again soon after it was evicted, since the machine was started.
    package var refaultedBytes: UInt64?
    /// Free pages on the lists of single CPUs, which are part of `availableBytes`; absent where they were not counted.
    package var perCPUBytes: UInt64?
    /// The next threshold of available memory, for the source.
    package var thresholdBytes: UInt64?
    /// What is missing to reach the threshold; absent where nothing is.
    package var deficitBytes: UInt64?
    /// Absent where the kernel reports no stalls.
    package var stalls: StallStatus?
    /// The apps that would be killed next, in this order.
    package var candidates: [JetsamCandidate] = []

    package init() {}

    package static let fields: [RecordField<MemoryStatus>] = [
        .required("level", \.level), .optional("reason", \.reason), .required("totalBytes", \.totalBytes),
        .required("availableBytes", \.availableBytes), .required("appsBytes", \.appsBytes),
        .optional("budgetBytes", \.budgetBytes), .required("containment", \.containment),
        .optional("source", \.source), .optional("limit", \.limit), .optional("swapTotalBytes", \.swapTotalBytes),
        .optional("swapFreeBytes", \.swapFreeBytes), .optional("refaultedBytes", \.refaultedBytes),
        .optional("perCPUBytes", \.perCPUBytes), .optional("thresholdBytes", \.thresholdBytes),
        .optional("deficitBytes", \.deficitBytes), .optional("stalls", \.stalls), .list("candidates", \.candidates),
    ]
}

/// The tightest memory limit of the apps' group and those above it.
package struct MemoryLimitStatus: Record {
    /// As /proc/self/cgroup names it.
    package var group = ""
    /// The file that has the limit: `memory.max`, `memory.high` or `memory.limit_in_bytes`; `memory.stat` for one that is not
    /// visible in this container.
    package var file = ""
    package var totalBytes: UInt64 = 0
    package var availableBytes: UInt64 = 0
    /// How often the kernel has killed a process because of the limit.
    package var oomKills: UInt64 = 0

    package init() {}

    package static let fields: [RecordField<MemoryLimitStatus>] = [
        .required("group", \.group), .required("file", \.file), .required("totalBytes", \.totalBytes),
        .required("availableBytes", \.availableBytes), .required("oomKills", \.oomKills),
    ]
}

/// For how long tasks stall because memory is short (PSI).
package struct StallStatus: Record {
    /// The file that was read: that of the machine, or of the group that has the limit.
    package var path = ""
    /// The share of the last 10 s in which at least one task stalled, and in which all did.
    package var somePercent = 0.0
    package var fullPercent = 0.0
    /// Since the machine or the group was started.
    package var someSeconds = Duration.zero
    package var fullSeconds = Duration.zero

    package init() {}

    package static let fields: [RecordField<StallStatus>] = [
        .required("path", \.path), .required("somePercent", \.somePercent), .required("fullPercent", \.fullPercent),
        .required("someSeconds", \.someSeconds), .required("fullSeconds", \.fullSeconds),
    ]
}

/// The answer to `SimulatePressure`.
package struct SimulationResult: Record {
    package var level = ""
    /// The app that was killed, if any.
    package var victim: String?

    package init() {}

    package static let fields: [RecordField<SimulationResult>] = [
        .required("level", \.level), .optional("victim", \.victim),
    ]
}
