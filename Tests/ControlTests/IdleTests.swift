import Control
import JSON
import Systemd
import Testing
import greenroomctl

@Suite("idle, and status about waking")
struct IdleTests {
    @Test("idle has a line for each app: why it is awake, or what would wake it (L51)")
    func table() throws {
        let daemon = try FakeDaemon()
        let idle = Records.make(Records.idleWorker) { $0.id = "worker2" }
        daemon.answer("List", [Records.mail, Records.worker, idle])
        let outcome = try daemon.run("idle")
        #expect(outcome.status == 0)
        #expect(
            outcome.output == """
                org.example.Mail  notRunning  2025-11-21T07:00:00.000000Z  -
                worker1           background  2025-11-21T07:12:05.000000Z  \
                A thread is in a call: thread 7 (writer) is in write(2). The task 'upload' is open.
                worker2           suspended   2025-11-21T07:12:03.250000Z  \
                Input of 64B wakes it, and less after 30s. \
                Cannot watch 1 socket: operation not permitted. Its next timer wakes it in 1min 30s. \
                It runs for a moment in 20s; KeepAwake=timers would keep it awake.

                """)
        let details = try daemon.run("idle", "-v").output
        #expect(
            details.contains("A thread is in a call: thread 7 (writer) is in write(2). The task 'upload' is open.\n"))
        #expect(details.contains("less after 30s. 12 descriptors are watched. Cannot watch"))
        #expect(
            details.hasSuffix(
                "KeepAwake=timers would keep it awake. Its ticks of 500ms do not run while it is suspended.\n"))
    }

    @Test("on a terminal idle has a sentence a line, and no line is wider than the terminal", arguments: [80, 140])
    func terminal(width: Int) throws {
        let daemon = try FakeDaemon()
        let long = Records.make(Records.idleWorker) { $0.id = "site-of-customer@north-west-region-18" }
        daemon.answer("List", [Records.worker, long])
        let outcome = try daemon.run(
            "idle", environment: ["COLUMNS=\(width)", "TERM=xterm", "NO_COLOR=1"], terminal: true)
        let lines = outcome.output.split(whereSeparator: \.isNewline).map { $0.drop { $0 == " " } }
        #expect(lines.contains { $0.hasSuffix("The task 'upload' is open.") })
        #expect(lines.contains { $0.hasSuffix("Its next timer wakes it in 1min 30s.") })
        #expect(
            lines.contains { $0.hasSuffix("It runs for a moment in 20s; KeepAwake=timers would keep it awake.") })
        #expect(lines.contains { $0.hasPrefix("site-of-customer@north-west-region-18  suspended") })
        #expect(outcome.output.split(whereSeparator: \.isNewline).allSatisfy { displayWidth(String($0)) <= width })
    }

    @Test("idle takes apps and patterns, and an unknown app is an error; an app that does not run is none")
    func apps() throws {
        let daemon = try FakeDaemon()
        daemon.answer("List", [Records.mail, Records.worker])
        daemon.on("Status") { call in
            switch call.arguments.first?.stringValue {
            case "worker1": call.reply(Records.worker)
            case "org.example.Mail": call.reply(Records.mail)
            default: call.fail(ControlNames.Failure.unknownApp.error("There is no app 'x'."))
            }
        }
        #expect(try daemon.run("idle", "worker*").output.hasPrefix("worker1  background  "))
        let mail = try daemon.run("idle", "org.example.Mail")
        #expect(mail.status == 0)
        #expect(mail.output.hasSuffix("Z  -\n"))
        let both = try daemon.run("idle", "x", "worker1")
        #expect(both.status == 1)
        #expect(both.errors == "greenroomctl: There is no app 'x'.\n")
        #expect(both.output.hasPrefix("worker1  "))
    }

    @Test("idle --json is a list of the keys about waking, with the line for people")
    func json() throws {
        let daemon = try FakeDaemon()
        daemon.answer("Status", Records.idleWorker)
        let outcome = try daemon.run("idle", "--json", "worker1")
        let apps = try #require(try JSONValue.parse(outcome.output).arrayValue)
        #expect(apps.count == 1)
        #expect(
            apps.first?.objectValue?.map(\.0) == [
                "app", "why", "state", "since", "trafficWakes", "lastInput", "watch", "shortestWaitSeconds",
                "timerInSeconds", "pulseInSeconds",
            ])
        #expect(apps.first?["watch"]?["unwatched"]?.arrayValue?.first?["problem"]?.stringValue == "notPermitted")
        #expect(apps.first?["why"]?.stringValue?.hasPrefix("Input of 64B wakes it") == true)
    }

    @Test("an app that is idle shows when it is suspended, and one that input does not wake says so (L50, L51)")
    func conditions() throws {
        let daemon = try FakeDaemon()
        func why(_ app: AppStatus) throws -> String? {
            daemon.answer("Status", app)
            let outcome = try daemon.run("idle", "--json", "worker1")
            return try JSONValue.parse(outcome.output).arrayValue?.first?["why"]?.stringValue
        }
        let idle = Records.make(Records.worker) {
            $0.suspendsIn = .milliseconds(3210)
            $0.awake = [
                Records.make(AwakeStatus()) {
                    $0.reason = "suspendDelay"
                    $0.explanation = "it has nothing to do"
                }
            ]
        }
        #expect(try why(idle) == "It has nothing to do. It is suspended in 3.2s unless it works.")
        let suspended = Records.make(Records.idleWorker) {
            $0.watch = nil
            ($0.shortestWait, $0.timerIn, $0.pulseIn) = (nil, nil, nil)
        }
        #expect(try why(suspended) == "Only a request wakes it.")
        let quiet = Records.make(suspended) {
            $0.watch = Records.make(WatchStatus()) {
                $0.watched = 3
                $0.onlyPeers = true
            }
        }
        #expect(try why(quiet) == "Only a request wakes it.")
        let blind = Records.make(suspended) { $0.watch = WatchStatus() }
        #expect(try why(blind) == "Only a request wakes it.")
        let awake = Records.make(Records.worker) {
            $0.watch = Records.make(WatchStatus()) {
                $0.unwatched = [
                    Records.make(UnwatchedStatus()) {
                        $0.what = "socket"
                        $0.problem = "notPermitted"
                        $0.count = 2
                    }
                ]
            }
        }
        #expect(try why(awake)?.hasSuffix(" Cannot watch 2 sockets: operation not permitted.") == true)
    }

    @Test("a suspended app shows the file locks that it holds, and a wake that waits for background time (L43, L53)")
    func waiting() throws {
        let daemon = try FakeDaemon()
        let app = Records.make(Records.idleWorker) {
            $0.trafficWakes = 0
            $0.watch = nil
            ($0.shortestWait, $0.timerIn, $0.pulseIn) = (nil, nil, nil)
            $0.heldLocks = Records.make(LockStatus()) {
                $0.count = 1
                $0.file = "/srv/db"
            }
            $0.deferredWake = Records.make(DeferredWakeStatus()) {
                $0.reason = "backgroundTimeUsedUp"
                $0.explanation = "its background time is used up"
                $0.input = Records.make(InputStatus()) {
                    $0.kind = "pipe"
                    $0.pid = 7
                    $0.descriptor = 3
                    $0.isOwn = true
                }
                $0.remaining = .seconds(720)
            }
        }
        daemon.answer("Status", app)
        let deferred =
            "Data in a pipe wakes it in 12min: its background time is used up."
        let locks = "It holds a lock on /srv/db: other programs may wait for it."
        #expect(
            try daemon.run("status", "worker1").output.hasSuffix(
                "  Suspended: Only a request wakes it.\n             \(deferred)\n             \(locks)\n"))
        #expect(
            try daemon.run("status", "-v", "worker1").output.contains(
                "             Data in a pipe (descriptor 3 of process 7, sent by the app itself).\n"))
        let outcome = try daemon.run("idle", "--json", "worker1")
        let shown = try #require(try JSONValue.parse(outcome.output).arrayValue?.first)
        #expect(shown["why"]?.stringValue == "Only a request wakes it. \(deferred) \(locks)")
        #expect(shown["heldLocks"]?["file"]?.stringValue == "/srv/db")
        #expect(shown["deferredWake"]?["input"]?["own"]?.boolValue == true)
        daemon.answer(
            "Status",
            Records.make(app) {
                $0.heldLocks?.count = 3
                $0.deferredWake?.input = nil
            })
        let other = try daemon.run("status", "worker1").output
        #expect(other.contains("             A request that it has sent to itself wakes it in 12min"))
        #expect(other.contains("             It holds 3 file locks, one on /srv/db: other programs may wait for it.\n"))
    }

    @Test("status says since when a wake is open, of several for one reason since when the oldest is (L26, L51)")
    func wakes() throws {
        let daemon = try FakeDaemon()
        let app = Records.make(Records.worker) {
            $0.wakes = [("push", UInt64(3)), ("push", 4)].map { reason, number in
                Records.make(WakeStatus()) {
                    $0.wakeID = number
                    $0.reason = reason
                    $0.remaining = .seconds(20)
                }
            }
            $0.awake = [
                Records.make(AwakeStatus()) {
                    $0.reason = "wake"
                    $0.detail = "push"
                    $0.explanation = "it was woken: push"
                    $0.since = Records.time
                }
            ]
        }
        daemon.answer("Status", app)
        #expect(
            try daemon.run("status", "worker1").output.contains(
                "      Wakes: push 3, 20s left, since 2025-11-21T07:12:03.250000Z\n             push 4, 20s left\n"))
    }

    @Test("status says why an app is awake and since when, and what woke it (L50, L51)")
    func awake() throws {
        let daemon = try FakeDaemon()
        daemon.answer("Status", Records.worker)
        #expect(
            try daemon.run("status", "worker1").output == """
                ● worker1
                      State: background since 2025-11-21T07:12:03.250000Z
                        PID: 4711
                     Memory: 0B
                   Launches: 1
                      Awake: A thread is in a call: thread 7 (writer) is in write(2), since 2025-11-21T07:12:05.000000Z.
                    Traffic: woken 17 times, last at 2025-11-21T07:12:03.250000Z by a connection from 192.0.2.7:50123

                """)
    }

    @Test("status says why an app is throttled, and since when (L44)")
    func throttled() throws {
        let daemon = try FakeDaemon()
        let app = Records.make(Records.worker) {
            $0.throttle = Records.make(ThrottleStatus()) {
                $0.explanation = "it used 58s of CPU time within 1min in the background"
                $0.since = Timestamp(rfc3339: "2025-11-21T07:12:05Z")
            }
        }
        daemon.answer("Status", app)
        let outcome = try daemon.run("status", "worker1")
        #expect(
            outcome.output.contains(
                "Throttled: since 2025-11-21T07:12:05.000000Z: it used 58s of CPU time within 1min in the background\n")
        )
    }

    @Test("status of a suspended app says what would wake it and what cannot be watched (L50)")
    func suspended() throws {
        let daemon = try FakeDaemon()
        daemon.answer("Status", Records.make(Records.idleWorker) { $0.trafficWakes = 0 })
        let outcome = try daemon.run("status", "worker1")
        #expect(
            outcome.output == """
                ◌ worker1
                      State: suspended since 2025-11-21T07:12:03.250000Z
                        PID: 4711
                     Memory: 0B
                   Launches: 1
                  Suspended: Input of 64B wakes it, and less after 30s.
                             Cannot watch 1 socket: operation not permitted.
                             Its next timer wakes it in 1min 30s.
                             It runs for a moment in 20s; KeepAwake=timers would keep it awake.

                """)
        #expect(outcome.errors.isEmpty)
    }

    @Test("a wake by input is shown in terms of its kind, and text of peers is escaped")
    func phrases() throws {
        let daemon = try FakeDaemon()
        let app = Records.make(Records.worker) {
            $0.trafficWakes = 1
            $0.lastInput = Records.make(InputStatus()) {
                $0.kind = "pipe"
                $0.peer = "a\u{1B}[2Jb"
                $0.pid = 7
                $0.bytes = 40_000
                $0.isHalfFull = true
            }
        }
        daemon.answer("Status", app)
        #expect(
            try daemon.run("status", "worker1").output.contains(
                "    Traffic: woken 1 time, last by data in a pipe from a\\x1b[2Jb\n"))
        #expect(
            try daemon.run("status", "worker1", "--verbose").output.contains(
                "    Traffic: woken 1 time, last by data in a pipe from a\\x1b[2Jb (descriptor 0 of process 7, 39.1K, "
                    + "buffer more than half full)\n"))
        var input = Records.input
        let subjects: [(String, String)] = [
            ("stream", "data on a connection from"), ("datagram", "a datagram from"), ("listener", "a connection from"),
            ("timer", "a timer descriptor from"), ("future", "future from"),
        ]
        for (kind, subject) in subjects {
            input.kind = kind
            #expect(input.phrase.hasPrefix(subject))
        }
        input.isEnd = true
        #expect(input.phrase.hasPrefix("the end of a stream from 192.0.2.7:50123 (descriptor 5"))
    }
}
