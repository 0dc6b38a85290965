import Control
import LifecycleCore
import Reports
import Systemd
import Testing

@testable import Daemon

private let web = AppID("web")!

private struct Sentence: CustomTestStringConvertible, Sendable {
    var report: Report
    var priority: LogLevel
    var message: String
    var fields: [String]
    var testDescription: String { message }

    init(_ report: Report, _ priority: LogLevel, _ message: String, _ fields: String...) {
        self.report = report
        self.priority = priority
        self.message = message
        self.fields = fields
    }
}

/// An end with SIGKILL, unless `change` sets another one.
private func receipt(
    _ namespace: Receipt.Namespace, _ code: UInt32, _ explanation: String, _ change: (inout Receipt) -> Void = { _ in }
) -> Report {
    var receipt = Receipt(
        id: 12, app: web, run: RunID(1), pid: 7, state: .active, namespace: namespace, code: code,
        explanation: explanation, exit: .signaled(9, coreDumped: false), wall: .seconds(1), cpu: .zero, memory: 1)
    change(&receipt)
    return .ended(receipt)
}

@Suite("Log entries")
struct LogEntryTests {
    private static let sentences: [Sentence] = [
        Sentence(
            .stateChanged(web, from: .background, to: .suspended, reason: .idle), .notice,
            "web: state changed: background → suspended (idle)", "GREENROOM_STATE=suspended",
            "GREENROOM_PREVIOUS_STATE=background", "GREENROOM_REASON=idle"),
        Sentence(
            .stateChanged(web, from: .notRunning, to: .launching, reason: .sleep), .info,
            "web: state changed: notRunning → launching (beforeSleep)", "GREENROOM_STATE=launching",
            "GREENROOM_PREVIOUS_STATE=notRunning", "GREENROOM_REASON=beforeSleep"),
        Sentence(
            .deadlineStarted(web, .launch, .seconds(5)), .debug, "web: deadline for launch started: 5s",
            "GREENROOM_DEADLINE=launch"),
        Sentence(
            .deadlineExtended(web, .terminate, by: .seconds(90)), .info,
            "web: deadline for terminate extended by 1min 30s", "GREENROOM_DEADLINE=terminate"),
        Sentence(
            .deadlineMet(web, .background, used: .milliseconds(310)), .debug,
            "web: deadline for background met after 310ms", "GREENROOM_DEADLINE=background"),
        Sentence(
            .deadlineCancelled(web, .backgroundTime), .debug, "web: deadline for background time cancelled",
            "GREENROOM_DEADLINE=backgroundTime"),
        Sentence(
            .deadlineMissed(web, .watchdog), .warning, "web: deadline for watchdog missed",
            "GREENROOM_DEADLINE=watchdog"),
        Sentence(
            .deadlineDeferred(web, .launch, .debuggerAttached), .notice,
            "web: deadline for launch starts again: a debugger is attached", "GREENROOM_DEADLINE=launch"),
        Sentence(
            .deadlineDeferred(web, .thaw, .daemonRestarted), .notice,
            "web: deadline for thaw starts again: the daemon was restarted", "GREENROOM_DEADLINE=thaw"),
        Sentence(
            .taskBegan(web, name: "upload"), .info, "web: background task began: 'upload'", "GREENROOM_TASK=upload"),
        Sentence(
            .taskEnded(web, name: "upload"), .info, "web: background task ended: 'upload'", "GREENROOM_TASK=upload"),
        Sentence(
            .taskEnded(web, name: "upload", isCancelled: true), .info,
            "web: background task ended: 'upload' (cancelled)", "GREENROOM_REASON=cancelled", "GREENROOM_TASK=upload"),
        Sentence(
            .taskProgressed(web, name: "upload", TaskProgress(done: 1, total: 3, title: "Sending")!), .info,
            "web: background task 'upload': 33% of 'Sending'", "GREENROOM_TASK=upload"),
        Sentence(
            .taskProgressed(web, name: "upload", TaskProgress(done: 7, total: 0)!), .info,
            "web: background task 'upload': 7 done", "GREENROOM_TASK=upload"),
        Sentence(
            .taskExpires(web, name: "upload", .stalled), .notice,
            "web: background task 'upload' made no progress (TaskProgressSec=): the background time limits it now",
            "GREENROOM_REASON=stalled", "GREENROOM_TASK=upload"),
        Sentence(
            .taskExpires(web, name: "upload", .limit), .notice,
            "web: background task 'upload' made no progress for longest of too many (ContinuedTasks=): "
                + "the background time limits it now", "GREENROOM_REASON=limit", "GREENROOM_TASK=upload"),
        Sentence(
            .taskExpires(web, name: "upload", .cancelled), .notice,
            "web: background task 'upload' was cancelled by a user", "GREENROOM_REASON=cancelled",
            "GREENROOM_TASK=upload"),
        Sentence(
            .taskRefused(web, name: "upload"), .notice,
            "web: background task refused: 'upload': no background time is left, or the app is about to end",
            "GREENROOM_TASK=upload"),
        Sentence(.modeBegan(web, .audio), .info, "web: mode 'audio' began", "GREENROOM_MODE=audio"),
        Sentence(.modeEnded(web, .call), .info, "web: mode 'call' ended", "GREENROOM_MODE=call"),
        Sentence(
            .sceneChanged(web, .main, from: .background, to: .foregroundActive), .info,
            "web: scene 'main' is foregroundActive", "GREENROOM_SCENE=main",
            "GREENROOM_SCENE_STATE=foregroundActive"),
        Sentence(
            .tasksExpiring(web, names: ["a", "b"]), .notice,
            "web: background time expires soon; open tasks: 'a', 'b'", "GREENROOM_TASK=a", "GREENROOM_TASK=b"),
        Sentence(
            .tasksExpiring(web, names: ["a", "b", "c", "d", "e"]), .notice,
            "web: background time expires soon; open tasks: 'a', 'b', 'c' and 2 more", "GREENROOM_TASK=a",
            "GREENROOM_TASK=b", "GREENROOM_TASK=c"),
        Sentence(
            .freezeTakesLong(web), .warning,
            "web: not frozen after 2s: a process is in uninterruptible sleep, or left the group; the other processes are frozen"
        ),
        Sentence(
            .killTakesLong(web), .warning, "web: processes survive SIGKILL; waiting for the kernel to end them"),
        Sentence(
            .stoppedItself(web, in: .background), .notice, "web: main process stopped (background)",
            "GREENROOM_STATE=background"),
        Sentence(
            .wakeCompleted(web, .newData), .info, "web: wake completed: new-data", "GREENROOM_RESULT=new-data"),
        Sentence(
            .wakeCompleted(web, .noData, wake: 17), .info, "web: wake 17 completed: no-data",
            "GREENROOM_RESULT=no-data",
            "GREENROOM_WAKE=17"),
        Sentence(
            .deadlineMissed(web, .wake, wake: 17), .warning, "web: deadline for wake 17 missed",
            "GREENROOM_DEADLINE=wake",
            "GREENROOM_WAKE=17"),
        Sentence(.relaunchScheduled(web, after: .zero, deaths: 1), .notice, "web: relaunching"),
        Sentence(.relaunchScheduled(web, after: .seconds(10), deaths: 1), .notice, "web: relaunching in 10s"),
        Sentence(
            .relaunchScheduled(web, after: .seconds(80), deaths: 4), .notice,
            "web: relaunching in 1min 20s (ended early 4 times in a row)"),
        Sentence(
            .unrequestedTimeUsedUp(web, limit: .seconds(600)), .warning,
            "web: used up its background time (10min in an hour): tasks and wakes by apps are refused, and relaunches wait, "
                + "until there is time again"),
        Sentence(
            .memoryAwaited(web, 120 << 20), .notice,
            "web: waits for 120.0M of memory: it was ended for memory and is relaunched when there is space"),
        Sentence(
            .inputArrived(
                web, Input(kind: .listener, pid: 4711, descriptor: 5, bytes: 0, peer: "192.0.2.7:50123")), .info,
            "web: woken by a connection from 192.0.2.7:50123 (descriptor 5 of process 4711)",
            "GREENROOM_PEER=192.0.2.7:50123", "GREENROOM_BYTES=0", "GREENROOM_DESCRIPTOR=5", "GREENROOM_PID=4711"),
        Sentence(
            .inputArrived(web, Input(kind: .stream, pid: 4711, descriptor: 7, bytes: 312, isHalfFull: true)), .info,
            "web: woken by data on a connection (descriptor 7 of process 4711, 312B, buffer more than half full)",
            "GREENROOM_BYTES=312", "GREENROOM_DESCRIPTOR=7", "GREENROOM_PID=4711"),
        Sentence(
            .inputNotWatched(
                web,
                InputWatch(
                    watched: 3,
                    unwatched: [
                        InputWatch.Unwatched(what: "socket", problem: .notPermitted, count: 1),
                        InputWatch.Unwatched(what: "signalfd", problem: .notSupported, count: 2),
                    ])), .warning,
            "web: cannot watch 1 socket: operation not permitted; cannot watch 2 signalfds: input at this kind of "
                + "descriptor cannot be seen; input there does not wake the app"),
        Sentence(
            .inputNotWatched(
                web,
                InputWatch(
                    watched: 3, unwatched: [InputWatch.Unwatched(what: "signalfd", problem: .notSupported, count: 1)])),
            .notice,
            "web: cannot watch 1 signalfd: input at this kind of descriptor cannot be seen; input there does not wake the app"
        ),
        Sentence(
            .wokenTooOften(web, staysAwake: .seconds(4)), .notice,
            "web: woken within 1s of each of its last suspensions; it stays awake for 4s"),
        Sentence(.wouldSuspend(web), .info, "web: would be suspended now (Suspend=dry-run)"),
        Sentence(
            .wouldResume(
                web,
                DryRunResult(
                    slept: .seconds(42), reason: .woken, moments: 2, used: .milliseconds(3), hasMissedInput: true)),
            .info,
            "web: would have been suspended for 42s until now (woken); it used 3ms of processor time meanwhile, and 2 timers were "
                + "due; input came that would not have woken it (Traffic=no)", "GREENROOM_REASON=woken"),
        Sentence(
            .locksHeld(web, FileLocks(count: 1, file: "/var/lib/web/db"), isSuspended: false), .notice,
            "web: not suspended yet: it holds a lock on /var/lib/web/db", "GREENROOM_FILE=/var/lib/web/db"),
        Sentence(
            .locksHeld(web, FileLocks(count: 1, file: "/dev/video0", isResource: true), isSuspended: true), .warning,
            "web: suspended although it holds /dev/video0 (Releases=); programs that need it wait until the app runs again",
            "GREENROOM_FILE=/dev/video0"),
        Sentence(
            .locksHeld(web, FileLocks(count: 3, file: "/var/lib/web/db"), isSuspended: true), .warning,
            "web: suspended although it holds a lock on /var/lib/web/db and 2 more; programs that need it wait until the app "
                + "runs again", "GREENROOM_FILE=/var/lib/web/db"),
        Sentence(
            .locksHeld(web, FileLocks(count: 1, file: "/var/lib/web/db", isShared: true), isSuspended: true), .warning,
            "web: suspended although it holds a shared lock on /var/lib/web/db; programs that want to write there may have to "
                + "wait until the app runs again", "GREENROOM_FILE=/var/lib/web/db"),
        Sentence(
            .processorUseHigh(web, BackgroundUse(used: .seconds(25), within: .seconds(30), limit: 800)), .warning,
            "web: used 25s of CPU time within 30s in the background; on average over BackgroundCPUSec= the limit is 80% of "
                + "one processor"),
        Sentence(
            .processorThrottled(web, BackgroundUse(used: .seconds(58), within: .seconds(60), limit: 805)), .warning,
            "web: throttled: used 58s of CPU time within 1min in the background; the limit is 80.5% of one processor"),
        Sentence(.processorThrottleEnded(web), .notice, "web: gets as much of the processor as before"),
        Sentence(
            .connectionsRejected(web, after: .seconds(60)), .warning,
            "web: reset the connections that waited for a launch: it ended early several times and is not launched for now "
                + "(waited 1min)"),
        Sentence(
            .hookFailed(web, .beforeSuspend, .ended(.exited(3))), .warning,
            "web: ExecBeforeSuspend= failed: exited with status 3", "GREENROOM_HOOK=ExecBeforeSuspend",
            "EXIT_CODE=exited", "EXIT_STATUS=3"),
        Sentence(
            .hookFailed(web, .afterResume, .ended(.signaled(11, coreDumped: true))), .warning,
            "web: ExecAfterResume= failed: ended by SIGSEGV", "GREENROOM_HOOK=ExecAfterResume", "EXIT_CODE=dumped",
            "EXIT_STATUS=SEGV"),
        Sentence(
            .hookFailed(web, .enterForeground, .notStarted("the program /bin/x does not exist")), .warning,
            "web: ExecEnterForeground= failed: the program /bin/x does not exist", "GREENROOM_HOOK=ExecEnterForeground"),
        Sentence(
            .hookKilled(web, .enterBackground, after: .seconds(5)), .warning,
            "web: killed ExecEnterBackground=: not over after 5s", "GREENROOM_HOOK=ExecEnterBackground"),
        Sentence(
            .memoryReclaimed(web, 120 << 20), .info, "web: pushed 120.0M of it out to swap"),
        Sentence(
            .suspensionRefused(web), .info,
            "web: not suspended: ExecBeforeSuspend= exited with status 75; it is run once more before the next attempt",
            "GREENROOM_HOOK=ExecBeforeSuspend"),
        Sentence(
            receipt(.lifecycle, 0xdead_10cc, "Killed.") { $0.failure = .failed }, .warning,
            "web: Killed. (0xdead10cc, receipt 12)", "GREENROOM_STATE=active", "GREENROOM_NAMESPACE=lifecycle",
            "GREENROOM_CODE=0xdead10cc", "GREENROOM_RECEIPT=12", "EXIT_CODE=killed", "EXIT_STATUS=KILL"),
        Sentence(
            .memoryLevelChanged(.critical, .budget), .warning, "Memory level changed: critical (budget)",
            "GREENROOM_REASON=budget", "GREENROOM_MEMORY_LEVEL=critical"),
        Sentence(
            .memoryLevelChanged(.normal, .simulated), .notice, "Memory level changed: normal",
            "GREENROOM_REASON=simulated", "GREENROOM_MEMORY_LEVEL=normal"),
        Sentence(
            receipt(.exit, 0, "Exited with status 0.") { $0.exit = .exited(0) }, .notice,
            "web: Exited with status 0. (receipt 12)", "GREENROOM_STATE=active", "GREENROOM_NAMESPACE=exit",
            "GREENROOM_CODE=0", "GREENROOM_RECEIPT=12", "EXIT_CODE=exited", "EXIT_STATUS=0"),
        Sentence(
            receipt(.exit, 0, "Exited with status 1.") {
                $0.exit = .exited(1)
                $0.failure = .failed
            }, .warning,
            "web: Exited with status 1. (receipt 12)", "GREENROOM_STATE=active", "GREENROOM_NAMESPACE=exit",
            "GREENROOM_CODE=0", "GREENROOM_RECEIPT=12", "EXIT_CODE=exited", "EXIT_STATUS=1"),
        Sentence(
            receipt(.exit, 0, "Terminated.") {
                $0.exit = .unknown
                $0.remaining = RemainingProcesses(count: 1, names: [])
            }, .warning,
            "web: Terminated. (receipt 12)", "GREENROOM_STATE=active", "GREENROOM_NAMESPACE=exit",
            "GREENROOM_CODE=0", "GREENROOM_RECEIPT=12"),
        Sentence(
            receipt(.user, 0xdead_fa11, "Removed."), .notice,
            "web: Removed. (0xdeadfa11, receipt 12)", "GREENROOM_STATE=active", "GREENROOM_NAMESPACE=user",
            "GREENROOM_CODE=0xdeadfa11", "GREENROOM_RECEIPT=12", "EXIT_CODE=killed", "EXIT_STATUS=KILL"),
        Sentence(
            receipt(.exit, 0, "Cannot execute.") {
                $0.exit = .exited(203)
                $0.pid = nil
                $0.failure = .notLaunched
            }, .error,
            "web: Cannot execute. (receipt 12)", "GREENROOM_STATE=active", "GREENROOM_NAMESPACE=exit",
            "GREENROOM_CODE=0", "GREENROOM_RECEIPT=12", "EXIT_CODE=exited", "EXIT_STATUS=203"),
        Sentence(
            receipt(.signal, 2, "Crashed with SIGSEGV (core dumped).") {
                $0.exit = .signaled(11, coreDumped: true)
                $0.failure = .crashed
            }, .error,
            "web: Crashed with SIGSEGV (core dumped). (receipt 12)", "GREENROOM_STATE=active",
            "GREENROOM_NAMESPACE=signal", "GREENROOM_CODE=2", "GREENROOM_RECEIPT=12", "EXIT_CODE=dumped",
            "EXIT_STATUS=SEGV"),
        Sentence(
            receipt(.watchdog, 0x8bad_f00d, "Killed.") { $0.failure = .failed }, .warning,
            "web: Killed. (0x8badf00d, receipt 12)", "GREENROOM_STATE=active", "GREENROOM_NAMESPACE=watchdog",
            "GREENROOM_CODE=0x8badf00d", "GREENROOM_RECEIPT=12", "EXIT_CODE=killed", "EXIT_STATUS=KILL"),
    ]

