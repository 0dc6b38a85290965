import LifecycleCore

/// The credits of `JetsamOrder=balanced`, from the effects of the core.
extension CoreModel {
    /// Counts launches, wakes and stays in the foreground as uses. A victim of jetsam raises the level. Called before the
    /// effect is recorded otherwise.
    mutating func recordUse(_ effect: Effect, _ app: Int?) {
        guard let app, manager.jetsamOrder == .balanced else { return }
        switch effect {
        case .spawn: countUse(app, halves: true)
        case .thaw: countUse(app, halves: false)
        case .report(.stateChanged(_, _, .active, _)), .report(.stateChanged(_, _, .inactive, _)):
            if apps[app].phase != .foreground { countUse(app, halves: false) }
        case .report(.stateChanged(_, _, .terminating, .jetsam)) where apps[app].phase == .ending:
            jetsamLevel = max(jetsamLevel, apps[app].credit)
            apps[app].useLevel = jetsamLevel
        case .report(.stateChanged(_, .active, _, _)), .report(.stateChanged(_, .inactive, _, _)):
            apps[app].useLevel = jetsamLevel
        default: break
        }
    }

    private mutating func countUse(_ app: Int, halves: Bool) {
        apps[app].uses = min(32, apps[app].uses / (halves ? 2 : 1) + 1)
        apps[app].useLevel = jetsamLevel
    }
}

extension AppModel {
    /// Uses for each KiB, of which 64 MiB are added to the size, above the level at the last use.
    var credit: UInt64 { useLevel + uses * ((1 << 40) / (memory / 1024 + 65536)) }
}

extension World {
    /// In every fifth seed the order is `balanced`, whatever was drawn.
    mutating func balanceJetsam() {
        if scenario.seed % 5 == 3 { manager.jetsamOrder = .balanced }
    }
}
