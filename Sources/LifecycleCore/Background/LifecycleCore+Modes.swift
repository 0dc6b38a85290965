/// Background modes: what an app does for as long as it lasts, such as playing audio (L28). Unlike tasks they have no budget, and their
/// time is not counted (L53): the manifest declares them. An inhibitor of logind, which the administrator's policy allows, needs no
/// declaration.
extension LifecycleCore {
    /// Each mode once, and an inhibitor.
    static let maximumModes = 8

    /// A mode is on or off, however often it is begun.
    mutating func modeBegan(_ index: Int, _ mode: BackgroundModes, _ now: Instant) {
        let isDeclared = BackgroundModes.assertable.contains(mode) && apps[index].policy.backgroundModes.contains(mode)
        switch apps[index].phase {
        case .ending, .notRunning: return
        case .terminating: return refuse(index, mode)
        case .launching, .foreground, .enteringBackground, .background, .suspending, .suspended, .waking:
            guard isDeclared else { return refuse(index, mode) }
        }
        guard !self[run: index].modes.contains(where: { $0.asserted == mode }) else { return }
        hold(index, HeldMode(kind: .asserted(mode), began: now), now)
        report(.modeBegan(apps[index].id, mode))
    }

    private mutating func refuse(_ index: Int, _ mode: BackgroundModes) {
        effects.append(.warn(self[run: index].id, .modeRefused(mode)))
    }

    mutating func modeEnded(_ index: Int, _ mode: BackgroundModes, _ now: Instant) {
        guard release(index, now, where: { $0.asserted == mode }) else { return }
        report(.modeEnded(apps[index].id, mode))
    }

    /// - Parameter inhibitor: what it inhibits; `nil`: processes of the app hold none.
    mutating func inhibitorChanged(_ index: Int, _ inhibitor: String?, _ now: Instant) {
        guard let inhibitor else {
            _ = release(index, now) { $0.asserted == nil }
            return
        }
        switch apps[index].phase {
        case .terminating, .ending, .notRunning: return
        case .launching, .foreground, .enteringBackground, .background, .suspending, .suspended, .waking: break
        }
        if let position = self[run: index].modes.firstIndex(where: { $0.asserted == nil }) {
            self[run: index].modes[position].kind = .inhibitor(inhibitor)
            return
        }
        hold(index, HeldMode(kind: .inhibitor(inhibitor), began: now), now)
    }

    /// A reload: the manifest no longer declares a mode.
    mutating func endUndeclaredModes(_ index: Int, _ now: Instant) {
        guard apps[index].run != nil else { return }
        let declared = apps[index].policy.backgroundModes
        for mode in self[run: index].modes.compactMap(\.asserted) where !declared.contains(mode) {
            modeEnded(index, mode, now)
        }
    }

    private mutating func hold(_ index: Int, _ mode: HeldMode, _ now: Instant) {
        self[run: index].modes.append(mode)
        // The time of its tasks does not run meanwhile.
        cancel(index, self[run: index].budget.deadline)
        self[run: index].budget = .idle
        assertionBegan(index, now)
    }

    /// - Returns: whether there was one.
    private mutating func release(_ index: Int, _ now: Instant, where isMeant: (HeldMode) -> Bool) -> Bool {
        guard let position = self[run: index].modes.firstIndex(where: isMeant) else { return false }
        self[run: index].modes.remove(at: position)
        guard self[run: index].modes.isEmpty else { return true }
        switch apps[index].phase {
        // As when it entered the background (L21).
        case .enteringBackground, .background, .suspending, .waking:
            startBudget(index, apps[index].policy.backgroundBudget, now)
        case .notRunning, .launching, .foreground, .suspended, .terminating, .ending: break
        }
        assertionEnded(index, now)
        return true
    }

    /// Whether the app asserts a mode.
    @inline(__always)
    func asserts(_ index: Int, _ mode: BackgroundModes) -> Bool {
        guard case .running(let running) = apps[index].life else { return false }
        return !running.sharedStorage.run.assertedModes.isDisjoint(with: mode)
    }
}