    @Test("each report has its sentence, its priority and its journal fields", arguments: sentences)
    private func sentence(_ expected: Sentence) {
        let entry = LogEntry(expected.report)
        #expect(entry.message == expected.message)
        #expect(entry.priority == expected.priority)
        #expect(entry.fields.map { "\($0.name)=\($0.value)" } == expected.fields)
        #expect(entry.event.message == expected.message)
        #expect(entry.event.priority == expected.priority.rawValue)
        #expect(entry.event.app == entry.app?.name)
    }

    @Test(
        "a failure is logged as a warning or an error, and an end without one as a notice, or a warning for memory (L45)",
        arguments: Receipt.Namespace.allCases)
    func severities(namespace: Receipt.Namespace) {
        func priority(_ failure: Receipt.Failure?) -> LogLevel {
            LogEntry(receipt(namespace, 0, "Ended.") { $0.failure = failure }).priority
        }
        #expect(priority(.crashed) == .error)
        #expect(priority(.notLaunched) == .error)
        #expect(priority(.failed) == .warning)
        #expect(priority(nil) == (namespace == .jetsam ? .warning : .notice))
    }

    @Test("no entry of an end shows a code that reads like an exit status", arguments: [0, 1, 2, 7] as [UInt32])
    func smallCodes(code: UInt32) {
        let entry = LogEntry(receipt(.exit, code, "Exited with status 3.") { $0.exit = .exited(3) })
        #expect(entry.message == "web: Exited with status 3. (receipt 12)")
    }

