/// Background modes: what an app does for as long as it lasts, such as playing audio (L28). Unlike tasks they have no budget, and their
/// time is not counted (L53): the manifest declares them. An inhibitor of logind, which the administrator's policy allows, needs no
/// declaration.
extension LifecycleCore {
    /// Each mode, and an inhibitor: what an app asserts. Sources can show each mode as well.
    static let maximumModes = 8

    /// A mode is on or off, however often it is begun.
    mutating func modeBegan(_ index: AppIndex, _ mode: BackgroundModes, _ now: Instant) {
        let isDeclared = BackgroundModes.assertable.contains(mode) && apps[index].policy.backgroundModes.contains(mode)
        switch apps[index].phase {
        case .ending, .notRunning: return
        case .terminating: return refuse(index, mode)
        case .launching, .foreground, .enteringBackground, .background, .suspending, .suspended, .waking:
            guard isDeclared else { return refuse(index, mode) }
        }
        // It is asserted anew.
        self[run: index].unusedModes.remove(mode)
        guard !self[run: index].modes.contains(where: { $0.mode == mode && !$0.isShown }) else { return }
        hold(index, HeldMode(kind: .mode(mode), began: now), now)
    }

    private mutating func refuse(_ index: AppIndex, _ mode: BackgroundModes) {
        effects.append(.run(self[run: index].id, .warn(.modeRefused(mode))))
    }

    mutating func modeEnded(_ index: AppIndex, _ mode: BackgroundModes, _ now: Instant) {
        self[run: index].unusedModes.remove(mode)
        release(index, now) { $0.mode == mode && !$0.isShown }
    }

    /// Sources outside the program show these modes of it, and no others. They do not know its manifest: a mode that it does not
    /// declare counts once it does.
    mutating func modesShown(_ index: AppIndex, _ shown: BackgroundModes, _ now: Instant) {
        self[run: index].shownModes = shown.intersection(.assertable)
        followShownModes(index, now)
    }

    private mutating func followShownModes(_ index: AppIndex, _ now: Instant) {
        let shown = self[run: index].shownModes.intersection(apps[index].policy.backgroundModes)
        let held = self[run: index].modes.filter(\.isShown).compactMap(\.mode)
        for mode in held where !shown.contains(mode) { release(index, now) { $0.mode == mode && $0.isShown } }
        switch apps[index].phase {
        case .terminating, .ending, .notRunning: return
        case .launching, .foreground, .enteringBackground, .background, .suspending, .suspended, .waking: break
        }
        for mode in BackgroundModes.eachAssertable where shown.contains(mode) && !held.contains(mode) {
            hold(index, HeldMode(kind: .mode(mode), began: now, isShown: true), now)
        }
    }

    /// A mode that is not used keeps no app awake, until the app asserts it anew, or it is used after all.
    mutating func modesUnused(_ index: AppIndex, _ unused: BackgroundModes, _ now: Instant) {
        for mode in BackgroundModes.eachAssertable {
            if !unused.contains(mode) {
                if self[run: index].unusedModes.contains(mode) { modeBegan(index, mode, now) }
            } else if self[run: index].modes.contains(where: { $0.mode == mode && !$0.isShown }) {
                modeEnded(index, mode, now)
                self[run: index].unusedModes.insert(mode)
                effects.append(.run(self[run: index].id, .warn(.modeUnused(mode))))
            }
        }
    }

    /// - Parameter inhibitor: what it inhibits; `nil`: processes of the app hold none.
    mutating func inhibitorChanged(_ index: AppIndex, _ inhibitor: String?, _ now: Instant) {
        guard let inhibitor else { return release(index, now) { $0.mode == nil } }
        switch apps[index].phase {
        case .terminating, .ending, .notRunning: return
        case .launching, .foreground, .enteringBackground, .background, .suspending, .suspended, .waking: break
        }
        if let position = self[run: index].modes.firstIndex(where: { $0.mode == nil }) {
            self[run: index].modes[position].kind = .inhibitor(inhibitor)
            return
        }
        hold(index, HeldMode(kind: .inhibitor(inhibitor), began: now), now)
    }

    /// A reload: the manifest no longer declares a mode, or declares one that a source shows.
    mutating func declaredModesChanged(_ index: AppIndex, _ now: Instant) {
        guard apps[index].run != nil else { return }
        let declared = apps[index].policy.backgroundModes
        self[run: index].unusedModes.formIntersection(declared)
        for held in self[run: index].modes where !held.isShown {
            if let mode = held.mode, !declared.contains(mode) { modeEnded(index, mode, now) }
        }
        followShownModes(index, now)
    }

    private mutating func hold(_ index: AppIndex, _ mode: HeldMode, _ now: Instant) {
        let isNew = mode.mode.map { !self[run: index].modeSet.contains($0) } ?? false
        // Those that sources show are the last ones, as they are read from the logbook.
        let modes = self[run: index].modes
        let position = mode.isShown ? modes.endIndex : modes.firstIndex(where: \.isShown) ?? modes.endIndex
        self[run: index].modes.insert(mode, at: position)
        // The time of its tasks does not run meanwhile.
        cancel(index, self[run: index].budget.deadline)
        self[run: index].budget = .idle
        assertionBegan(index, now)
        if isNew, let mode = mode.mode { report(.modeBegan(apps[index].id, mode)) }
    }

    private mutating func release(_ index: AppIndex, _ now: Instant, where isMeant: (HeldMode) -> Bool) {
        guard let position = self[run: index].modes.firstIndex(where: isMeant) else { return }
        let released = self[run: index].modes.remove(at: position)
        if self[run: index].modes.isEmpty { allReleased(index, now) }
        if let mode = released.mode, !self[run: index].modeSet.contains(mode) {
            report(.modeEnded(apps[index].id, mode))
        }
    }

    private mutating func allReleased(_ index: AppIndex, _ now: Instant) {
        switch apps[index].phase {
        // As when it entered the background (L21).
        case .enteringBackground, .background, .suspending, .waking:
            startBudget(index, apps[index].policy.backgroundBudget, now)
            renewProgress(index, now)
        case .notRunning, .launching, .foreground, .suspended, .terminating, .ending: break
        }
        assertionEnded(index, now)
    }

    /// Whether the app is in one of these modes.
    @inline(__always)
    func isInMode(_ index: AppIndex, _ modes: BackgroundModes) -> Bool {
        guard case .running(let running) = apps[index].life else { return false }
        return !running.sharedStorage.run.modeSet.isDisjoint(with: modes)
    }
}
