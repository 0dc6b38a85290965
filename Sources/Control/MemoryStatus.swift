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

    package init() {}

    package static let fields: [RecordField<MemoryStatus>] = [
        .required("level", \.level), .optional("reason", \.reason), .required("totalBytes", \.totalBytes),
        .required("availableBytes", \.availableBytes), .required("appsBytes", \.appsBytes),
        .optional("budgetBytes", \.budgetBytes), .required("containment", \.containment),
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
