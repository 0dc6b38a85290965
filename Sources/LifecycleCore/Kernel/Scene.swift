/// Names a scene of an app.
struct SceneID: Hashable, Sendable {
    let number: UInt64
    /// The scene that every app has.
    static let main = SceneID(number: 0)
}

/// What a scene is to the user, in UIKit's words (`UIScene.ActivationState`), from the least active to the most (L34).
enum SceneActivation: CaseIterable, Comparable, Hashable, Sendable {
    case background, foregroundInactive, foregroundActive
}

/// One face of an app (L34). Scenes have a state of their own only while their app is in the foreground: all scenes of an
/// app that launches are unattached, and all scenes of an app in the background are in the background.
struct Scene: Hashable, Sendable {
    let id: SceneID
    var activation: SceneActivation
}

/// The scenes of an app in the foreground. There is always at least the main scene.
struct Scenes: Hashable, Sendable {
    var main: Scene
    private(set) var others: [Scene] = []

    init(_ activation: SceneActivation) { main = Scene(id: .main, activation: activation) }

    /// The app's state is that of its most active scene.
    var mostActive: SceneActivation { others.reduce(main.activation) { max($0, $1.activation) } }
}

/// A slot in the foreground (L12). It belongs to a scene.
struct ForegroundSlot: Hashable, Sendable {
    /// The index of the app.
    let app: Int
    let scene: SceneID
    /// The user is away (L15): the scene returns to the foreground when the user does.
    var isDeferred = false
}
