import Control
import Glibc
import JSON
import LifecycleCore
import Linux
import Posix
import Systemd
import TestKit
import Testing

@testable import Daemon

/// The logbook of another version of greenroomd.
@Suite("Recovery from another version's logbook")
struct RecoveryVersionTests {
    /// Makes another version the writer of a logbook.
    private func changeWriter(_ path: String) throws {
        let file = try Descriptor.open(path, O_WRONLY)
        let name = Array("0.0.1".utf8) + [UInt8](repeating: 0, count: 27)
        #expect(pwrite(file.raw, name, name.count, off_t(Logbook.Word.writer)) == name.count)
    }

    @Test("a logbook that ends with a snapshot is read completely, and replaced")
    func snapshot() throws {
        let folder = makeTemporaryFolder("greenroom-version")
        defer { removeTree(folder) }
        defer { MappedFile.stopCountingOwnEnd() }
        let path = folder + "/logbook"
        var core = LifecycleCore(firstRun: 7, firstReceipt: 3)
        _ = core.handle(.absence(.locked), at: .origin)
        let first = Logbook(path: path, journal: .quiet)
        first.create(core, records: ["run/6": [1, 2, 3]], firstEvent: 40)
        try changeWriter(path)
        let recovered = try #require(try Logbook.read(at: path))
        #expect(recovered.core == core && recovered.records == ["run/6": [1, 2, 3]])
        #expect(recovered.warnings.isEmpty && !recovered.lacksEvents && recovered.position == nil)
        let second = Logbook(path: path, journal: .quiet)
        second.resumeLog(recovered)
        #expect(second.eventNumber == 40)
        second.append(.absence(.unlocked), at: .origin)
        // New events are written to a file of this version.
        let again = try #require(try Logbook.read(at: path))
        #expect(again.events.count == 1 && !again.lacksEvents && again.position != nil)
    }

    @Test(
        "events of another version are ignored: the snapshot before them is recovered, with a warning of both versions")
    func events() throws {
        let folder = makeTemporaryFolder("greenroom-version")
        defer { removeTree(folder) }
        defer { MappedFile.stopCountingOwnEnd() }
        let path = folder + "/logbook"
        let core = LifecycleCore(firstRun: 7, firstReceipt: 3)
        let first = Logbook(path: path, journal: .quiet)
        first.create(core, records: [:])
        first.append(.absence(.locked), at: .origin)
        first.beginEffects()
        first.persist([9], as: "run/7")
        try changeWriter(path)
        let recovered = try #require(try Logbook.read(at: path))
        #expect(recovered.core == core && recovered.records == ["run/7": [9]])
        #expect(recovered.lacksEvents && recovered.events.isEmpty && recovered.position == nil)
        #expect(recovered.warnings.count == 1)
        let warning = recovered.warnings.first ?? ""
        #expect(warning.contains("0.0.1") && warning.contains(ControlNames.version), "\(warning)")
        #expect(recovered.eventNumber == 1)
    }

    @Test(
        "apps survive a daemon of another version that left events: no app is killed because its answer is lost, and an app that the snapshot lacks is terminated with a receipt"
    )
    func realApps() throws {
        let root = try TestDaemon.makeFolder()
        let manager = try FakeServiceManager(in: root)
        let first = try TestDaemon(
            [
                "front": TestDaemon.manifest(""),
                "slow": TestDaemon.manifest("", "[Lifecycle]\nLaunchDeadlineSec=20s", hangs: true),
                "late": TestDaemon.manifest("term=exit:3", trace: root + "/late"),
            ], root: root, manager: manager)
        try first.launch("front")
        _ = try first.begin("Launch", "slow", [.dictionary([("background", .bool(true))])])
        try first.eventually("the slow app runs") { try first.pid("slow") > 0 }
        let slow = try first.notifySocket("slow")
        // The logbook ends with a snapshot.
        _ = try first.call("Reexec")
        try first.reconnect()
        manager.takeReady()
        try sendDatagram("READY=1", to: slow)
        try first.waitUntil("slow", is: "suspended")
        #expect(try first.ask("Background", "front")["state"]?.stringValue == "background")
        try first.waitUntil("front", is: "suspended")
        try first.launch("late")
        let pids = try ["front", "slow"].map(first.pid)
        let late = try first.pid("late")
        first.crash()
        try changeWriter(first.runtime + "/logbook")
        let second = try first.successor()
        #expect(TestDaemon.text(of: root + "/log").contains("which greenroomd 0.0.1 wrote"))
        #expect(try ["front", "slow"].map(second.pid) == pids)
        // The apps are in the states of the snapshot, and so are their groups.
        #expect(try second.state("front") == "active" && !second.frozen("front"))
        try second.waitUntil("slow", is: "suspended")
        #expect(try second.receipts("slow").isEmpty && second.receipts("front").isEmpty)
        // The app that the snapshot does not contain.
        #expect(!isAlive(late))
        #expect(second.trace("late").last == "willTerminate")
        let receipts = try second.receipts("late")
        #expect(receipts.count == 1 && receipts.last?["pid"]?.integerValue == Int64(late))
        try second.launch("late")
        try second.terminate("late")
        let ids = try second.receipts("late").compactMap { $0["id"]?.integerValue }
        #expect(ids.count == 2 && ids[0] < ids[1])
        #expect(try second.terminate("front")["outcome"]?.stringValue == "ended")
    }
}
