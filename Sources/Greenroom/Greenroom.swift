import Glibc
import Systemd

/// The app's side of the lifecycle: what Greenroom has told this process at its launch, and what the process can say.
///
/// Everything works on Greenroom's notify socket (`NOTIFY_SOCKET`). In a process that Greenroom did not launch all of it does
/// nothing, so that the same program runs anywhere.
public enum Greenroom {
    /// Why and how this process was launched.
    public struct Launch: Sendable, Hashable {
        /// The app's ID, as its manifest is named.
        public let app: String
        /// Into the foreground, rather than the background.
        public let isForeground: Bool
        /// `user`, `url`, `push`, `fetch`, `socket`, `timer`, `accessory`, `location` or `relaunch`.
        public let reason: String
        /// The URL of a URL launch.
        public let url: String?
        /// The app was never launched before.
        public let isFirst: Bool
        /// Where the receipt of the app's last end is, a JSON document.
        public let lastReceipt: String?
        /// The folder in which notifications lie, one file a kind.
        public let inbox: String?
    }

    /// What the environment says; `nil` in a process that Greenroom did not launch.
    public static var launch: Launch? {
        guard let app = variable("GREENROOM_APP") else { return nil }
        return Launch(
            app: app, isForeground: variable("GREENROOM_LAUNCH_STATE") == "inactive",
            reason: variable("GREENROOM_LAUNCH_REASON") ?? "user", url: variable("GREENROOM_LAUNCH_URL"),
            isFirst: variable("GREENROOM_FIRST_LAUNCH") == "1", lastReceipt: variable("GREENROOM_LAST_RECEIPT"),
            inbox: variable("GREENROOM_INBOX"))
    }

    /// The app has finished launching (`Type=notify`); to be said before its launch deadline.
    public static func finishedLaunching() { say("READY=1") }

    /// The app has done what there was to do before it may be suspended; to be said before its background deadline.
    public static func enteredBackground() { say("X_GREENROOM_BACKGROUND=1") }

    /// What came of a wake by push or fetch.
    public enum WakeResult: String, Sendable {
        /// There was something new.
        case newData = "new-data"
        /// There was nothing new.
        case noData = "no-data"
        /// It could not be found out.
        case failed
    }

    /// The app has done what it was woken for.
    public static func completedWake(_ result: WakeResult) { say("X_GREENROOM_WAKE_DONE=\(result.rawValue)") }

    /// The app is alive (`WatchdogSec=`).
    public static func heartbeat() { say("WATCHDOG=1") }

    /// One line about what the app is doing, shown by `greenroomctl status`.
    public static func status(_ text: String) {
        say("STATUS=" + text.split(whereSeparator: \.isNewline).joined(separator: " "))
    }

    /// Something that must not be interrupted by suspension. It ends with `end()`, or when the value goes.
    public struct BackgroundTask: ~Copyable {
        /// By which it is found in `greenroomctl status`, and in the receipt if it is forgotten.
        public let name: String

        /// Begins it. The name: one line of at most 128 bytes.
        public init(named name: String) {
            let line = name.split(whereSeparator: \.isNewline).joined(separator: " ")
            self.name = String(decoding: line.utf8.prefix(128), as: UTF8.self)
            Greenroom.say("X_GREENROOM_BEGIN_TASK=\(self.name)")
        }

        /// Ends it: if it was the last, the app may be suspended.
        public consuming func end() {}

        deinit { Greenroom.say("X_GREENROOM_END_TASK=\(name)") }
    }

    private static func variable(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }

    /// Nobody to tell is no error: the program runs without Greenroom.
    static func say(_ text: String) { _ = try? ServiceManager.tell(text) }
}
