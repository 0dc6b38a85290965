import LifecycleCore

/// The commands of hooks: quick, slow, failing, refusing, and such that never end.
extension World {
    mutating func addHooks(to index: Int) {
        guard scenario.hasHooks else { return }
        apps[index].policy.hooks = HookKinds(rawValue: UInt8(hookRandom.below(16)))
    }

    /// The end of a hook that was killed comes nevertheless, if it was on its way.
    mutating func runHook(_ hook: Hook, _ number: Int, of run: Int) {
        runs[run].lastHook = number
        if !isQuiet, hookRandom.chance(100) { return }
        let delay = hookRandom.pick([
            hookRandom.within(100...2000), hookRandom.within(5 * .millisecond...800 * .millisecond),
            hookRandom.within(0...8 * .second),
        ])
        let outcomes: [HookOutcome] = [
            .ended(.exited(0)), .ended(.exited(0)), .ended(.exited(1)), .refusal, .ended(.kill),
            .notStarted("the program does not exist"),
        ]
        deliver(.run(runs[run].id, .hookEnded(number: number, hookRandom.pick(outcomes))), after: delay)
    }
}
