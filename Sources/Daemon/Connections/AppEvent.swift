import Control
import LifecycleCore
import Reports
import Systemd

extension EventKind {
    init(_ notice: Notice) {
        self =
            switch notice {
            case .willResignActive: .willResignActive
            case .didEnterBackground: .didEnterBackground
            case .willEnterForeground: .willEnterForeground
            case .didBecomeActive: .didBecomeActive
            case .willTerminate: .willTerminate
            case .memoryWarning: .memoryWarning
            case .tasksExpiring: .tasksExpiring
            case .openURL: .openURL
            case .willSuspend: .willSuspend
            case .didResume: .didResume
            case .scene, .sceneClosed: .scene
            case .didDiscardScenes: .didDiscardScenes
            case .withdraw: .withdraw
            case .takeSnapshot: .takeSnapshot
            case .takeSceneSnapshot: .takeSceneSnapshot
            }
    }

    /// Whether the app has to answer it.
    var isAnswered: Bool {
        switch self {
        case .didEnterBackground, .willTerminate, .push, .wake, .takeSnapshot, .takeSceneSnapshot, .withdraw: true
        case .openURL, .didBecomeActive, .willResignActive, .willEnterForeground, .memoryWarning, .tasksExpiring,
            .notification, .willSuspend, .didResume, .scene, .didDiscardScenes:
            false
        }
    }

    /// Whether it is about a state of the app that a later transition ends.
    var isTransition: Bool {
        switch self {
        case .didBecomeActive, .willResignActive, .willEnterForeground, .didEnterBackground, .willTerminate: true
        case .openURL, .memoryWarning, .tasksExpiring, .push, .wake, .notification, .willSuspend, .didResume, .scene,
            .takeSnapshot, .takeSceneSnapshot, .didDiscardScenes, .withdraw:
            false
        }
    }
}

extension HandledNotices {
    /// What the core has to know of the kinds that an app handles.
    init(_ kinds: Set<EventKind>) {
        self = []
        if kinds.contains(.didEnterBackground) { insert(.didEnterBackground) }
        if kinds.contains(.openURL) { insert(.openURL) }
        if kinds.contains(.willSuspend) { insert(.willSuspend) }
        if kinds.contains(.didResume) { insert(.didResume) }
        if kinds.contains(.scene) { insert(.scenes) }
        if kinds.contains(.takeSnapshot) { insert(.takeSnapshot) }
        if kinds.contains(.takeSceneSnapshot) { insert(.takeSceneSnapshot) }
        if kinds.contains(.didDiscardScenes) { insert(.didDiscardScenes) }
        if kinds.contains(.withdraw) { insert(.withdraw) }
    }
}

/// One event of a run, as it is recorded and sent.
struct AppEvent: Hashable {
    enum Content: Hashable {
        case notice(Notice)
        case notification(kind: String, payload: String, id: UInt64)
        case wake(id: UInt64, reason: String)
    }

    /// Its number among the events of the run.
    var serial: UInt64
    var content: Content
    /// The effect of the core that it is due to.
    var effect = EffectID.none
    /// Until when the app has time for it, in the time of the loop; `nil`: it has no deadline.
    var until: Duration?
    /// `willTerminate`: why.
    var reason = ""
    /// `openURL`: the scene that is to show it; empty: the app has `main` alone.
    var scene = ""
    /// `tasksExpiring`: the tasks.
    var names: [String] = []
    /// It was sent to a connection.
    var isSent = false

    /// The most names of tasks that an event has.
    static let maximumNames = 64

    init(serial: UInt64, _ content: Content) {
        self.serial = serial
        self.content = content
    }

    var kind: EventKind {
        switch content {
        case .notice(let notice): EventKind(notice)
        case .notification(let kind, _, _): kind == Notification.push ? .push : .notification
        case .wake: .wake
        }
    }

    /// The number of the wake that its answer completes; `nil`: its answer completes none.
    var wake: UInt64? {
        switch content {
        case .notice: nil
        case .notification(_, _, let id): kind == .push ? id : nil
        case .wake(let id, _): id
        }
    }

