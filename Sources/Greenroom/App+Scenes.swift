import CGreenroom

/// What becomes of a scene of the app: a window, for example.
public enum SceneNotice: String, CaseIterable, Sendable {
    /// A user has asked for a scene that the app does not have: create it.
    case willConnect = "sceneWillConnect"
    /// It will be shown.
    case willEnterForeground = "sceneWillEnterForeground"
    /// It gets input.
    case didBecomeActive = "sceneDidBecomeActive"
    /// It will stop being active.
    case willResignActive = "sceneWillResignActive"
    /// It is not shown any more.
    case didEnterBackground = "sceneDidEnterBackground"
    /// Memory is short, and the scene was in the background, or a user has closed it: destroy it.
    case didDisconnect = "sceneDidDisconnect"
}

/// What a scene is shown on.
public enum SceneRole: String, CaseIterable, Sendable {
    case window
    /// An external display.
    case external
    case panel
}

extension App {
    /// Begins a scene, or shows one that the app has. Each app begins with the scene `main`, a window.
    ///
    /// - Throws: `GreenroomError.refused` with a sentence if the name is not valid, or the app has too many.
    public func beginScene(_ name: String, role: SceneRole = .window) throws(GreenroomError) {
        try call { greenroom_begin_scene($0, name, role.rawValue) }
    }

    /// Ends a scene. It is no error to end one that the app does not have.
    public func endScene(_ name: String) throws(GreenroomError) {
        try call { greenroom_end_scene($0, name) }
    }
}
