import Glibc
import JSON
import LifecycleCore
import Testing

@testable import Daemon

@Suite("Timers, ticks and waits of workers", .enabled(if: TrafficStage.hasPython, "needs python3"))
struct WorkerTimerTests {
    private func stage(_ program: String, _ settings: String = "") throws -> TrafficStage {
        try TrafficStage(["server": Self.start + program], settings)
    }

    private static let start = """
        import ctypes, signal, time
        def posix_timer(seconds):
            libc = ctypes.CDLL(None)
            timer = ctypes.c_void_p()
            libc.timer_create(1, None, ctypes.byref(timer))
            libc.timer_settime(timer, 0, ctypes.byref((ctypes.c_long * 4)(0, 0, seconds, 0)), None)

        """

    @Test(
        "a worker is suspended between its timers, and thawed when one is due (L51)",
        arguments: [
            "time.sleep(6)", "select.select([], [], [], 6)", "signal.setitimer(signal.ITIMER_REAL, 6); signal.pause()",
            "posix_timer(6); signal.pause()",
        ])
    func served(wait: String) throws {
        let stage = try stage(
            """
            import select
            signal.signal(signal.SIGALRM, lambda *_: None)
            number = 1
            publish(sys.argv[1], '1')
            while True:
                \(wait)
                number += 1
                publish(sys.argv[1], str(number))
            """)
        _ = try stage.launch()
        try stage.suspended()
        let isSignal = wait.contains("pause")
        let status = try stage.daemon.status("server")
        if status["state"]?.stringValue == "suspended" { #expect((status["timerInSeconds"] == nil) == isSignal) }
        try stage.daemon.eventually("its timer is served") {
            (Int(TestDaemon.text(of: stage.daemon.root + "/server.port")) ?? 0) >= 2
        }
        try stage.suspended()
        let after = try stage.daemon.status("server")
        #expect((after["trafficWakes"]?.integerValue ?? 0 > 0) == isSignal, "\(after)")
    }

    @Test(
        "a timer that is due after the daemon was killed is served by the next one, and does not begin anew (L51)",
        arguments: [
            "select.select([], [], [], 16)",
            "signal.setitimer(signal.ITIMER_REAL, 16); select.select([], [], [], 3600)",
            "posix_timer(16); select.select([], [], [], 3600)",
        ])
    func servedByTheNext(wait: String) throws {
        let stage = try stage(
            """
            import select
            # The kernel would wait for what was left at the freeze once more: most of the 16 s.
            def served(*_): publish(sys.argv[1], '2' if time.monotonic() - begin < 24 else '3')
            signal.signal(signal.SIGALRM, served)
            publish(sys.argv[1], '1')
            begin = time.monotonic()
            \(wait)
            served()
            signal.pause()
            """)
        _ = try stage.launch()
        // Then the look at the frozen threads is over.
        try stage.daemon.eventually("what is left is recorded") {
            let records = try Logbook.read(at: stage.daemon.runtime + "/logbook")?.records ?? [:]
            return records.contains { RunRecord.run(named: $0) != nil && (try? RunRecord(reading: $1).rests) != nil }
        }
        #expect(try stage.daemon.state("server") == "suspended")
        stage.crash()
        try stage.restart()
        func number() -> Int { Int(TestDaemon.text(of: stage.daemon.root + "/server.port")) ?? 0 }
        try stage.daemon.eventually("its timer is served") { number() >= 2 }
        #expect(number() == 2)
    }

    @Test("a suspended program without anything at which input could arrive needs no descriptor of the daemon (L50)")
    func withoutInput() throws {
        let program = "import time\nlistener.close()\npublish(sys.argv[1], '1')\ntime.sleep(3600)"
        let apps = ["a", "b", "c", "d", "e"]
        let stage = try TrafficStage(Dictionary(uniqueKeysWithValues: apps.map { ($0, program) }))
        /// Pidfds, and sets of epoll(7).
        func objects() -> Int { stage.daemon.openDescriptors().count { $0 == "anon_inode:" } }
        let before = objects()
        for app in apps { _ = try stage.launch(app) }
        for app in apps {
            try stage.suspended(app)
            try stage.daemon.eventually("its descriptors are known") { try stage.daemon.status(app)["watch"] != nil }
        }
        // Each has its main process, and the daemon makes some for all apps when it needs them. An app that was suspended before
        // it slept is watched in another way until its next look.
        try stage.daemon.eventually("an app needs one") { objects() < before + 2 * apps.count }
    }

    @Test("a worker in a call that cannot be watched stays awake, and status says which thread is in which call (L51)")
    func unwatched() throws {
        let stage = try stage(
            """
            reader, writer = os.pipe()
            publish(sys.argv[1], '1')
            os.write(writer, bytes(1 << 20))
            """)
        _ = try stage.launch()
        try stage.daemon.eventually("it is awake for that") {
            let awake = try stage.daemon.status("server")["awake"]?.arrayValue?.first
            guard awake?["reason"]?.stringValue == "unwatchedCall" else { return false }
            let detail = awake?["detail"]?.stringValue ?? ""
            #expect(detail.hasPrefix("thread ") && detail.hasSuffix("(python3) is in write(2) on a pipe"))
            #expect(awake?["explanation"]?.stringValue?.hasSuffix(detail) == true)
            return true
        }
        #expect(try stage.daemon.state("server") == "background")
    }

    @Test(
        "a large write of a worker to a reader that pauses is not cut: it stays awake until all is written (L51)",
        arguments: ["os.write(peer.fileno(), data)", "peer.send(data)", "peer.sendmsg([data])"])
    func blockedWrite(call: String) throws {
        let stage = try stage(
            """
            publish(sys.argv[1], str(listener.getsockname()[1]))
            peer, _ = listener.accept()
            data = bytes(30_000_000)
            count = \(call)
            publish(sys.argv[1] + '.written', str(count))
            peer.close()
            time.sleep(3600)
            """)
        let client = try TrafficClient(port: try stage.launch())
        try stage.daemon.eventually("it is seen in the call") {
            try stage.daemon.status("server")["awake"]?.arrayValue?.first?["reason"]?.stringValue == "unwatchedCall"
        }
        #expect(try client.receive().count == 30_000_000)
        try stage.daemon.eventually("the call returns") {
            TestDaemon.text(of: stage.daemon.root + "/server.port.written") == "30000000"
        }
    }

    @Test("bytes over a connection keep a worker with ticks awake for RequestSec=, and then it runs in pulses (L51)")
    func ticks() throws {
        let program = """
            def tick():
                while True:
                    time.sleep(0.2)
            threading.Thread(target=tick, daemon=True).start()
            run()
            """
        // Without KeepAwake=cpu it could be suspended while it starts, or before its ticks are learned.
        let stage = try stage(program, "RequestSec=5s\nPulseSec=1s")
        let client = try TrafficClient(port: try stage.launch())
        // Its ticks are learned while nothing else happens.
        try stage.suspended()
        try client.exchange([1])
        try stage.daemon.eventually("what went over its connection counts") {
            let awake = try stage.daemon.status("server")["awake"]?.arrayValue
            return awake?.first?["reason"]?.stringValue == "traffic"
        }
        try stage.daemon.eventually("it is suspended, until its next pulse") {
            let status = try stage.daemon.status("server")
            return status["state"]?.stringValue == "suspended" && status["pulseInSeconds"] != nil
                && status["shortestWaitSeconds"] != nil
        }
        try client.exchange([2])
    }

    @Test(
        "the log, status and the answer to a launch say that nothing but a request wakes a worker (L51)",
        arguments: ["signal.pause()", "os.waitpid(os.fork() or signal.pause(), 0)", "os.read(os.pipe()[0], 1)"])
    func onlyRequestsWake(wait: String) throws {
        let stage = try stage("listener.close()\npublish(sys.argv[1], '1')\n\(wait)")
        _ = try stage.launch()
        try stage.suspended()
        let sentence =
            "nothing but a request wakes it: it has nothing at which input can arrive, it has no timer, and the daemon "
            + "holds no socket for it; ListenStream= can change that, and IdleSec=infinity keeps it awake"
        try stage.daemon.eventually("status says so") {
            try stage.daemon.status("server")["wakeProblem"]?.stringValue == sentence
        }
        #expect(TestDaemon.text(of: stage.daemon.root + "/log").contains("server: it is suspended, and \(sentence)\n"))
        let again = try stage.daemon.launch("server")
        #expect(again["warnings"]?.arrayValue?.first?.stringValue == "once it is suspended, \(sentence)")
    }

    @Test(
        "a worker that input or a timer wakes is not warned of (L51)",
        arguments: [
            "run()", "listener.close(); time.sleep(3600)", "listener.close(); signal.alarm(3600); signal.pause()",
        ])
    func wakes(program: String) throws {
        let stage = try stage("signal.signal(signal.SIGALRM, print)\npublish(sys.argv[1], '1')\n\(program)")
        _ = try stage.launch()
        try stage.suspended()
        try stage.daemon.eventually("it is watched") { try stage.daemon.status("server")["watch"] != nil }
        #expect(try stage.daemon.status("server")["wakeProblem"] == nil)
        #expect(!TestDaemon.text(of: stage.daemon.root + "/log").contains("nothing but a request"))
    }
}
