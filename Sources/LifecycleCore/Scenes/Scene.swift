/// Names a scene of an app: 1 to 64 of the characters `A-Z`, `a-z`, `0-9`, `_`, `.` and `-`.
package struct SceneID: Hashable, Comparable, Sendable, CustomStringConvertible {
    package let name: String

    /// The longest name, in bytes.
    package static let maximumLength = 64
    /// The scene that every app begins with: a window.
    package static let main = SceneID(known: "main")

    private init(known name: String) { self.name = name }

    /// `nil` if `name` is not a valid ID.
    package init?(_ name: String) {
        let bytes = name.utf8
        guard !bytes.isEmpty, bytes.count <= Self.maximumLength, bytes.allSatisfy(AppID.isAllowed) else { return nil }
        self.name = name
    }

    /// What a name has to be, as the end of a sentence.
    package static let rule = "1 to \(maximumLength) of the characters A-Z a-z 0-9 _ . -"

    package var description: String { name }
    package static func < (a: SceneID, b: SceneID) -> Bool { a.name < b.name }
}

/// What a scene is shown on. The raw values are the words of the interfaces. The positions of the cases are saved: new ones go to the end.
package enum SceneRole: String, CaseIterable, Hashable, Sendable {
    case window
    /// An external display.
    case external
    case panel
}

/// What a scene is to the user, in UIKit's words (`UIScene.ActivationState`), from the least active to the most (L34). The positions
/// of the cases are saved.
package enum SceneState: Int, CaseIterable, Comparable, Hashable, Sendable {
    case unattached, background, foregroundInactive, foregroundActive

    /// The word of the interfaces.
    package var name: String {
        switch self {
        case .unattached: "unattached"
        case .background: "background"
        case .foregroundInactive: "foregroundInactive"
        case .foregroundActive: "foregroundActive"
        }
    }

    package static func < (a: SceneState, b: SceneState) -> Bool { a.rawValue < b.rawValue }

    /// The next state on the way to another one, and what the app is notified of. Traps if both are equal.
    func step(towards target: SceneState) -> (state: SceneState, notice: SceneNotice) {
        switch (self, target > self) {
        case (.unattached, _): (.background, .willConnect)
        case (.background, true): (.foregroundInactive, .willEnterForeground)
        case (.foregroundInactive, true): (.foregroundActive, .didBecomeActive)
        case (.foregroundActive, _): (.foregroundInactive, .willResignActive)
        case (.foregroundInactive, false): (.background, .didEnterBackground)
        case (.background, false): (.unattached, .didDisconnect)
        }
    }
}

extension AppState {
    /// The state of a scene that is as active as its app; `nil`: the app shows none.
    package var sceneState: SceneState? {
        switch self {
        case .active: .foregroundActive
        case .inactive: .foregroundInactive
        case .background, .suspended: .background
        case .launching, .terminating, .notRunning: nil
        }
    }
}

/// What an app is notified of for one of its scenes. The raw values are words of the app's connection. The positions of the cases are saved.
package enum SceneNotice: String, CaseIterable, Hashable, Sendable {
    /// A user has asked for a scene that is not there: the app creates it.
    case willConnect = "sceneWillConnect"
    case willEnterForeground = "sceneWillEnterForeground"
    case didBecomeActive = "sceneDidBecomeActive"
    case willResignActive = "sceneWillResignActive"
    case didEnterBackground = "sceneDidEnterBackground"
    /// It was disconnected to free memory, or closed by a user: the app destroys it.
    case didDisconnect = "sceneDidDisconnect"

    /// The state that the scene has then.
    package var state: SceneState {
        switch self {
        case .willConnect, .didEnterBackground: .background
        case .willEnterForeground, .willResignActive: .foregroundInactive
        case .didBecomeActive: .foregroundActive
        case .didDisconnect: .unattached
        }
    }
}

/// What a client can ask of one scene of an app.
package enum SceneRequest: CaseIterable, Hashable, Sendable {
    /// To the foreground. The app is asked to create a scene that it does not have.
    case activate
    case background
    /// The user does not want it any more: its state and its snapshot go with it. The positions of the cases are saved.
    case close
}

/// One face of an app (L34). Whether it is in the foreground follows from the app and its foreground slots.
struct Scene: Hashable, Sendable {
    let id: SceneID
    let role: SceneRole
    /// What the app was notified of last.
    var state: SceneState
    /// False: it is to be disconnected, or is. An app that cannot run is notified later.
    var isConnected = true
    /// A user has closed it, and the app is to be notified of it: then it is no scene of the app any more.
    var isClosed = false
    /// Of a scene that outlived its process: it comes back when the app is in the foreground again.
    var wasInFront = false

    /// Whether it is what an app has that begins no scene.
    var isMainWindow: Bool { id == .main && role == .window }

    /// The state that users see.
    var shown: SceneState { isConnected ? state : .unattached }
}

/// A slot in the foreground (L12). It belongs to a scene.
struct ForegroundSlot: Hashable, Sendable {
    let app: AppIndex
    var scene = SceneID.main
    /// The role of the scene.
    var role = SceneRole.window
    /// The user is away (L15): the scene returns to the foreground when the user does. All slots of an app are, or none.
    var isDeferred = false
}
