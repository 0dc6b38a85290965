import LifecycleCore

/// Checks what follows from background modes (L28). `SuspensionChecker` checks that an app without one is suspended in time.
struct ModeChecker {
    /// By app: the modes that were reported to have begun, and not to have ended.
    private var reported: [BackgroundModes]

    init(apps count: Int) { reported = Array(repeating: [], count: count) }

    mutating func record(_ effect: Effect, of app: Int?, _ model: CoreModel, _ findings: inout Findings) {
        guard let app else { return }
        let known = model.apps[app]
        switch effect {
        case .spawn: reported[app] = []
        case .report(.modeBegan(let id, let mode)):
            findings.check(
                !reported[app].contains(mode), .modesAreReported,
                "\(id): mode \(mode.name) begins, and is reported already")
            reported[app].insert(mode)
        case .report(.modeEnded(let id, let mode)):
            findings.check(
                reported[app].contains(mode), .modesAreReported, "\(id): mode \(mode.name) ends, and had not begun")
            reported[app].remove(mode)
        case .run(let run, .warn(.modeRefused(let mode))) where known.run == run && known.mayBeInMode:
            findings.check(
                !known.modes.declared.contains(mode), .modesAreReported,
                "\(known.id): mode \(mode.name) is refused, although its manifest declares it")
        default: break
        }
    }

    /// Checks an app after all effects of one event.
    func verify(of app: Int, _ model: CoreModel, _ findings: inout Findings) {
        let known = model.apps[app]
        guard known.mayBeInMode else { return }
        let names = known.heldModes.names
        findings.check(
            reported[app] == known.heldModes, .modesAreReported,
            "\(known.id) is in the modes \(names), but \(reported[app].names) are reported")
        findings.check(
            known.phase != .suspended && known.phase != .suspending || !known.isHeldByMode, .workKeepsAwake,
            "\(known.id) is \(known.phase) in the modes \(names), or with an inhibitor (\(known.modes.isInhibited))")
    }

    /// Checks what `status` says.
    func verify(_ app: Int, _ view: AppView?, _ model: CoreModel, _ findings: inout Findings) {
        let known = model.apps[app]
        guard let view, known.mayBeInMode else { return }
        findings.check(
            view.modes == known.heldModes && (view.inhibitor != nil) == known.modes.isInhibited, .modesAreReported,
            "\(known.id) is in the modes \(known.heldModes.names), but its status names \(view.modes.names)")
    }
}

extension BackgroundModes {
    /// The names, for sentences.
    fileprivate var names: [String] { Self.named.filter { contains($0.mode) }.map(\.name) }
}