    @Test("every kind of event has a sentence here and a message ID of its own")
    func kinds() {
        let kinds = LifecycleEvent.Kind.allCases
        #expect(Set(Self.sentences.map { LogEntry($0.report).event.kind }) == Set(kinds.map(\.rawValue)))
        #expect(Set(kinds.map(MessageID.of)).count == kinds.count)
        for sentence in Self.sentences {
            let entry = LogEntry(sentence.report)
            #expect(LifecycleEvent.Kind(rawValue: entry.event.kind).map(MessageID.of) == entry.messageID)
        }
    }

    @Test("an event carries typed values: durations, the previous state, and receipts as numbers")
    func events() {
        #expect(LogEntry(.deadlineStarted(web, .launch, .seconds(5))).event.deadline?.allowed == .seconds(5))
        #expect(LogEntry(.deadlineExtended(web, .launch, by: .seconds(2))).event.deadline?.extended == .seconds(2))
        #expect(LogEntry(.deadlineMet(web, .launch, used: .seconds(1))).event.deadline?.wall == .seconds(1))
        let change = LogEntry(.stateChanged(web, from: .inactive, to: .active, reason: .requested)).event
        #expect((change.previousState, change.state, change.reason) == ("inactive", "active", "requested"))
        let end = LogEntry(receipt(.jetsam, 1, "Killed.")).event
        #expect((end.receipt, end.code, end.namespace) == (12, "1", "jetsam"))
        let relaunch = LogEntry(.relaunchScheduled(web, after: .seconds(10), deaths: 2)).event
        #expect((relaunch.relaunch, relaunch.earlyEnds) == (.seconds(10), 2))
    }

