import Glibc
import Idleness
import LifecycleCore
import Linux
import Posix
import Systemd
import TestKit
import Testing

@testable import Daemon

/// A context with runs of `/bin/sleep`, which are killed at the end. It makes the process the subreaper of its orphans.
private final class WorkStage {
    let root = makeTemporaryFolder("greenroom-work")
    let loop: EventLoop
    let list = EventList()
    let context: DaemonContext
    private(set) var runs: [RunController] = []

    init(runs count: UInt64, input: SharedDescriptor? = nil) throws {
        loop = try EventLoop()
        context = try DaemonContext.bare(in: root, loop, list)
        for number in 1...count {
            let run = try context.makeRun(RunID(number), of: "app\(number)")
            let process = try startSleep(input: input)
            try run.enclosure.started(process)
            run.setMainProcess(process)
            runs.append(run)
        }
    }

    deinit {
        for run in runs { _ = try? run.process?.signal(SIGKILL) }
        removeTree(root)
    }

    /// The runs that were measured, in the order of the reports.
    var measured: [RunID] {
        list.events.compactMap { event in
            guard case .run(let run, .traffic(.workMeasured)) = event else { return nil }
            return run
        }
    }

    /// What is found of a run that sleeps until a time. The clock of a processor that is too busy to be asked is known at a later look.
    func knownWork(of run: RunController) throws -> RunWork {
        let limit = loop.now() + .seconds(60)
        while true {
            let count = measured.count
            run.measureWork(.full)
            try turn { $0.count > count }
            guard case .run(_, .traffic(.workMeasured(let work))) = try #require(list.events.last) else {
                throw TestFailure("the last event is not the measurement")
            }
            if work.due != nil || loop.now() >= limit { return work }
            _ = try loop.runOnce(timeout: .milliseconds(100))
        }
    }

    /// Freezes a run, and turns the loop until that is reported.
    func freeze(_ run: RunController) throws {
        run.freeze(attempt: 1)
        let limit = loop.now() + .seconds(60)
        while run.reportedAttempt == nil, loop.now() < limit { try loop.runOnce(timeout: .seconds(1)) }
    }

    /// Turns the loop until runs were measured, and then until nothing is left to do.
    func turn(until isEnough: ([RunID]) -> Bool) throws {
        let limit = loop.now() + .seconds(60)
        while !isEnough(measured), loop.now() < limit { try loop.runOnce(timeout: .seconds(1)) }
        while try loop.runOnce(timeout: .zero) {}
    }
}

@Suite("What runs have to do, as the daemon measures it (L43, L51)")
struct WorkMeterTests {
    @Test("each run that is measured is reported once, in the order of the requests")
    func measured() throws {
        try inOwnProcess {
            let stage = try WorkStage(runs: 3)
            for run in stage.runs.reversed() { run.measureWork(.full) }
            stage.runs[0].measureWork(.full)
            try stage.turn { $0.count == 3 }
            #expect(stage.measured == [RunID(3), RunID(2), RunID(1)])
            let work = try stage.knownWork(of: stage.runs[0])
            #expect(!work.isRunnable && !work.isIncomplete && work.wait == nil && work.unread == 0)
            // It sleeps for 1000 s.
            #expect(work.due.map { $0 > Instant(sinceOrigin: stage.loop.now()) } == true)
        }
    }

    @Test("a run that is suspended or removed before it is measured is not reported")
    func suspended() throws {
        try inOwnProcess {
            let stage = try WorkStage(runs: 3)
            for run in stage.runs { run.measureWork(.full) }
            stage.runs[0].freeze(attempt: 1)
            stage.runs[0].thaw(attempt: 1)
            stage.context.runs.remove(stage.runs[1])
            try stage.turn { $0.contains(RunID(3)) }
            #expect(stage.measured == [RunID(3)])
            // After the thaw it is measured again.
            stage.runs[0].measureWork(.full)
            try stage.turn { $0.contains(RunID(1)) }
            #expect(stage.measured == [RunID(3), RunID(1)])
        }
    }