    /// A state, of which only the latest of its kind counts (L31).
    var state: String? {
        if case .notification(let kind, let payload, _) = content, kind != Notification.push, !payload.isEmpty {
            kind
        } else {
            nil
        }
    }

    /// Bytes of what others have sent to the app.
    var size: Int {
        switch content {
        case .notice(.openURL(let url)): url.utf8.count
        case .notice, .wake: 0
        case .notification(_, let payload, _): payload.utf8.count
        }
    }

    /// The details as the signal has them.
    func details(at now: Duration) -> [(String, Variant)] {
        let seconds = until.map { max(.zero, $0 - now).variant } ?? .double(.infinity)
        switch content {
        case .notification(let kind, let payload, let id):
            return kind == Notification.push
                ? [("id", .uint64(id)), ("payload", .string(payload))]
                : [("kind", .string(kind)), ("payload", .string(payload))]
        case .wake(let id, let reason): return [("id", .uint64(id)), ("reason", .string(reason))]
        case .notice(let notice):
            switch notice {
            case .willEnterForeground, .withdraw, .willSuspend, .takeSnapshot: return []
            case .takeSceneSnapshot(let scene): return [("scene", .string(scene.name))]
            case .willResignActive(let cause): return [("cause", .string(cause.rawValue))]
            case .didBecomeActive(let cause): return [("cause", .string(cause.rawValue))]
            case .didEnterBackground: return [("remainingSeconds", seconds)]
            case .willTerminate: return [("deadlineSeconds", seconds), ("reason", .string(reason))]
            case .memoryWarning(let level): return [("level", .string(level.name))]
            case .tasksExpiring: return [("names", .strings(names)), ("remainingSeconds", seconds)]
            case .openURL(let url):
                return [("url", .string(url))] + (scene.isEmpty ? [] : [("scene", .string(scene))])
            case .scene(let id, let notice):
                return Self.details(of: id, notice, reason: notice == .didDisconnect ? "memory" : nil)
            case .sceneClosed(let id): return Self.details(of: id, .didDisconnect, reason: "closed")
            case .didDiscardScenes(let scenes): return [("scenes", .strings(scenes.map(\.name)))]
            case .didResume(let time, let changed):
                return [("suspendedSeconds", time.variant), ("changed", .strings(changed))]
            }
        }
    }
}

extension AppEvent {
    /// - Parameter reason: of `sceneDidDisconnect`.
    private static func details(of id: SceneID, _ notice: SceneNotice, reason: String?) -> [(String, Variant)] {
        [
            ("scene", .string(id.name)), ("notice", .string(notice.rawValue)),
            ("state", .string(notice.state.name)),
        ] + (reason.map { [("reason", .string($0))] } ?? [])
    }
}

extension AppEvent: SavedRecord {
    static var blank: AppEvent { AppEvent(serial: 0, .wake(id: 0, reason: "")) }

    mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &serial)
        var (notice, kind, text, id): (Notice?, String?, String, UInt64) = (nil, nil, "", 0)
        switch content {
        case .notice(let own): notice = own
        case .notification(let own, let payload, let number): (kind, text, id) = (own, payload, number)
        case .wake(let number, let why): (text, id) = (why, number)
        }
        try coder.optional(2, &notice)
        try coder.optional(3, &kind)
        try coder.field(4, &text)
        try coder.field(5, &id)
        try coder.field(6, &effect.event)
        try coder.field(7, &effect.index)
        try coder.optional(8, &until)
        try coder.field(9, &reason)
        try coder.list(10, &names, upTo: Self.maximumNames)
        try coder.flag(11, &isSent)
        try coder.field(110, &scene)
        if let notice {
            content = .notice(notice)
        } else if let kind {
            content = .notification(kind: kind, payload: text, id: id)
        } else {
            content = .wake(id: id, reason: text)
        }
    }
}
