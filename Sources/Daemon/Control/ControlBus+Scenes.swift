import Control
import LifecycleCore
import Manifest
import Posix
import Systemd

/// Requests for one scene of an app (L34).
extension ControlBus {
    func sceneMethods() -> [BusMethod] {
        func method(_ name: String, _ what: SceneRequest) -> BusMethod {
            BusMethod(name, in: "ss", out: "a{sv}", arguments: ["app", "scene"], results: ["result"]) {
                [unowned self] call in self.requestScene(call, call.text(0), call.text(1), what)
            }
        }
        return [
            method("ActivateScene", .activate), method("BackgroundScene", .background), method("CloseScene", .close),
        ]
    }

    func sceneMethodsOfApp() -> [BusMethod] {
        func method(_ name: String, _ what: SceneRequest) -> BusMethod {
            BusMethod(name, in: "s", out: "a{sv}", arguments: ["scene"], results: ["result"]) {
                [unowned self] call in self.requestScene(call, call.target.id, call.text(0), what)
            }
        }
        return [
            method("ActivateScene", .activate), method("BackgroundScene", .background), method("CloseScene", .close),
        ]
    }

    private func requestScene(_ call: MethodCall, _ app: String, _ name: String, _ what: SceneRequest) {
        guard let scene = scene(call, name) else { return }
        request(call, app, .scene(scene, what))
    }

    /// - Returns: `nil`: it is not valid, and the call was answered.
    func scene(_ call: MethodCall, _ name: String) -> SceneID? {
        guard let scene = SceneID(name) else {
            invalid(call, "Invalid scene '\(name.printable(upTo: 32))'; expected \(SceneID.rule).")
            return nil
        }
        return scene
    }
}

extension ControlService {
    /// The scene whose snapshot stands for that of the app: the window that was activated last, of those with one. `nil`: the app has a
    /// snapshot itself, or no scene has.
    func sceneForSnapshot(of id: AppID, _ view: AppView?) -> SceneID? {
        let stored = context.storage.stored
        guard stored.snapshotFacts(of: id) == nil else { return nil }
        let windows = view?.ownScenes.filter { $0.role == .window }.map(\.id) ?? []
        return (windows.isEmpty ? [.main] : windows).last { stored.snapshotFacts(of: id, $0) != nil }
    }

    /// The scenes of an app, with the times of their snapshots. `main` alone is not among them, unless it has a snapshot.
    func scenes(_ id: AppID, _ view: AppView) -> [SceneStatus] {
        let isHidden = context.manifests[id]?.value.policy.hidesSnapshot ?? false
        let mainAlone = view.ownScenes.isEmpty ? view.mainScene : nil
        return (view.ownScenes + (mainAlone.map { [$0] } ?? [])).compactMap { scene in
            let time = isHidden ? nil : context.storage.stored.snapshotFacts(of: id, scene.id)?.time
            if time == nil, scene.id == mainAlone?.id { return nil }
            // Scenes of an app that is terminating are not notified any more.
            let state = view.state.sceneState.map { min($0, scene.state) }
            var status = SceneStatus(scene, presentation(of: id, state))
            status.snapshotTime = time
            return status
        }
    }
}
