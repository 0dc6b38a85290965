import LifecycleCore
import LifecycleSimulator

extension MutantCase {
    private static func isOpening(_ effect: Effect) -> Bool {
        if case .notify(_, .openURL) = effect { true } else { false }
    }

    static let connections: [MutantCase] = [
        .without("opens no URLs", .urlsAreOpened) { isOpening($0) },
        .effects("opens each URL twice", .urlsAreOpened) { effects, _, _ in
            effects.flatMap { isOpening($0) ? [$0, $0] : [$0] }
        },
        .effects("opens URLs once the app is active", .urlsAreOpened) { effects, _, _ in
            effects.filter { !isOpening($0) } + effects.filter { isOpening($0) }
        },
        .effects("opens the last URL first", .urlsAreOpened) { effects, _, _ in
            var urls = effects.filter { isOpening($0) }
            return effects.map { isOpening($0) ? urls.removeLast() : $0 }
        },
        .without("does not notify that the app is suspended", .suspensionsAreNotified) {
            if case .notify(_, .willSuspend) = $0 { true } else { false }
        },
        .without("does not notify that the app was suspended", .suspensionsAreNotified) {
            if case .notify(_, .didResume) = $0 { true } else { false }
        },
        .without("asks no app for a snapshot", .snapshotsAreAskedFor) {
            if case .notify(_, .takeSnapshot) = $0 { true } else { false }
        },
        .events("waits for a snapshot that it has", .suspendedInTime) { event in
            if case .run(_, .snapshotTaken) = event { nil } else { event }
        },
        .effects("tells every app that it returns", .causesAreTrue) { effects, _, _ in
            effects.map { effect in
                if case .notify(let run, .didBecomeActive) = effect {
                    .notify(run, .didBecomeActive(.return))
                } else {
                    effect
                }
            }
        },
        .effects("takes every interruption for the background", .causesAreTrue) { effects, _, _ in
            effects.map { effect in
                if case .notify(let run, .willResignActive) = effect {
                    .notify(run, .willResignActive(.background))
                } else {
                    effect
                }
            }
        },
        .without("does not report that a scene becomes active", .scenesFollowApps) {
            if case .report(.sceneChanged(_, _, _, .foregroundActive)) = $0 { true } else { false }
        },
        .events("lets apps wait that have finished", .answeredEndsAreImmediate) { event in
            if case .run(_, .terminationAnswered) = event { nil } else { event }
        },
    ]
}
