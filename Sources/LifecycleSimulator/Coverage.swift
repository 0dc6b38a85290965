import LifecycleCore

/// The kinds of events in the coverage table.
package enum EventKind: Int, CaseIterable, Sendable {
    case registered, unregistered, configured, started
    case launchForeground, launchBackground, launchWake, activate, background, interrupt, interruptWhileConnected
    case endInterruption, terminate, remove, cancelTask
    case push, send, requestAbandoned, shutdown
    case spawned, executed, spawnFailed, notifiedBackground, notifiedTerminate, frozen, footprintMeasured, sizeMeasured,
        freezeLost,
        thawed, reclaimed, inspected,
        exited, emptied
    case ready, backgroundEntered, stopped, continued, taskBegan, taskEnded, taskProgressed, modeBegan, modeEnded,
        inhibitorChanged,
        modesShown, modesUnused,
        timeoutExtended, wakeCompleted, heartbeat
    case heartbeatGivenUp, heartbeatTimeChanged, stopping, mainProcessChanged
    case sleepRequested, awoke, locked, unlocked
    case deadlineReached, memoryMeasured, pressureStalled, pressureSimulated
    case recovered, reattached, activityMeasured, outOfMemory, notificationDelayed
    case locksFound, inputWatched, inputArrived, workMeasured
    case processorMeasured, gpuUsed, socketsReady, timer, observed
    case attached, terminationAnswered, idleHinted, snapshotTaken, sceneSnapshotTaken, withdrawn, open
    case hookEnded
    case sceneBegan, sceneEnded, activateScene, backgroundScene, closeScene

    package var name: String { String(describing: self) }

    init(_ event: Event) {
        switch event {
        case .configuration(.registered): self = .registered
        case .configuration(.unregistered): self = .unregistered
        case .configuration(.configured): self = .configured
        case .configuration(.started): self = .started
        case .requested(_, _, let request, by: _): self.init(request)
        case .requestAbandoned: self = .requestAbandoned
        case .shutdownRequested: self = .shutdown
        case .run(_, let what): self.init(what)
        case .absence(.sleepRequested): self = .sleepRequested
        case .absence(.awoke): self = .awoke
        case .absence(.locked): self = .locked
        case .absence(.unlocked): self = .unlocked
        case .deadlineReached: self = .deadlineReached
        case .memory(.measured): self = .memoryMeasured
        case .memory(.pressureStalled): self = .pressureStalled
        case .memory(.pressureSimulated): self = .pressureSimulated
        case .recovered: self = .recovered
        case .socketsReady: self = .socketsReady
        case .timer: self = .timer
        case .observed: self = .observed
        }
    }

    private init(_ event: RunEvent) {
        switch event {
        case .process(.spawned): self = .spawned
        case .process(.executed): self = .executed
        case .process(.spawnFailed): self = .spawnFailed
        case .transition(.notified(.didEnterBackground, _, _)): self = .notifiedBackground
        case .transition(.notified): self = .notifiedTerminate
        case .suspension(.frozen): self = .frozen
        case .suspension(.footprintMeasured): self = .footprintMeasured
        case .memory(.sizeMeasured): self = .sizeMeasured
        case .suspension(.thawed): self = .thawed
        case .memory(.reclaimed): self = .reclaimed
        case .suspension(.freezeLost): self = .freezeLost
        case .deadline(.inspected): self = .inspected
        case .process(.exited): self = .exited
        case .process(.emptied): self = .emptied
        case .transition(.ready): self = .ready
        case .transition(.backgroundEntered): self = .backgroundEntered
        case .process(.stopped): self = .stopped
        case .process(.continued): self = .continued
        case .task(.began): self = .taskBegan
        case .task(.ended): self = .taskEnded
        case .task(.progressed): self = .taskProgressed
        case .mode(.began): self = .modeBegan
        case .mode(.ended): self = .modeEnded
        case .mode(.inhibitorChanged): self = .inhibitorChanged
        case .mode(.shown): self = .modesShown
        case .mode(.unused): self = .modesUnused
        case .deadline(.extended): self = .timeoutExtended
        case .wake(.completed): self = .wakeCompleted
        case .watchdog(.heartbeat): self = .heartbeat
        case .watchdog(.triggered): self = .heartbeatGivenUp
        case .watchdog(.timeChanged): self = .heartbeatTimeChanged
        case .transition(.stopping): self = .stopping
        case .process(.mainProcessChanged): self = .mainProcessChanged
        case .process(.reattached): self = .reattached
        case .deadline(.activityMeasured): self = .activityMeasured
        case .memory(.outOfMemory): self = .outOfMemory
        case .suspension(.locksFound): self = .locksFound
        case .traffic(.inputWatched): self = .inputWatched
        case .traffic(.inputArrived): self = .inputArrived
        case .traffic(.workMeasured): self = .workMeasured
        case .wake(.notificationDelayed): self = .notificationDelayed
        case .processor(.measured): self = .processorMeasured
        case .processor(.gpuUsed): self = .gpuUsed
        case .connection(.attached): self = .attached
        case .transition(.terminationAnswered): self = .terminationAnswered
        case .traffic(.idleHinted): self = .idleHinted
        case .connection(.snapshotTaken): self = .snapshotTaken
        case .scene(.snapshotTaken): self = .sceneSnapshotTaken
        case .connection(.withdrawn): self = .withdrawn
        case .hookEnded: self = .hookEnded
        case .scene(.began): self = .sceneBegan
        case .scene(.ended): self = .sceneEnded
        }
    }

    private init(_ request: Request) {
        switch request {
        case .launch(.foreground, _, _, _): self = .launchForeground
        case .launch(.background, let reason, _, _):
            switch reason {
            case .user, .url, .relaunch: self = .launchBackground
            case .push, .fetch, .socket, .timer, .accessory, .location: self = .launchWake
            }
        case .activate: self = .activate
        case .background: self = .background
        case .interrupt: self = .interrupt
        case .interruptWhileConnected: self = .interruptWhileConnected
        case .endInterruption: self = .endInterruption
        case .terminate: self = .terminate
        case .remove: self = .remove
        case .cancelTask: self = .cancelTask
        case .push: self = .push
        case .send: self = .send
        case .open: self = .open
        case .scene(_, .activate): self = .activateScene
        case .scene(_, .background): self = .backgroundScene
        case .scene(_, .close): self = .closeScene
        }
    }

    /// Whether the event belongs to no app, so that its phase means nothing.
    var isOfNoApp: Bool {
        switch self {
        case .configured, .started, .requestAbandoned, .shutdown, .sleepRequested, .awoke, .locked, .unlocked,
            .deadlineReached, .memoryMeasured, .pressureStalled,
            .pressureSimulated, .recovered:
            true
        default: false
        }
    }
}

