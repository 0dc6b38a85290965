import JSON
import Testing

@Suite("Receipts of real processes")
struct ReceiptTests {
    @Test("L45: an orphan that MAINPID= names is watched and reaped as any main process, and blamed for what it missed")
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

    @Test("L17: an orphan that is the main process answers by stopping itself, as any main process")
    func orphanStops() throws {
        let daemon = try TestDaemon(["editor": TestDaemon.manifest("background=stop orphan")])
        try daemon.launch("editor")
        #expect(try daemon.ask("Background", "editor")["state"]?.stringValue == "background")
    }

    @Test("L45: how a main process ended whose parent lives is not known, and its receipt says so")
    func strangersChild() throws {
        let daemon = try TestDaemon([
            "late": TestDaemon.manifest("child", "[Lifecycle]\nWatchdogSec=300ms"),
            "three": TestDaemon.manifest("term=exit:3 child"),
        ])
        try daemon.launch("late")
        try daemon.wait("late", "ended")
        let late = try #require(try daemon.receipts("late").last)
        #expect(late["code"]?.stringValue == "0x8badf00d", "\(late)")
        // Killed with it, its parent left it to us.
        #expect(late["signal"]?.integerValue == 9, "\(late)")
        try daemon.launch("three")
        let receipt = try #require(try daemon.terminate("three")["lastReceipt"])
        #expect(receipt["exitStatus"] == nil && receipt["signal"] == nil, "\(receipt)")
        #expect(receipt["explanation"]?.stringValue?.contains("unknown status") == true)
    }

    @Test("L45: a life too short to be measured has the size in its receipt that the kernel knows")
    func peak() throws {
        let daemon = try TestDaemon(["brief": "[App]\nExecStart=\(TestDaemon.app) allocate 150000000 exit 0\n"])
        try daemon.launch("brief")
        try daemon.wait("brief", "ended")
        #expect(try daemon.receipts("brief").last?["memoryBytes"]?.integerValue ?? 0 > 0)
    }
}
