import LifecycleCore
import LifecycleSimulator
import Testing

/// The real core with one fault: in its events, its effects, or both.
struct Mutant: DecidingCore {
    /// Handles an event with the core. Returns the effects of the mutant.
    typealias Break = (inout Mutant, Event, Instant) -> [Effect]

    var core: LifecycleCore
    let handling: Break
    /// The fault at a recovery.
    var recovering: ((inout Mutant) -> Void)?
    /// When the last event came.
    var now = Instant.origin
    /// State that faults use.
    var suspended: [RunID] = []
    var running: [RunID] = []
    var count = 0
    /// The last freeze of each run.
    var freezes: [RunID: Int] = [:]
    /// `IdleSec=` as it was first read.
    var idleTimes: [AppID: Duration] = [:]
    /// Runs whose inspection is under way.
    var inspecting: [RunID] = []
    /// `Budget=` as it was read last.
    var budget: UInt64?
    /// Runs that were killed.
    var killed: [RunID] = []
    /// By kind: the payload of the notification that was delivered last.
    var delivered: [String: String] = [:]

    mutating func handle(_ event: Event, at now: Instant) -> [Effect] {
        self.now = now
        let effects = handling(&self, event, now)
        record(event, effects)
        return effects
    }

    private mutating func record(_ event: Event, _ effects: [Effect]) {
        // One that holds file locks was thawed before (L43).
        if case .run(let run, .suspension(.frozen(let attempt, _, _))) = event, freezes[run] == attempt {
            suspended.append(run)
        }
        if case .run(let run, .process(.executed)) = event { running.append(run) }
        if case .run(let run, .process(.exited)) = event {
            running.removeAll { $0 == run }
            suspended.removeAll { $0 == run }
        }
        if case .run(let run, .deadline(.inspected)) = event { inspecting.removeAll { $0 == run } }
        for effect in effects {
            switch effect {
            case .run(let run, .suspension(.freeze(let attempt))): freezes[run] = attempt
            case .run(let run, .deadline(.inspect)): inspecting.append(run)
            case .run(let run, .suspension(.thaw(_))):
                suspended.removeAll { $0 == run }
                freezes[run] = nil
            case .run(let run, .kill):
                running.removeAll { $0 == run }
                suspended.removeAll { $0 == run }
            default: break
            }
        }
    }

    var nextDeadline: Instant? { core.nextDeadline }
    func view(of app: AppID, at now: Instant) -> AppView? { core.view(of: app, at: now) }
    var appIDs: [AppID] { core.appIDs }
    var memory: MemoryView { core.memory }
    var runIDs: [RunID] { core.runIDs }
    var saved: SavedCore { core.saved }
    mutating func recover(from saved: SavedCore) {
        core.recover(from: saved)
        recovering?(&self)
    }
    func difference(from other: Self) -> String? { core.difference(from: other.core) }
    var brokenInvariants: [BrokenInvariant] { core.brokenInvariants }
    mutating func continueAfterBrokenInvariants() { core.continueAfterBrokenInvariants() }
    mutating func verifyAll() { core.verifyAll() }
}

/// A fault of the core, and the rule that must find it.
struct MutantCase: Sendable, CustomTestStringConvertible {
    let name: String
    let rule: Rule
    /// Creates the mutant. The number is 0 for the core and 1 for its twin.
    let makes: @Sendable (LifecycleCore, Int) -> Mutant

    var testDescription: String { name }

    /// A fault in the effects.
    static func effects(
        _ name: String, _ rule: Rule, _ change: @escaping @Sendable ([Effect], Event, Mutant) -> [Effect]
    ) -> MutantCase {
        MutantCase(name: name, rule: rule) { core, _ in
            Mutant(core: core) { mutant, event, now in
                let effects = mutant.core.handle(event, at: now)
                return change(effects, event, mutant)
            }
        }
    }

    /// A fault that omits effects.
    static func without(
        _ name: String, _ rule: Rule, _ isLeftOut: @escaping @Sendable (Effect) -> Bool
    ) -> MutantCase {
        effects(name, rule) { effects, _, _ in effects.filter { !isLeftOut($0) } }
    }

    /// A fault in the events; `nil`: the event does not reach the core.
    static func events(
        _ name: String, _ rule: Rule, _ change: @escaping @Sendable (Event) -> Event?
    ) -> MutantCase {
        MutantCase(name: name, rule: rule) { core, _ in
            Mutant(core: core) { mutant, event, now in change(event).map { mutant.core.handle($0, at: now) } ?? [] }
        }
    }

    /// A fault in the manifests.
    static func policies(
        _ name: String, _ rule: Rule, _ change: @escaping @Sendable (inout AppPolicy) -> Void
    ) -> MutantCase {
        events(name, rule) { event in
            guard case .configuration(.registered(let id, var policy, let launches)) = event else { return event }
            change(&policy)
            return .configuration(.registered(id, policy, launches: launches))
        }
    }

    /// A fault that answers an effect immediately, instead of the kernel.
    /// - Parameter performing: the kernel performs it, too.
    static func answering(
        _ name: String, _ rule: Rule, performing: Bool = false, _ outcome: @escaping @Sendable (Effect) -> Event?
    ) -> MutantCase {
        MutantCase(name: name, rule: rule) { core, _ in
            Mutant(core: core) { mutant, event, now in
                var done: [Effect] = []
                for effect in mutant.core.handle(event, at: now) {
                    guard let outcome = outcome(effect) else {
                        done.append(effect)
                        continue
                    }
                    if performing { done.append(effect) }
                    done += mutant.core.handle(outcome, at: now)
                }
                return done
            }
        }
    }
}