    @Test("the event of a wake by traffic names the descriptor, the peer and the bytes (L50)")
    func input() {
        let input = Input(kind: .datagram, pid: 4711, descriptor: 5, bytes: 312, peer: "[::1]:53", isEnd: false)
        let event = LogEntry(.inputArrived(web, input)).event
        #expect(event.kind == "inputArrived" && event.app == "web")
        #expect((event.input?.kind, event.input?.peer, event.input?.bytes) == ("datagram", "[::1]:53", 312))
        #expect((event.input?.pid, event.input?.descriptor) == (4711, 5))
        #expect(event.input?.isEnd == nil && event.input?.isHalfFull == nil && event.input?.at == nil)
        let end = LogEntry(.inputArrived(web, Input(kind: .stream, pid: 1, descriptor: 3, bytes: 0, isEnd: true))).event
        #expect(end.input?.isEnd == true && end.input?.peer == nil)
        let watch = InputWatch(
            watched: 2, unwatched: [InputWatch.Unwatched(what: "socket", problem: .tooMany, count: 9)])
        let unwatched = LogEntry(.inputNotWatched(web, watch)).event.watch
        #expect(unwatched?.watched == 2 && unwatched?.unwatched.map(\.problem) == ["tooMany"])
        let locks = LogEntry(.locksHeld(web, FileLocks(count: 2, file: "/f"), isSuspended: false)).event
        #expect((locks.file, locks.locks) == ("/f", 2))
        #expect(LogEntry(.wokenTooOften(web, staysAwake: .seconds(2))).event.staysAwake == .seconds(2))
        let use = BackgroundUse(used: .seconds(25), within: .seconds(30), limit: 800)
        for report in [Report.processorUseHigh(web, use), .processorThrottled(web, use)] {
            let event = LogEntry(report).event
            #expect((event.cpu, event.within) == (.seconds(25), .seconds(30)))
        }
    }

