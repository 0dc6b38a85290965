import JSON
import Testing

@Suite("Input that an app has sent to itself", .enabled(if: TrafficStage.hasPython, "needs python3"))
struct OwnInputTests {
    @Test(
        "a worker that wakes itself through its own pipe has a limited time for it; clients wake it at any time (L53)")
    func pipe() throws {
        // It never reads the pipe, whose other end its child has, so the pipe wakes it after each suspension.
        let program = """
            import signal
            reader, writer = os.pipe()
            os.write(writer, b'x')
            if os.fork() == 0:
                os.close(reader)
                signal.pause()
            os.close(writer)
            run()
            """
        let stage = try TrafficStage(["server": program], "BackgroundTimePerHourSec=2s")
        let port = try stage.launch()
        func waits() throws -> JSONValue? { try stage.daemon.status("server")["deferredWake"] }
        try stage.daemon.eventually("its wake waits") { try waits() != nil }
        let status = try stage.daemon.status("server")
        #expect(status["state"]?.stringValue == "suspended")
        #expect(status["lastInput"]?["own"]?.boolValue == true, "\(status)")
        #expect(status["deferredWake"]?["reason"]?.stringValue == "backgroundTimeUsedUp")
        #expect(status["deferredWake"]?["input"]?["kind"]?.stringValue == "pipe")
        #expect((status["deferredWake"]?["remainingSeconds"]?.numberValue ?? 0) > 0)
        #expect((status["backgroundTimeLastHourSeconds"]?.numberValue ?? 0) >= 2)
        let client = try TrafficClient(port: port)
        try client.exchange([1, 2, 3])
        try stage.daemon.eventually("its wake waits again") { try waits() != nil }
        try client.exchange([4])
        #expect(try stage.daemon.status("server")["lastInput"]?["own"] == nil)
    }
}
