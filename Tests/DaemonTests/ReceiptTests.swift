import JSON
import Linux
import Testing

@Suite("Receipts of real processes")
struct ReceiptTests {
    @Test("an orphan that MAINPID= names is watched, reaped and subject to deadlines like any main process (L45)")
    func orphan() throws {
        let daemon = try TestDaemon([
            "late": TestDaemon.manifest("orphan", "[Lifecycle]\nWatchdogSec=300ms"),
            "three": TestDaemon.manifest("term=exit:3 orphan"),
        ])
        try daemon.launch("late")
        try daemon.wait("late", "ended")
        let late = try #require(try daemon.receipts("late").last)
        #expect(late["code"]?.stringValue == "0x8badf00d", "\(late)")
        #expect(late["signal"]?.integerValue == 9)
        try daemon.launch("three")
        #expect(try daemon.terminate("three")["lastReceipt"]?["exitStatus"]?.integerValue == 3)
    }

    @Test("an orphan that is the main process may answer by stopping itself (L17)")
    func orphanStops() throws {
        let daemon = try TestDaemon(["editor": TestDaemon.manifest("background=stop orphan")])
        try daemon.launch("editor")
        #expect(try daemon.ask("Background", "editor")["state"]?.stringValue == "background")
    }

    @Test("the receipt has the exit status of a main process with another parent, which does not reap it (L45)")
    func otherParent() throws {
        let daemon = try TestDaemon([
            "late": TestDaemon.manifest("child", "[Lifecycle]\nWatchdogSec=300ms"),
            "three": TestDaemon.manifest("term=exit:3 child"),
        ])
        try daemon.launch("late")
        try daemon.wait("late", "ended")
        let late = try #require(try daemon.receipts("late").last)
        #expect(late["code"]?.stringValue == "0x8badf00d", "\(late)")
        // The process's parent was killed too, so the process became a child of the daemon.
        #expect(late["signal"]?.integerValue == 9, "\(late)")
        try daemon.launch("three")
        let receipt = try #require(try daemon.terminate("three")["lastReceipt"])
        #expect(receipt["exitStatus"]?.integerValue == 3 && receipt["signal"] == nil, "\(receipt)")
    }

    @Test("the receipt of a run that is too short to be measured has the kernel's peak size (L45)")
    func peak() throws {
        // More than the peak of the daemon, which counts from before its execve(2), when it was a copy of this process.
        let size = OwnProcess.peakBytes + 150_000_000
        let daemon = try TestDaemon(["brief": "[App]\nExecStart=\(TestDaemon.app) allocate \(size) exit 0\n"])
        try daemon.launch("brief")
        try daemon.wait("brief", "ended")
        #expect(try daemon.receipts("brief").last?["memoryBytes"]?.integerValue ?? 0 > 0)
    }
}
