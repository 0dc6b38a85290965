/// Faults and invalid requests that the simulator injects.
package enum Fault: Int, CaseIterable, Sendable {
    case spawnFails, spawnFailsLate, execHangs, killedBeforeExec
    case freezeLate, freezeNever, freezeReportedLate, thawReportedLate
    case diesAtDeadline, diesWhileFreezing, diesAfterThaw, crashes, killedByOthers, ignoresTerminate
    case neverAnswers, answersLate, answersAtDeadline, stopsItself
    case beginsManyTasks, leaksTask, beginsTooMany, extendsTimeout, forks, blocksKill, changesMainProcess
    case missesHeartbeat, givesUpHeartbeat, sendsUnexpected, sendsAfterEnd
    case traced, notifiedLate, inspectedLate, measuredLate, emptiedBeforeExit, emptiedLate
    case clockJumps, timerLate, timerSpurious
    case memoryGrows, machineFills, pressureSpike, outOfMemory
    case reregistered, unregistered, reconfigured, requestBurst, invalidRequest, requestAbandoned, simulatedPressure
    case sleeps, locks
    case execFails, requestFlood
    case continuedByOthers
    case evades, asksForApps
    case inputFlood, pesters, holdsLock, notWatchable
    case inboxFull
    case reloaded, inputBurst, watchFails
    case acceptsLate
    case rests, restIsKept, callIsRestarted, blocksWrite

    package var name: String { String(describing: self) }
}

/// How often each fault was injected.
package struct FaultCounts: Sendable {
    package private(set) var counts = [Int](repeating: 0, count: Fault.allCases.count)

    package init() {}
    package subscript(fault: Fault) -> Int { counts[fault.rawValue] }
    mutating func add(_ fault: Fault) { counts[fault.rawValue] += 1 }

    package mutating func add(_ other: FaultCounts) {
        for index in counts.indices { counts[index] += other.counts[index] }
    }
}
