import Control
import LifecycleCore
import Manifest

/// How an app, or one of its scenes, is to be shown (L55).
struct Presentation: Equatable {
    /// Whether it may be shown.
    let isVisible: Bool
    /// Whether keys and touches are for it.
    let receivesInput: Bool
    /// How the device is held, while it is visible; empty: it is not, or that is not known.
    let orientation: String
    let notices: NoticeStyle

    /// - Parameters:
    ///   - state: of the scene; of an app, that of its most active one; `nil`: the app has none to show.
    ///   - orientation: how the device is held; empty: that is not known.
    init(_ state: SceneState?, orientation: String, notices: NoticeStyle) {
        isVisible = state.map { $0 >= .foregroundInactive } ?? false
        receivesInput = state == .foregroundActive
        self.orientation = isVisible ? orientation : ""
        self.notices = notices
    }
}

extension SceneStatus {
    init(_ scene: AppView.Scene, _ presentation: Presentation) {
        self.init(id: scene.id.name, role: scene.role.rawValue, state: scene.state.name)
        isVisible = presentation.isVisible
        receivesInput = presentation.receivesInput
        orientation = presentation.orientation.isEmpty ? nil : presentation.orientation
        noticeStyle = presentation.notices.rawValue
    }
}

extension ControlService {
    /// How the device is held, if an app is notified of it; otherwise empty.
    var orientation: String { context.wakes.systemEvents.orientation ?? "" }

    func presentation(of id: AppID, _ state: SceneState?) -> Presentation {
        Presentation(state, orientation: orientation, notices: context.manifests[id]?.value.notices ?? .banner)
    }
}