    @Test("the next daemon corrects the rests of a freeze that it took over, and of no other one (L51)")
    func rests() throws {
        try inOwnProcess {
            let stage = try WorkStage(runs: 1)
            let (run, work) = (stage.runs[0], stage.context.background.work)
            try stage.freeze(run)
            let pid = try #require(run.mainPID)
            let wait = Wait(call: 270, arguments: [0, 0, 0, 0, 1 << 20, 0], due: stage.loop.now())
            let rests = KeptRests(attempt: 1, all: [KeptRest(process: pid, thread: Int(pid), wait: wait)])
            work.adopt(rests, of: run.id)
            // Before it is known whether the run is still frozen, the record of it is written again.
            #expect(RunRecord(run).rests == rests)
            work.recoverFrozen(run, attempt: 1, hasSignalTimers: false)
            #expect(RunRecord(run).rests == rests)
            work.restoreRests(of: run.id)
            #expect(RunRecord(run).rests == nil)
            work.adopt(rests, of: run.id)
            work.recoverFrozen(run, attempt: 2, hasSignalTimers: false)
            #expect(RunRecord(run).rests == nil)
        }
    }

    @Test("a run that is being frozen is not measured, and of a frozen one the threads are (L51)")
    func frozen() throws {
        try inOwnProcess {
            let stage = try WorkStage(runs: 2)
            let run = stage.runs[0]
            try stage.freeze(run)
            let attempt = run.reportedAttempt
            run.reportedAttempt = nil
            for run in stage.runs { run.measureWork(.full) }
            try stage.turn { $0.contains(RunID(2)) }
            #expect(stage.measured == [RunID(2)])
            run.reportedAttempt = attempt
            run.measureWork(.full)
            try stage.turn { $0.contains(RunID(1)) }
            #expect(stage.measured == [RunID(2), RunID(1)])
            let work = try stage.knownWork(of: run)
            #expect(!work.isRunnable && work.wait == nil && !work.hasNewProcesses && work.due != nil)
        }
    }

    @Test("where the kernel carries out one request at a time, a look at a socket that is in no table ends (L51)")
    func serialized() throws {
        try inOwnProcess {
            let unbound = SharedDescriptor(Descriptor(adopting: socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)))
            let stage = try WorkStage(runs: 2, input: unbound)
            let meter = WorkMeter(
                loop: stage.loop, runs: stage.context.runs, containment: stage.context.containment,
                tables: SocketTables(isSerialized: true))
            for run in stage.runs { meter.measure(run, .full) }
            try stage.turn { $0.count == 2 }
            #expect(Set(stage.measured) == [RunID(1), RunID(2)])
        }
    }

    @Test("first and brief looks take only the processor time, and the look that was asked for last is made (L51)")
    func kinds() throws {
        try inOwnProcess {
            let stage = try WorkStage(runs: 1)
            for kind in WorkLookKind.allCases {
                stage.runs[0].measureWork(kind)
                let before = stage.measured.count
                try stage.turn { $0.count > before }
            }
            stage.runs[0].measureWork(.first)
            stage.runs[0].measureWork(.full)
            try stage.turn { $0.count == 5 }
            let areBrief = stage.list.events.compactMap { event -> Bool? in
                if case .run(_, .traffic(.workMeasured(let work))) = event { work.isBrief } else { nil }
            }
            #expect(areBrief == [true, false, true, false, false])
        }
    }

    @Test("a look at a frozen run that is thawed meanwhile is dropped")
    func thawed() throws {
        try inOwnProcess {
            let stage = try WorkStage(runs: 2)
            let run = stage.runs[0]
            try stage.freeze(run)
            for run in stage.runs { run.measureWork(.full) }
            run.thaw(attempt: 1)
            try stage.turn { $0.contains(RunID(2)) }
            #expect(stage.measured == [RunID(2)])
        }
    }

    @Test("a run without a lock has none")
    func locks() throws {
        try inOwnProcess {
            let stage = try WorkStage(runs: 1)
            let run = stage.runs[0]
            try stage.freeze(run)
            #expect(run.reportedAttempt == 1)
            let hasLocks = stage.list.events.contains {
                if case .run(_, .suspension(.locksFound)) = $0 { true } else { false }
            }
            #expect(!hasLocks)
        }
    }
}
