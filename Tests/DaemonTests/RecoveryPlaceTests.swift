import Control
import Glibc
import JSON
import Linux
import Posix
import Systemd
import TestKit
import Testing

/// The daemon goes on where the world is not what it was: another boot, a logbook of another version, no cgroups.
@Suite("Recovery elsewhere")
struct RecoveryPlaceTests {
    private func overwrite(_ path: String, at offset: Int, _ bytes: [UInt8]) throws {
        let file = try Descriptor.open(path, O_WRONLY)
        #expect(pwrite(file.raw, bytes, bytes.count, off_t(offset)) == bytes.count)
    }

    private func log(_ daemon: TestDaemon) -> String { TestDaemon.text(of: daemon.root + "/log") }

    @Test("L45: after another boot each app that ran has its receipt, nothing runs, and apps are launched as ever")
    func anotherBoot() throws {
        let first = try TestDaemon([
            "front": TestDaemon.manifest(""), "back": TestDaemon.manifest(""), "never": TestDaemon.manifest(""),
        ])
        try first.launch("back")
        try first.launch("front")
        try first.waitUntil("back", is: "suspended")
        let processes = try ["front", "back"].map { try #require(try Linux.Process.open(try first.pid($0))) }
        first.crash()
        // The machine goes down: its processes with it, and its boot ID (of which the logbook has this one's at byte 16).
        for process in processes {
            try process.signal(SIGKILL)
            waitForReadable([process.descriptor])
        }
        try overwrite(first.runtime + "/logbook", at: 16, Array("00000000-0000".utf8))
        let second = try first.successor()
        for app in ["front", "back"] {
            #expect(try second.state(app) == "notRunning")
            let receipts = try second.receipts(app)
            #expect(receipts.count == 1)
            #expect(receipts.last?["explanation"]?.stringValue?.contains("was lost with the machine") == true)
            #expect(receipts.last?["exitStatus"] == nil && receipts.last?["signal"] == nil)
        }
        #expect(try second.receipts("never").isEmpty)
        #expect(!log(second).contains("went on where an earlier daemon was"))
        #expect(try second.launch("front")["state"]?.stringValue == "active")
        #expect(try second.status("front")["launches"]?.integerValue == 2)
        // Receipts count on.
        try second.terminate("front")
        #expect(try second.receipts("front").compactMap { $0["id"]?.integerValue }.last == 3)
    }

    @Test(
        "a logbook of another version is refused with a sentence; apps of which nothing is known end in order, each with a receipt",
        arguments: [0, 2])
    func anotherVersion(version: UInt8) throws {
        let root = try TestDaemon.makeFolder()
        let first = try TestDaemon(
            [
                "photos": TestDaemon.manifest("term=exit:3 fork 1", trace: root + "/trace"),
                "stubborn": TestDaemon.manifest("term=ignore"),
                "frozen": TestDaemon.manifest("term=exit:0", "[Lifecycle]\nSuspendDelaySec=0"),
            ], root: root)
        try first.launch("frozen", background: true)
        try first.launch("stubborn")
        try first.waitUntil("frozen", is: "suspended")
        try first.launch("photos")
        let apps = ["photos", "stubborn", "frozen"]
        let pids = try apps.map(first.pid)
        let all = try apps.flatMap(first.processes)
        first.crash()
        try overwrite(first.runtime + "/logbook", at: 8, [version])
        let second = try first.successor()
        let lines = log(second).split(separator: "\n").filter { $0.contains("logbook: version") }
        #expect(lines.count == 1 && lines[0].contains("version \(version), expected 1"))
        #expect(!all.contains(where: isAlive))
        for (app, pid) in zip(apps, pids) {
            #expect(try second.state(app) == "notRunning")
            let receipts = try second.receipts(app)
            #expect(receipts.count == 1 && receipts.last?["pid"]?.integerValue == Int64(pid))
            #expect(receipts.last?["explanation"]?.stringValue?.contains("nothing is known") == true)
        }
        // Told to, and not just killed.
        #expect(second.trace().last == "willTerminate")
        #expect(try second.launch("photos")["state"]?.stringValue == "active")
        #expect(try second.receipts("photos").count == 1)
        if let groups = second.groupRoot {
            #expect(try folderEntries(at: groups, onlyFolders: true).count == 1)
        }
    }

    @Test("what is left of an app that nobody knows of any more is killed, and its group removed once it is empty")
    func leftGroup() throws {
        let first = try TestDaemon(["photos": TestDaemon.manifest("")])
        guard let root = first.groupRoot else { return }
        try first.launch("photos")
        let pid = try first.pid("photos")
        first.crash()
        let group = root + "/ghost.run5"
        try createDirectories(at: group)
        var starting = try startProcess(SpawnRequest(executable: "/bin/sleep", arguments: ["1000"]))
        while try starting.outcome() == .pending { waitForReadable([starting.outcomeDescriptor]) }
        try writeControlFile(group + "/cgroup.procs", "\(starting.process.pid)")
        let second = try first.successor()
        waitForReadable([starting.process.descriptor])
        #expect(try starting.process.reap()?.status == .signaled(SIGKILL, coreDumped: false))
        try second.eventually("its group is gone") { !exists(at: group) }
        #expect(try second.pid("photos") == pid && second.state("photos") == "active")
    }
}

@Suite("Recovery in process-group mode", .enabled(if: geteuid() == 0, "needs root to become nobody"))
struct RecoveryWithoutGroupsTests {
    private func isStopped(_ pid: Int32) throws -> Bool { try ProcFS().stat(of: pid)?.isStopped ?? false }

