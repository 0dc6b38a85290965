package import LifecycleCore

/// Which apps another order of jetsam would have killed, decision by decision.
///
/// The recorded core is played as it was. At each event, a copy of it that has the other order handles the same event, and is then
/// dropped. So each decision is judged by what was recorded until then: what another decision would have changed later is not
/// known. A size that the copy asks for, and that was not measured, is taken as the core knows it.
package struct JetsamReplay {
    /// What was decided at one time.
    package struct Decision: Equatable, Sendable {
        package struct Victim: Equatable, Sendable {
            package var app: AppID
            /// The footprint in bytes, as the core knew it.
            package var memory: UInt64
            package var state: AppState
        }

        package var at: Instant
        package var recorded: [Victim]
        package var other: [Victim]
    }

    /// The other order; `nil`: the recorded one, and `other` is empty.
    private let order: ManagerPolicy.JetsamOrder?
    package private(set) var decisions: [Decision] = []
    /// What the copy would have killed while the recorded core waits for the sizes of its candidates (L39).
    private var early: [Decision.Victim] = []
    private var earlySince: Instant?
    private var otherEffects: [Decision.Victim] = []

    /// Sizes follow their question within this time; later, it was about another shortage.
    private static let longestWait = Duration.seconds(10)

    package init(order: ManagerPolicy.JetsamOrder?) { self.order = order }

    package mutating func take(_ step: Player.Step) {
        switch step {
        case .began:
            early = []
            earlySince = nil
        case .event(let logged, let core): otherEffects = alternative(logged, core)
        case .handled(let logged, let effects, let core): decide(logged.at, effects, core)
        }
    }

    /// The victims of the other order at this event.
    private func alternative(_ logged: LoggedEvent, _ core: LifecycleCore) -> [Decision.Victim] {
        guard let order, logged.event.mayKillForMemory else { return [] }
        var copy = core.choosing(order)
        var victims: [Decision.Victim] = []
        var events = [logged.event]
        // Each answer makes one size exact, so this ends; 16 victims at once and their successors need far fewer.
        var rest = 256
        while let event = events.popLast(), rest > 0 {
            rest -= 1
            let before = copy
            let effects = copy.handle(event, at: logged.at)
            victims += Self.victims(effects, copy, logged.at)
            for case .run(let run, .memory(.measureSize)) in effects {
                let size = before.app(of: run).flatMap { before.view(of: $0, at: logged.at)?.memory } ?? 0
                events.append(.run(run, .memory(.sizeMeasured(bytes: size, estimate: size))))
            }
        }
        return victims
    }

    private mutating func decide(_ now: Instant, _ effects: [Effect], _ core: LifecycleCore) {
        let recorded = Self.victims(effects, core, now)
        if let since = earlySince, now - since > Self.longestWait { (early, earlySince) = ([], nil) }
        let asks = effects.contains { if case .run(_, .memory(.measureSize)) = $0 { true } else { false } }
        if recorded.isEmpty, asks, !otherEffects.isEmpty {
            // The recorded core kills once it knows the sizes.
            if earlySince == nil { (early, earlySince) = (otherEffects, now) }
            return
        }
        let other = early.isEmpty || recorded.isEmpty ? otherEffects : early
        if recorded.isEmpty && other.isEmpty { return }
        if !recorded.isEmpty { (early, earlySince) = ([], nil) }
        // While the recorded core waits, its copies kill at every event.
        if recorded.isEmpty, earlySince != nil { return }
        decisions.append(Decision(at: now, recorded: recorded, other: other))
    }

    /// The apps that are killed, or notified that they terminate, to free memory.
    private static func victims(_ effects: [Effect], _ core: LifecycleCore, _ now: Instant) -> [Decision.Victim] {
        effects.compactMap { effect in
            guard case .report(.stateChanged(let app, let from, _, .jetsam)) = effect else { return nil }
            return Decision.Victim(app: app, memory: core.view(of: app, at: now)?.memory ?? 0, state: from)
        }
    }
}

extension Event {
    /// Whether the core may kill an app for memory while it handles the event.
    fileprivate var mayKillForMemory: Bool {
        switch self {
        case .memory, .deadlineReached, .run(_, .memory(.sizeMeasured)),
            .run(_, .suspension(.footprintMeasured)), .run(_, .suspension(.frozen)), .run(_, .process(.emptied)),
            .run(_, .process(.exited)):
            true
        case .run, .configuration, .recovered, .requested, .requestAbandoned,
            .shutdownRequested, .absence, .socketsReady, .timer, .observed:
            false
        }
    }
}
