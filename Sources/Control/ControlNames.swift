package import Systemd

/// The names of the control interface. Names are added, but never changed.
package enum ControlNames {
    /// The runtime folder of the system's daemon.
    package static let systemRuntime = "/run/greenroom"
    package static let busName = "org.greenroom"
    package static let managerPath = "/org/greenroom"
    package static let managerInterface = "org.greenroom.Manager1"
    package static let appPrefix = "/org/greenroom/app"
    package static let appInterface = "org.greenroom.App1"
    /// `LifecycleEvent(a{sv})`: the one signal of the manager, with a `LifecycleEvent` record.
    package static let lifecycleEventSignal = "LifecycleEvent"
    /// The object that an app's own connection serves (`GREENROOM_BUS_ADDRESS`).
    package static let selfPath = "/org/greenroom/self"
    package static let selfInterface = "org.greenroom.Self1"
    package static let version = "0.2.0"

    /// The D-Bus errors, `org.greenroom.Error.…`. Each error carries a sentence for people.
    package enum Failure: String, CaseIterable, Sendable {
        case unknownApp = "UnknownApp"
        case notRunning = "NotRunning"
        case running = "Running"
        case opensNoURLs = "OpensNoURLs"
        case noHandler = "NoHandler"
        case severalHandlers = "SeveralHandlers"
        case ending = "Ending"
        case notInForeground = "NotInForeground"
        case notInterrupted = "NotInterrupted"
        case modeNotDeclared = "ModeNotDeclared"
        case noScene = "NoScene"
        case lastScene = "LastScene"
        case launchPostponed = "LaunchPostponed"
        case backgroundTimeUsedUp = "BackgroundTimeUsedUp"
        case requesterNotInForeground = "RequesterNotInForeground"
        case shuttingDown = "ShuttingDown"
        case replaced = "Replaced"
        case tooMany = "TooMany"
        case invalidArgument = "InvalidArgument"
        case accessDenied = "AccessDenied"
        case unknownReceipt = "UnknownReceipt"
        case failed = "Failed"
        /// Of Self1: an event or a task that is not open.
        case notOpen = "NotOpen"
        /// `App1.GetSnapshot`: the app has none.
        case noSnapshot = "NoSnapshot"
        /// The manifest hides the snapshot (`SnapshotPrivacy=hidden`).
        case snapshotHidden = "SnapshotHidden"
        /// It may show protected data, and the user is away.
        case snapshotWithheld = "SnapshotWithheld"
        /// Of Self1: there is no restoration state.
        case notFound = "NotFound"

        package var name: String { "org.greenroom.Error." + rawValue }

        package func error(_ sentence: String) -> BusError { BusError(name, sentence) }
    }
}
