import CGreenroom

extension AppEvent {
    /// Reads an event of the C library; `nil` if this release does not know its kind.
    ///
    /// A value that a later greenroomd has added is read as the most general one.
    init?(_ event: greenroom_event, _ connection: Connection) {
        switch event.kind {
        case GREENROOM_DID_BECOME_ACTIVE:
            self = .didBecomeActive(cause: ActivationCause(rawValue: text(event.cause)) ?? .return)
        case GREENROOM_WILL_RESIGN_ACTIVE:
            self = .willResignActive(cause: ResignationCause(rawValue: text(event.cause)) ?? .background)
        case GREENROOM_WILL_ENTER_FOREGROUND: self = .willEnterForeground
        case GREENROOM_DID_ENTER_BACKGROUND: self = .didEnterBackground(deadline: Duration(limit: event.remaining_usec))
        case GREENROOM_WILL_TERMINATE:
            self = .willTerminate(reason: text(event.reason), deadline: Duration(limit: event.remaining_usec))
        case GREENROOM_MEMORY_WARNING:
            self = .didReceiveMemoryWarning(level: MemoryLevel(rawValue: text(event.level)) ?? .warning)
        case GREENROOM_TASKS_EXPIRING:
            self = .tasksWillExpire(names: texts(event), remaining: Duration(limit: event.remaining_usec) ?? .zero)
        case GREENROOM_OPEN_URL: self = .open(url: text(event.url))
        case GREENROOM_PUSH:
            let payload = text(event.payload)
            self = .didReceivePush(Wake(event.serial, id: event.id, reason: "push", payload: payload, connection))
        case GREENROOM_WAKE:
            self = .didWake(Wake(event.serial, id: event.id, reason: text(event.reason), payload: "", connection))
        case GREENROOM_NOTIFICATION:
            self = .didReceiveNotification(kind: text(event.notification), payload: text(event.payload))
        case GREENROOM_WILL_SUSPEND: self = .willSuspend
        case GREENROOM_DID_RESUME:
            self = .didResume(after: .microseconds(Int64(clamping: event.suspended_usec)), changed: texts(event))
        case GREENROOM_SCENE:
            guard let notice = SceneNotice(rawValue: text(event.notice)) else { return nil }
            self = .scene(text(event.scene), notice)
        case GREENROOM_WITHDRAW: self = .withdraw
        case GREENROOM_TAKE_SNAPSHOT: self = .takeSnapshot
        case GREENROOM_DID_DISCARD_SCENES: self = .didDiscardScenes(texts(event))
        case GREENROOM_TAKE_SCENE_SNAPSHOT: self = .takeSceneSnapshot(text(event.scene))
        default: return nil
        }
    }

    /// Whether the library answers the event when it was handled. Wakes are completed by the app.
    var isAnswered: Bool {
        switch self {
        case .didEnterBackground, .willTerminate, .takeSnapshot, .takeSceneSnapshot, .withdraw: true
        default: false
        }
    }

    /// Whether the app completes the event (`Wake.complete(_:)`).
    var isWake: Bool {
        switch self {
        case .didReceivePush, .didWake: true
        default: false
        }
    }

    /// The name for messages.
    var name: String {
        switch self {
        case .didBecomeActive: "didBecomeActive"
        case .willResignActive: "willResignActive"
        case .willEnterForeground: "willEnterForeground"
        case .didEnterBackground: "didEnterBackground"
        case .willTerminate: "willTerminate"
        case .didReceiveMemoryWarning: "didReceiveMemoryWarning"
        case .tasksWillExpire: "tasksWillExpire"
        case .open: "open"
        case .didReceivePush: "didReceivePush"
        case .didWake: "didWake"
        case .didReceiveNotification: "didReceiveNotification"
        case .willSuspend: "willSuspend"
        case .didResume: "didResume"
        case .scene: "scene"
        case .takeSnapshot: "takeSnapshot"
        case .takeSceneSnapshot: "takeSceneSnapshot"
        case .didDiscardScenes: "didDiscardScenes"
        case .withdraw: "withdraw"
        }
    }
}

extension Duration {
    /// A time span of the C library in microseconds; `nil` if it has no limit.
    init?(limit microseconds: UInt64) {
        guard microseconds != UInt64.max else { return nil }
        self = .microseconds(Int64(clamping: microseconds))
    }
}

/// A text of the C library; empty if the event has none.
func text(_ pointer: UnsafePointer<CChar>?) -> String { pointer.map { String(cString: $0) } ?? "" }

private func texts(_ event: greenroom_event) -> [String] {
    (0..<event.n_names).map { text(event.names?[$0]) }
}
