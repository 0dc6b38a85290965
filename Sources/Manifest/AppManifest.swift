package import LifecycleCore

/// One app, as its manifest and drop-ins say.
package struct AppManifest: Hashable, Sendable {
    package var id: AppID
    /// For people; the ID where none is given.
    package var name: String
    /// The program, by an absolute path, and its arguments.
    package var exec: [String] = []
    package var policy = AppPolicy()
    package var user: String?
    package var group: String?
    package var supplementaryGroups: [String] = []
    /// An absolute path, or `~` for the user's home.
    package var workingDirectory: String?
    /// `NAME=value`.
    package var environment: [String] = []
    /// Names below the system's folders for it, as systemd's.
    package var stateDirectory: [String] = []
    package var cacheDirectory: [String] = []
    package var runtimeDirectory: [String] = []
    package var umask: UInt32 = 0o022
    package var limits: [ResourceLimitSetting] = []
    package var oomScoreAdjust: Int?
    package var noNewPrivileges = false
    package var signals = LifecycleSignals()
    /// Hard limits in bytes; `nil`: infinity.
    package var memoryMax: UInt64?
    package var suspendedMemoryMax: UInt64?
    package var listenStream: [String] = []

    package init(id: AppID) {
        self.id = id
        name = id.name
    }
}

/// Sent with a change of the lifecycle; `nil`: none.
package struct LifecycleSignals: Hashable, Sendable {
    package var resignActive: Int32?
    package var becomeActive: Int32?
    package var enterBackground: Int32?
    package var enterForeground: Int32?
    package var memoryWarning: Int32?
    package var taskExpiring: Int32?
    /// SIGTERM.
    package var terminate: Int32 = 15
}

/// One of setrlimit(2)'s limits, by its number on Linux; `UInt64.max` is infinity.
package struct ResourceLimitSetting: Hashable, Sendable {
    package var resource: Int32
    package var soft: UInt64
    package var hard: UInt64
}

/// How much of the time tasks may stall for want of memory before it counts (PSI).
package struct PressureThreshold: Hashable, Sendable {
    /// Some task stalls, or all do.
    package enum Kind: String, Hashable, Sendable { case some, full }
    package var kind: Kind
    /// 1 … 99 percent of the time.
    package var percent: Int

    package init(_ kind: Kind, percent: Int) {
        self.kind = kind
        self.percent = percent
    }
}

/// `greenroom.conf`.
package struct ManagerConfiguration: Hashable, Sendable {
    package var policy = ManagerPolicy()
    /// `nil`: off. Where the defaults come from: docs/decisions/0002-memory.md.
    package var warningPressure: PressureThreshold? = PressureThreshold(.some, percent: 7)
    package var criticalPressure: PressureThreshold? = PressureThreshold(.full, percent: 10)

    package init() {}

    package var pressureThresholds: [(MemoryLevel, PressureThreshold)] {
        [(.warning, warningPressure), (.critical, criticalPressure)].compactMap { level, threshold in
            threshold.map { (level, $0) }
        }
    }
}
