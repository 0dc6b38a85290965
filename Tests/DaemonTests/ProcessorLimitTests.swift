import Glibc
import JSON
import Linux
import Posix
import TestKit
import Testing

/// Processor time in the background (L44). Workers run at normal weight, so that a busy machine leaves them enough to
/// exceed a small limit.
@Suite("Processor time in the background")
struct ProcessorLimitTests {
    private static func manifest(_ script: String, _ settings: String) -> String {
        """
        [App]
        Role=worker
        ExecStart=/bin/sh -c '\(script)'
        [Lifecycle]
        BackgroundCPULimit=5%
        BackgroundCPUSec=1s
        \(settings)

        """
    }

    @Test(
        "a busy loop in the background is killed with 0xc51bad01, after a warning in the log (L44)",
        arguments: geteuid() == 0 ? [false, true] : [false])
    func killed(withoutCgroups: Bool) throws {
        let text = Self.manifest("while :; do :; done", "BackgroundCPU=kill")
        let daemon = try TestDaemon(["burns": text], asUnprivilegedUser: withoutCgroups)
        try daemon.launch("burns", background: true)
        let warning = try daemon.wait("burns", "cpuUseHigh")
        #expect(try #require(warning["cpuSeconds"]?.numberValue) > 0)
        try daemon.wait("burns", "ended")
        let receipt = try #require(try daemon.receipts("burns").last)
        #expect(receipt["namespace"]?.stringValue == "resource")
        #expect(receipt["code"]?.stringValue == "0xc51bad01")
        #expect(receipt["state"]?.stringValue == "background")
        let explanation = receipt["explanation"]?.stringValue ?? ""
        #expect(explanation.hasSuffix("in the background; the limit is 5% of one processor (BackgroundCPULimit=)."))
        try daemon.waitUntil("burns", is: "notRunning")
    }

    @Test("a worker that computes too much is throttled until it has done that, and is not killed (L44)")
    func throttled() throws {
        let root = try TestDaemon.makeFolder()
        let text = Self.manifest("while ! test -e \(root)/enough; do :; done; exec sleep 1000", "IdleSec=1min")
        let daemon = try TestDaemon(["burns": text], root: root)
        try daemon.launch("burns", background: true)
        let pid = try daemon.pid("burns")
        let group = try daemon.groupPath("burns")
        func quota() -> String? {
            group.map { $0 + "/cpu.max" }.flatMap { exists(at: $0) ? TestDaemon.text(of: $0) : nil }
        }
        func isIdle() -> Bool {
            sched_getscheduler(pid) == 5  // SCHED_IDLE, sched(7)
                || group.map { TestDaemon.text(of: $0 + "/cpu.idle") == "1\n" } ?? false
        }
        let canChangeWeights = geteuid() == 0 || quota() != nil
        try daemon.wait("burns", "cpuThrottled")
        let throttle = try #require(try daemon.status("burns")["throttle"])
        #expect(try #require(throttle["explanation"]?.stringValue).contains("the limit is 5% of one processor"))
        #expect(throttle["since"] != nil)
        #expect([nil, "5000 100000\n"].contains(quota()))
        // The commands are answered before the daemon has changed the processes.
        if canChangeWeights { try daemon.eventually("the worker is throttled") { isIdle() } }
        try replaceFile(at: root + "/enough", with: [])
        try daemon.wait("burns", "cpuThrottleEnded")
        let status = try daemon.status("burns")
        #expect(status["throttle"] == nil && status["state"]?.stringValue == "background")
        #expect(status["pid"]?.integerValue == Int64(pid))
        try daemon.eventually("the worker is not throttled") { !isIdle() && [nil, "max 100000\n"].contains(quota()) }
        #expect(try daemon.receipts("burns").isEmpty)
    }

    @Test("the next daemon counts what the app used before (L44)")
    func recovered() throws {
        let text = Self.manifest("while :; do :; done", "BackgroundCPU=throttle")
        let daemon = try TestDaemon(["burns": text])
        try daemon.launch("burns", background: true)
        try daemon.wait("burns", "cpuThrottled")
        let since = try daemon.status("burns")["throttle"]?["since"]?.integerValue
        #expect(since != nil)
        daemon.crash()
        let next = try daemon.successor()
        #expect(try next.status("burns")["throttle"]?["since"]?.integerValue == since)
    }
}
