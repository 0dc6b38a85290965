import LifecycleCore
import LifecycleSimulator
import Testing

/// The real core with one thing broken: what it is given, what it says, or both.
struct Mutant: DecidingCore {
    /// Gets the event and what goes in and out of the core; returns the effects that the mutant claims to be the core's.
    typealias Break = (inout Mutant, Event, Instant) -> [Effect]

    var core: LifecycleCore
    let handling: Break
    var changesView: ((AppView) -> AppView)?
    var changesDeadline: ((Instant?, Instant) -> Instant?)?
    /// What goes wrong when it is recovered.
    var recovering: ((inout Mutant) -> Void)?
    /// When it was last given something.
    var now = Instant.origin
    /// Whatever the break wants to remember.
    var suspended: [RunID] = []
    var running: [RunID] = []
    var count = 0

    mutating func handle(_ event: Event, at now: Instant) -> [Effect] {
        self.now = now
        let effects = handling(&self, event, now)
        note(event, effects)
        return effects
    }

    private mutating func note(_ event: Event, _ effects: [Effect]) {
        if case .run(let run, .frozen(_, _)) = event { suspended.append(run) }
        if case .run(let run, .executed) = event { running.append(run) }
        if case .run(let run, .exited(_, _, _)) = event {
            running.removeAll { $0 == run }
            suspended.removeAll { $0 == run }
        }
        for effect in effects {
            switch effect {
            case .thaw(let run, _): suspended.removeAll { $0 == run }
            case .kill(let run):
                running.removeAll { $0 == run }
                suspended.removeAll { $0 == run }
            default: break
            }
        }
    }

    var nextDeadline: Instant? {
        guard let changesDeadline else { return core.nextDeadline }
        return changesDeadline(core.nextDeadline, now)
    }
    func view(of app: AppID, at now: Instant) -> AppView? {
        let view = core.view(of: app, at: now)
        guard let changesView else { return view }
        return view.map(changesView)
    }
    var appIDs: [AppID] { core.appIDs }
    var memory: MemoryView { core.memory }
    var runIDs: [RunID] { core.runIDs }
    var saved: SavedCore { core.saved }
    mutating func recover(from saved: SavedCore) {
        core.recover(from: saved)
        recovering?(&self)
    }
    func difference(from other: Self) -> String? { core.difference(from: other.core) }
}

/// One way to break the core, and the rule that has to notice.
struct Breakage: Sendable, CustomTestStringConvertible {
    let name: String
    let rule: Rule
    /// The number tells the core (0) from its twin (1).
    let makes: @Sendable (LifecycleCore, Int) -> Mutant

    var testDescription: String { name }

    /// Breaks what comes out.
    static func effects(
        _ name: String, _ rule: Rule, _ change: @escaping @Sendable ([Effect], Event, Mutant) -> [Effect]
    ) -> Breakage {
        Breakage(name: name, rule: rule) { core, _ in
            Mutant(core: core) { mutant, event, now in
                let effects = mutant.core.handle(event, at: now)
                return change(effects, event, mutant)
            }
        }
    }

    /// Leaves out effects.
    static func without(
        _ name: String, _ rule: Rule, _ isLeftOut: @escaping @Sendable (Effect) -> Bool
    ) -> Breakage {
        effects(name, rule) { effects, _, _ in effects.filter { !isLeftOut($0) } }
    }

    /// Breaks what goes in; `nil`: the core never hears of it.
    static func events(
        _ name: String, _ rule: Rule, _ change: @escaping @Sendable (Event) -> Event?
    ) -> Breakage {
        Breakage(name: name, rule: rule) { core, _ in
            Mutant(core: core) { mutant, event, now in
                change(event).map { mutant.core.handle($0, at: now) } ?? []
            }
        }
    }

    /// Breaks what the manifests say.
    static func policies(
        _ name: String, _ rule: Rule, _ change: @escaping @Sendable (inout AppPolicy) -> Void
    ) -> Breakage {
        events(name, rule) { event in
            guard case .registered(let id, var policy, let launches) = event else { return event }
            change(&policy)
            return .registered(id, policy, launches: launches)
        }
    }

    /// Answers an effect itself, at once, in place of the kernel.
    static func answering(
        _ name: String, _ rule: Rule, _ outcome: @escaping @Sendable (Effect) -> Event?
    ) -> Breakage {
        Breakage(name: name, rule: rule) { core, _ in
            Mutant(core: core) { mutant, event, now in
                var done: [Effect] = []
                for effect in mutant.core.handle(event, at: now) {
                    guard let outcome = outcome(effect) else {
                        done.append(effect)
                        continue
                    }
                    done += mutant.core.handle(outcome, at: now)
                }
                return done
            }
        }
    }
}
