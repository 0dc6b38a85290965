import LifecycleCore
import LifecycleSimulator

extension MutantCase {
    static let hooks: [MutantCase] = [
        .answering("assumes that a hook is over at once", .workKeepsAwake, performing: true) {
            if case .run(let run, .hook(.run(_, let number))) = $0 {
                .run(run, .hookEnded(number: number, .ended(.exited(0))))
            } else {
                nil
            }
        },
        .without("lets hooks run for ever", .hooksAreBounded) {
            if case .run(_, .hook(.kill)) = $0 { true } else { false }
        },
    ]
}
