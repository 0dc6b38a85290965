import LifecycleCore
import LifecycleSimulator

extension MutantCase {
    private static func isOpening(_ effect: Effect) -> Bool {
        if case .run(_, .notify(.openURL)) = effect { true } else { false }
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
        .events("waits for a snapshot that it has", .suspendedInTime) { event in
            if case .run(_, .connection(.snapshotTaken)) = event { nil } else { event }
        },
        .events("waits for a withdrawal that was answered", .suspendedInTime) { event in
            if case .run(_, .connection(.withdrawn)) = event { nil } else { event }
        },
        .events("waits for a snapshot of a scene that it has", .suspendedInTime) { event in
            if case .run(_, .scene(.snapshotTaken)) = event { nil } else { event }
        },
    ]
}