    @Test("a reason and a state are one word")
    func words() {
        let words = StateReason.allCases.map(\.rawValue) + AppState.allCases.map(\.rawValue)
        #expect(words.allSatisfy { $0.allSatisfy { $0.isASCII && $0.isLetter } })
    }
}

@Suite("Timestamps of states")
struct StateTimestampTests {
    private func instant(_ milliseconds: Int) -> Instant { Instant(sinceOrigin: .milliseconds(milliseconds)) }

    @Test("two calls return the same time, whenever the two clocks are read")
    func fixed() {
        var stamps = StateTimestamps()
        let first = stamps.timestamp(
            of: web, since: instant(1000), now: (instant(1500), Timestamp(microseconds: 10_000_500_123)))
        #expect(first == Timestamp(microseconds: 10_000_000_000))
        // Meanwhile the machine slept for an hour, or its clock was set.
        let second = stamps.timestamp(
            of: web, since: instant(1000), now: (instant(2500), Timestamp(microseconds: 13_601_501_999)))
        #expect(second == first)
    }

    @Test("each state and each app has a time of its own")
    func nextState() {
        var stamps = StateTimestamps()
        let now = (instant(3000), Timestamp(microseconds: 50_000_000))
        let first = stamps.timestamp(of: web, since: instant(1000), now: now)
        #expect(stamps.timestamp(of: web, since: instant(2000), now: now) - first == .seconds(1))
        #expect(stamps.timestamp(of: AppID("mail")!, since: instant(3000), now: now) - first == .seconds(2))
    }
}
