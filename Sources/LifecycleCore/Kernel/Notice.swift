/// A notice to an app (L3), in UIKit's words. An app learns of its launch from `execve`.
package enum Notice: Hashable, Sendable {
    case willResignActive(ResignCause)
    case didEnterBackground
    case willEnterForeground
    case didBecomeActive(ActivationCause)
    case willTerminate
    case memoryWarning(MemoryLevel)
    case tasksExpiring
    /// L8. Only to an app that handles it (`HandledNotices.openURL`).
    case openURL(String)
    /// The app is to be suspended: it takes back what it advertises, and answers (L43). Only to an app that handles it.
    case withdraw
    /// The app is frozen now. It may read this only after its thaw. Only to an app that handles it.
    case willSuspend
    /// The app is thawed now. `after`: since its freeze began. `changed`: the kinds of the notifications that were delivered with
    /// the thaw (L32), each once. Only to an app that handles it. Also without a freeze, after `withdraw`.
    case didResume(after: Duration, changed: [String])
    /// Of one of its scenes (L34). Only to an app that handles it.
    case scene(SceneID, SceneNotice)
    /// A user has closed the scene (L34): it is disconnected, and for good. Only to an app that handles scenes.
    case sceneClosed(SceneID)
    /// The scenes that users have closed, each once, whether they were connected or not (L34). Only to an app that handles it.
    case didDiscardScenes([SceneID])
    /// L18: the app has answered that it is in the background, or new data has arrived there: a picture of it is wanted. Only to
    /// an app that handles it, which has `LifecycleCore.snapshotTime`.
    case takeSnapshot
    /// L34: the scene has entered the background, or was in front last and new data has arrived: a picture of it is wanted. Only to an
    /// app that handles it.
    case takeSceneSnapshot(SceneID)

    /// Only a connection of the app can carry it: there is no signal for it.
    package var isForConnections: Bool {
        switch self {
        case .openURL, .withdraw, .willSuspend, .didResume, .scene, .sceneClosed, .didDiscardScenes, .takeSnapshot,
            .takeSceneSnapshot:
            true
        case .willResignActive, .didEnterBackground, .willEnterForeground, .didBecomeActive, .willTerminate,
            .memoryWarning, .tasksExpiring:
            false
        }
    }

    /// Whether the app has a deadline to answer it.
    package var isAnswered: Bool { deadlineKind != nil }

    /// The deadline to answer it.
    package var deadlineKind: DeadlineKind? {
        switch self {
        case .didEnterBackground: .background
        case .willTerminate: .terminate
        case .willResignActive, .willEnterForeground, .didBecomeActive, .memoryWarning, .tasksExpiring, .openURL,
            .withdraw, .willSuspend, .didResume, .scene, .sceneClosed, .didDiscardScenes, .takeSnapshot,
            .takeSceneSnapshot:
            nil
        }
    }
}

/// Why an app becomes active. The raw values are words of the app's connection.
package enum ActivationCause: String, CaseIterable, Hashable, Sendable {
    case launch
    /// From the background.
    case `return`
    /// The last interruption ended (L13): a game stays paused.
    case interruptionEnded
}

/// Why an app is no longer active. The raw values are words of the app's connection.
package enum ResignCause: String, CaseIterable, Hashable, Sendable {
    case interruption
    /// `didEnterBackground` follows.
    case background
}

/// What the connections of a run handle, of the notices about which the core has to know it.
package struct HandledNotices: OptionSet, Hashable, Sendable {
    package let rawValue: UInt32
    package init(rawValue: UInt32) { self.rawValue = rawValue }

    /// The app takes part: it is notified, and has to answer (L17).
    package static let didEnterBackground = HandledNotices(rawValue: 1)
    package static let openURL = HandledNotices(rawValue: 2)
    package static let willSuspend = HandledNotices(rawValue: 4)
    package static let didResume = HandledNotices(rawValue: 8)
    /// It creates scenes that a user asks for.
    package static let scenes = HandledNotices(rawValue: 16)
    package static let takeSnapshot = HandledNotices(rawValue: 256)
    package static let takeSceneSnapshot = HandledNotices(rawValue: 512)
    package static let didDiscardScenes = HandledNotices(rawValue: 1024)
    package static let withdraw = HandledNotices(rawValue: 2048)
}

/// URLs that an app is to open (L8): they wait until it is in the foreground and handles them.
struct URLQueue: Hashable, Sendable {
    struct Entry: Hashable, Sendable {
        var url: String
        /// Who asked for it; `nil`: no request waits.
        var request: RequestID?
        /// The process was launched with it (`GREENROOM_LAUNCH_URL`).
        var isOfLaunch = false
    }

    /// For the process that runs, or the next one if none does. Oldest first.
    var pending: [Entry] = []
    /// For the process that is launched after the end which is under way. Oldest first.
    var afterEnd: [Entry] = []

    /// The next process is launched.
    mutating func beginNext() {
        pending += afterEnd
        afterEnd = []
    }

    /// How many URLs of an app wait. One more is refused.
    static let maximum = 64
}
