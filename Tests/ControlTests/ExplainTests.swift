import Control
import Systemd
import Testing

@testable import greenroomctl

@Suite("explain, and suspended apps at a glance")
struct ExplainTests {
    private func explain(_ app: AppStatus, _ verb: [String] = ["explain"]) throws -> Outcome {
        let daemon = try FakeDaemon()
        daemon.answer("Status", app)
        let program = try RunningProgram(
            ["--runtime", daemon.runtime] + verb + [app.id], environment: [], terminal: false)
        return try program.finish(in: daemon.loop)
    }

    @Test(
        "explain is status -v: why the app is awake, what it may still use, and why it ended last",
        arguments: [["explain"], ["status", "-v"]])
    func awake(verb: [String]) throws {
        let app = Records.make(Records.worker) {
            $0.backgroundTimeRemaining = .seconds(12)
            $0.backgroundTimeLastHour = .seconds(4)
            $0.backgroundTimePerHour = .seconds(600)
            $0.tasks = Records.photos.tasks
            $0.lastReceipt = Records.receipt
            $0.suspendsIn = .seconds(3)
        }
        let outcome = try explain(app, verb)
        #expect(outcome.status == 0)
        #expect(
            outcome.output == """
                ● worker1
                      State: background since 2025-11-21T07:12:03.250000Z
                        PID: 4711
                     Memory: 0B
                   Launches: 1
                      Awake: A thread is in a call: thread 7 (writer) is in write(2), since 2025-11-21T07:12:05.000000Z.
                             The task 'upload' is open.
                             It is suspended in 3s unless it works.
                    Traffic: woken 17 times, last at 2025-11-21T07:12:03.250000Z by a connection from 192.0.2.7:50123 \
                (descriptor 5 of process 4711, 312B)
                      Tasks: 'up\\x1b[2Jload', 28s left, began 2s ago, process 4712
                 Background: 12s of background time left
                  Last hour: 4s in the background on its own; 10min are allowed
                             Time that a user has asked for does not count (BackgroundTimePerHourSec=).
                   Last end: 2025-11-21T07:12:03.250000Z
                             Killed: exceeded its launch deadline (5s). (receipt 12)
                             Code: watchdog/0x8badf00d (missed a launch, background, terminate, thaw or heartbeat deadline)
                             Process: 4711 (killed, signal KILL)
                             Deadline: 5s to finish launching, 5.020s elapsed, 300ms CPU

                """)
    }

    @Test("explain says what wakes a suspended app, and what launches one that does not run, or why it is not launched")
    func asleep() throws {
        func lines(_ app: AppStatus, _ label: String) throws -> [String] {
            let all = try explain(app).output.split(separator: "\n").map { $0.drop { $0 == " " } }
            guard let start = all.firstIndex(where: { $0.hasPrefix(label + ": ") }) else { return [] }
            return [String(all[start].dropFirst(label.count + 2))] + all[(start + 1)...].map(String.init)
        }
        #expect(
            try lines(Records.make(Records.idleWorker) { $0.trafficWakes = nil }, "Suspended") == [
                "Input of 64B wakes it, and less after 30s.", "12 descriptors are watched.",
                "Cannot watch 1 socket: operation not permitted.", "Its next timer wakes it in 1min 30s.",
                "It runs for a moment in 20s; KeepAwake=timers would keep it awake.",
                "Its ticks of 500ms do not run while it is suspended.",
            ])
        // The time does not run out meanwhile.
        let idle = Records.make(Records.idleWorker) { $0.backgroundTimeRemaining = .seconds(12) }
        #expect(try lines(idle, "Background").isEmpty)
        #expect(try lines(Records.mail, "Launch") == ["Only a request launches it."])
        let waiting = Records.make(Records.mail) {
            $0.launchWaiting = .seconds(4)
            $0.memoryAwaitedBytes = 64 << 20
        }
        #expect(
            try lines(waiting, "Launch") == [
                "Only a request launches it.", "It has waited for 4s until other launches are complete.",
                "It was ended for memory, and is launched again when 64.0M are available.",
            ])
        let broken = try explain(Records.broken)
        #expect(broken.status == 3)
        #expect(broken.output.contains("      Error: broken.app:2:1: error: no such key\n"))
    }

    @Test("a suspended app has a mark, a word and a colour of its own; NO_COLOR leaves mark and word")
    func glance() throws {
        let daemon = try FakeDaemon()
        daemon.answer("List", [Records.mail, Records.photos, Records.idleWorker])
        daemon.answer("Status", Records.idleWorker)
        let color = try daemon.run("list", environment: ["TERM=xterm"], terminal: true).output
        #expect(color.contains("\r\nworker1") && color.contains("\u{1B}[35msuspended\u{1B}[0m"))
        #expect(color.contains("\u{1B}[1mphotos\u{1B}[0m") && color.contains("\u{1B}[2mnotRunning\u{1B}[0m"))
        let status = try daemon.run("status", "worker1", environment: ["TERM=xterm"], terminal: true).output
        #expect(status.hasPrefix("\u{1B}[35m◌\u{1B}[0m "))
        let plain = try daemon.run("status", "worker1", environment: ["TERM=xterm", "NO_COLOR=1"], terminal: true)
            .output
        #expect(plain.hasPrefix("◌ worker1") && plain.contains("State: suspended since"))
    }
}