/// Counts each kind of event by the phase of its app.
package struct Coverage: Sendable {
    private static let width = AppPhase.allCases.count
    private var counts = [Int](repeating: 0, count: EventKind.allCases.count * width)

    package init() {}

    package subscript(kind: EventKind, phase: AppPhase) -> Int {
        counts[kind.rawValue * Self.width + phase.rawValue]
    }

    mutating func add(_ event: Event, _ phase: AppPhase) {
        counts[EventKind(event).rawValue * Self.width + phase.rawValue] += 1
    }

    package mutating func add(_ other: Coverage) {
        for index in counts.indices { counts[index] += other.counts[index] }
    }

    /// The table: a row for each kind of event and a column for each phase. Events of no app are in the first column,
    /// events of runs that are over in the last.
    package var table: [String] {
        func cell(_ text: String, _ width: Int) -> String {
            String(repeating: " ", count: max(1, width - text.count)) + text
        }
        let phases = AppPhase.allCases
        let widths = phases.map { max(9, $0.name.count + 1) }
        var lines = [
            cell("", 19) + zip(phases, widths).map { cell($0 == .unknown ? "–" : $0.name, $1) }.joined()
        ]
        for kind in EventKind.allCases {
            let cells = zip(phases, widths).map { phase, width in
                let count = self[kind, phase]
                return cell(count == 0 ? "·" : "\(count)", width)
            }
            lines.append(cell(kind.name, 19) + cells.joined())
        }
        return lines
    }
}
