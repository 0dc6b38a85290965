import LifecycleCore

extension Notice {
    /// Whether it is about the state of a scene, which a suspended app reads when it is thawed.
    var isOfScene: Bool {
        if case .scene = self { return true }
        if case .sceneClosed = self { return true }
        return false
    }

    var word: String {
        switch self {
        case .willResignActive(.interruption): "willResignActive (interruption)"
        case .willResignActive(.background): "willResignActive"
        case .didEnterBackground: "didEnterBackground"
        case .willEnterForeground: "willEnterForeground"
        case .didBecomeActive(.launch): "didBecomeActive (launch)"
        case .didBecomeActive(.return): "didBecomeActive (return)"
        case .didBecomeActive(.interruptionEnded): "didBecomeActive (interruption ended)"
        case .willTerminate: "willTerminate"
        case .memoryWarning(.normal): "memoryWarning (normal)"
        case .memoryWarning(.warning): "memoryWarning (warning)"
        case .memoryWarning(.critical): "memoryWarning (critical)"
        case .tasksExpiring: "tasksExpiring"
        case .openURL(let url): "openURL “\(url)”"
        case .willSuspend: "willSuspend"
        case .didResume(_, let changed): "didResume, changed: \(changed.joined(separator: " "))"
        case .scene(let id, let notice): "\(notice.rawValue) \(id)"
        case .sceneClosed(let id): "sceneDidDisconnect \(id) (closed)"
        case .didDiscardScenes(let list): "didDiscardScenes \(list.map(\.name).joined(separator: " "))"
        case .takeSnapshot: "takeSnapshot"
        case .withdraw: "withdraw"
        case .takeSceneSnapshot(let id): "takeSceneSnapshot \(id)"
        }
    }
}

extension Line {
    mutating func add(_ handled: HandledNotices) {
        add(handled.isEmpty ? " has no connection" : " handles")
        if handled.contains(.didEnterBackground) { add(" didEnterBackground") }
        if handled.contains(.openURL) { add(" openURL") }
        if handled.contains(.willSuspend) { add(" willSuspend") }
        if handled.contains(.didResume) { add(" didResume") }
        if handled.contains(.scenes) { add(" scenes") }
        if handled.contains(.takeSnapshot) { add(" takeSnapshot") }
        if handled.contains(.takeSceneSnapshot) { add(" takeSceneSnapshot") }
        if handled.contains(.withdraw) { add(" withdraw") }
        if handled.contains(.didDiscardScenes) { add(" didDiscardScenes") }
    }
}