    @Test(
        "SIGKILL of the daemon: apps are found again by pid and start time, the stopped are stopped, and each is launched once"
    )
    func killed() throws {
        let script = "[App]\nExecStart=/bin/sh -c 'sleep 1000 & (setsid sleep 1000 &) ; exec sleep 1000'\n"
        let first = try TestDaemon(
            [
                "front": script, "back": script + "[Lifecycle]\nSuspendDelaySec=0\n",
                "gone": "[App]\nExecStart=/bin/sleep 1000\n",
            ], asNobody: true)
        try first.launch("gone", background: true)
        try first.launch("back", background: true)
        try first.launch("front")
        var families: [[Int32]] = []
        try first.eventually("all are there") {
            families = try ["front", "back"].map(first.processes)
            return families.allSatisfy { family in
                family.count == 3 && family.allSatisfy { TestDaemon.text(of: "/proc/\($0)/comm") == "sleep\n" }
            }
        }
        try first.waitUntil("back", is: "suspended")
        try first.waitUntil("gone", is: "suspended")
        let pids = try ["front", "back"].map(first.pid)
        let gone = try #require(try Linux.Process.open(try first.pid("gone")))
        first.crash()
        #expect(families.joined().allSatisfy(isAlive))
        #expect(try families[0].allSatisfy { try !isStopped($0) })
        #expect(try families[1].allSatisfy { try isStopped($0) })
        try gone.signal(SIGKILL)
        waitForReadable([gone.descriptor])
        let second = try first.successor()
        try second.waitUntil("gone", is: "notRunning")
        #expect(try second.receipts("gone").count == 1)
        #expect(try second.state("front") == "active" && second.state("back") == "suspended")
        #expect(try ["front", "back"].map(second.pid) == pids)
        #expect(try ["front", "back"].map { Set(try second.processes(of: $0)) } == families.map(Set.init))
        #expect(try families[1].allSatisfy { try isStopped($0) })
        for app in ["front", "back"] {
            #expect(try second.status(app)["launches"]?.integerValue == 1)
            #expect(try second.receipts(app).isEmpty)
        }
        #expect(try second.ask("Activate", "back")["state"]?.stringValue == "active")
        #expect(try families[1].allSatisfy { try !isStopped($0) })
        #expect(second.stop() == .exited(0))
        #expect(!families.joined().contains(where: isAlive))
    }
}
