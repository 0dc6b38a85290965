import Control
import LifecycleCore
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
        return [method("ActivateScene", .activate), method("BackgroundScene", .background)]
    }

    func sceneMethodsOfApp() -> [BusMethod] {
        func method(_ name: String, _ what: SceneRequest) -> BusMethod {
            BusMethod(name, in: "s", out: "a{sv}", arguments: ["scene"], results: ["result"]) {
                [unowned self] call in self.requestScene(call, call.target.id, call.text(0), what)
            }
        }
        return [method("ActivateScene", .activate), method("BackgroundScene", .background)]
    }

    private func requestScene(_ call: MethodCall, _ app: String, _ name: String, _ what: SceneRequest) {
        guard let scene = SceneID(name) else {
            return invalid(call, "Invalid scene '\(name.printable(upTo: 32))'; expected \(SceneID.rule).")
        }
        request(call, app, .scene(scene, what))
    }
}

extension SceneStatus {
    init(_ scene: AppView.Scene) {
        self.init(id: scene.id.name, role: scene.role.rawValue, state: scene.state.name)
    }
}
