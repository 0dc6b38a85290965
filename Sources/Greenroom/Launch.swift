import Glibc

/// How and why this process was launched, from the environment variables that Greenroom sets.
///
/// Without Greenroom it is a launch by the user into the foreground.
public struct Launch: Sendable, Hashable {
    /// The ID of the app, the name of its manifest without `.app`; empty without Greenroom.
    public let app: String
    /// Whether the app was launched into the foreground. Otherwise it was launched into the background.
    public let isForeground: Bool
    /// `user`, `url`, `push`, `fetch`, `socket`, `timer`, `accessory`, `location` or `relaunch`.
    public let reason: String
    /// The URL of a launch with the reason `url`. It is also an event.
    public let url: String?
    /// Whether this is the first launch of the app.
    public let isFirst: Bool
    /// How the previous process of the app ended. `nil` if there was none.
    public let lastEnd: LastEnd?
    /// The folder with a file for each notification (`push.NUMBER`, `memory`, …).
    public let inbox: String?

    init() {
        app = variable("GREENROOM_APP") ?? ""
        isForeground = variable("GREENROOM_LAUNCH_STATE") ?? "inactive" == "inactive"
        reason = variable("GREENROOM_LAUNCH_REASON") ?? "user"
        url = variable("GREENROOM_LAUNCH_URL")
        isFirst = variable("GREENROOM_FIRST_LAUNCH") == "1"
        lastEnd = variable("GREENROOM_LAST_RECEIPT").flatMap(LastEnd.init(file:))
        inbox = variable("GREENROOM_INBOX")
    }
}

private func variable(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }
