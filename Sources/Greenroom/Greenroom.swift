import CSystemd
import Glibc

/// The app side of Greenroom: reports lifecycle progress to the daemon and tells how the app was launched.
///
/// An app that Greenroom launches has a notify socket, named by the environment variable `NOTIFY_SOCKET`. Each function here
/// sends one datagram to it, as `sd_notify(3)` does. The functions do not block for an answer and report no errors. In a
/// process without a notify socket they do nothing, so the same program also runs outside of Greenroom.
///
/// ```swift
/// import Greenroom
///
/// Greenroom.finishedLaunching()
/// let task = Greenroom.BackgroundTask(named: "upload")
/// upload()
/// task.end()
/// ```
public enum Greenroom {
    /// How and why Greenroom launched this process.
    public struct Launch: Sendable, Hashable {
        /// The app's ID: the name of its manifest without `.app`.
        public let app: String
        /// Whether the app was launched into the foreground. Otherwise it was launched into the background.
        public let isForeground: Bool
        /// The reason for the launch: `user`, `url`, `push`, `fetch`, `socket`, `timer`, `accessory`, `location` or
        /// `relaunch`.
        public let reason: String
        /// The URL to open, if the reason is `url`.
        public let url: String?
        /// Whether this is the first launch of the app.
        public let isFirst: Bool
        /// The path of a JSON file that describes how the previous run of the app ended. `nil` if there was none.
        public let lastReceipt: String?
        /// The path of the directory with the notifications for the app, one file for each kind (`push`, `memory`, …).
        public let inbox: String?
    }

    /// The launch information from the environment, or `nil` if Greenroom did not launch this process.
    public static var launch: Launch? {
        guard let app = variable("GREENROOM_APP") else { return nil }
        return Launch(
            app: app, isForeground: variable("GREENROOM_LAUNCH_STATE") == "inactive",
            reason: variable("GREENROOM_LAUNCH_REASON") ?? "user", url: variable("GREENROOM_LAUNCH_URL"),
            isFirst: variable("GREENROOM_FIRST_LAUNCH") == "1", lastReceipt: variable("GREENROOM_LAST_RECEIPT"),
            inbox: variable("GREENROOM_INBOX"))
    }

    /// Reports that the app has finished launching.
    ///
    /// An app whose manifest says `Type=notify` must call this before its launch deadline (`LaunchDeadlineSec=`, 5 seconds
    /// by default), or it is killed.
    public static func finishedLaunching() { notify("READY=1") }

    /// Reports that the app has saved its state and may be suspended.
    ///
    /// An app that receives a signal when it enters the background (`EnterBackground=`) must call this before its background
    /// deadline (`BackgroundDeadlineSec=`, 5 seconds by default), or it is killed.
    public static func enteredBackground() { notify("X_GREENROOM_BACKGROUND=1") }

    /// The result of a wake by a push or a fetch.
    public enum WakeResult: String, Sendable {
        /// The app received new data.
        case newData = "new-data"
        /// There was no new data.
        case noData = "no-data"
        /// The app could not determine whether there is new data.
        case failed
    }

    /// Reports that the app has finished the work for which it was woken. Each wake is completed by itself.
    ///
    /// - Parameter number: the number of the push, as in the name of its file (`push.NUMBER`); `nil`: the oldest wake.
    public static func completedWake(_ result: WakeResult, number: UInt64? = nil) {
        let wake = number.map { "\nX_GREENROOM_WAKE_ID=\($0)" } ?? ""
        notify("X_GREENROOM_WAKE_DONE=\(result.rawValue)\(wake)")
    }

    /// Reports that the app is alive.
    ///
    /// An app whose manifest has a watchdog (`WatchdogSec=`) must call this more often than that time span, or it is killed.
    public static func heartbeat() { notify("WATCHDOG=1") }

    /// Sets the status text that `greenroomctl status` shows.
    ///
    /// - Parameter text: at most 4,000 bytes. Line breaks are replaced by spaces.
    public static func status(_ text: String) { notify("STATUS=" + singleLine(text)) }

    /// Work during which the app must not be suspended.
    ///
    /// The task ends with `end()` or when the value is destroyed. A task that lasts longer than the app's background time
    /// (`BackgroundTimeSec=`, 30 seconds by default) gets the app killed.
    public struct BackgroundTask: ~Copyable {
        /// The name that `greenroomctl status` shows, and the receipt if the app is killed because of the task.
        public let name: String

        /// Begins a background task.
        ///
        /// - Parameter name: 1 to 128 bytes without control characters. Line breaks are replaced by spaces, and a longer
        ///   name is truncated.
        public init(named name: String) {
            self.name = Greenroom.truncated(Greenroom.singleLine(name), bytes: 128)
            Greenroom.notify("X_GREENROOM_BEGIN_TASK=\(self.name)")
        }

        /// Ends the task. After its last task has ended, an app in the background may be suspended.
        public consuming func end() {}

        deinit { Greenroom.notify("X_GREENROOM_END_TASK=\(name)") }
    }

    private static func variable(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }

    private static func singleLine(_ text: String) -> String {
        text.split(whereSeparator: \.isNewline).joined(separator: " ")
    }

    /// Removes characters at the end until the text has at most this many bytes.
    private static func truncated(_ text: String, bytes limit: Int) -> String {
        var scalars = text.unicodeScalars[...]
        var size = text.utf8.count
        while size > limit, let last = scalars.popLast() { size -= UTF8.width(last) }
        return String(scalars)
    }

    /// Sends a datagram to the notify socket, if there is one. Errors are ignored: the app runs with or without Greenroom.
    private static func notify(_ text: String) { _ = sd_notify(0, text) }
}
