import Control
import Glibc
import JSON
import Linux
import Posix
import Systemd
import TestKit
import Testing

/// The next daemon runs after a reboot, has another file format, or has no cgroups.
@Suite("Recovery after a reboot, or with another file format")
struct RecoveryRebootTests {
    private func overwrite(_ path: String, at offset: Int, _ bytes: [UInt8]) throws {
        let file = try Descriptor.open(path, O_WRONLY)
        #expect(pwrite(file.raw, bytes, bytes.count, off_t(offset)) == bytes.count)
    }

    private func log(_ daemon: TestDaemon) -> String { TestDaemon.text(of: daemon.root + "/log") }

    @Test("after a reboot each app that was running has a receipt, none runs, and apps can be launched (L45)")
    func anotherBoot() throws {
        let first = try TestDaemon([
            "front": TestDaemon.manifest(""), "back": TestDaemon.manifest(""), "never": TestDaemon.manifest(""),
        ])
        try first.launch("back")
        try first.launch("front")
        try first.waitUntil("back", is: "suspended")
        let processes = try ["front", "back"].map { try #require(try Linux.Process.open(try first.pid($0))) }
        first.crash()
        // The machine restarts: its processes end, and it has another boot ID (in the logbook at byte 16).
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
            #expect(receipts.last?["explanation"]?.stringValue?.contains("when the machine went down") == true)
            #expect(receipts.last?["exitStatus"] == nil && receipts.last?["signal"] == nil)
        }
        #expect(try second.receipts("never").isEmpty)
        #expect(!log(second).contains("from the previous instance"))
        #expect(try second.launch("front")["state"]?.stringValue == "active")
        #expect(try second.status("front")["launches"]?.integerValue == 2)
        // The IDs of receipts continue.
        try second.terminate("front")
        #expect(try second.receipts("front").compactMap { $0["id"]?.integerValue }.last == 3)
    }

    @Test(
        "a logbook with an unknown file format is not read: all apps are terminated in order, and each has a receipt",
        arguments: [1, 3])
    func anotherFormat(format: UInt8) throws {
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
        try overwrite(first.runtime + "/logbook", at: 8, [format])
        let second = try first.successor()
        let lines = log(second).split(separator: "\n").filter { $0.contains("logbook: file format") }
        #expect(lines.count == 1 && lines[0].contains("file format \(format), expected 2"))
        #expect(!all.contains(where: isAlive))
        for (app, pid) in zip(apps, pids) {
            #expect(try second.state(app) == "notRunning")
            let receipts = try second.receipts(app)
            #expect(receipts.count == 1 && receipts.last?["pid"]?.integerValue == Int64(pid))
            #expect(receipts.last?["explanation"]?.stringValue?.contains("its state is unknown") == true)
        }
        // Terminated in order, not killed.
        #expect(second.trace().last == "willTerminate")
        #expect(try second.launch("photos")["state"]?.stringValue == "active")
        #expect(try second.receipts("photos").count == 1)
        if let groups = second.groupRoot {
            #expect(try folderEntries(at: groups, onlyFolders: true).count == 1)
        }
    }

    @Test("processes in a group of an unknown run are killed, and the group is removed")
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

@Suite("Recovery in process-group mode", .enabled(if: geteuid() == 0, "needs root to become another user"))
struct RecoveryWithoutGroupsTests {
    private func isStopped(_ pid: Int32) throws -> Bool { try ProcFS().stat(of: pid)?.isStopped ?? false }

    @Test(
        "in process-group mode apps are recovered by pid and start time, in their states, and not launched again"
    )
    func killed() throws {
        let script =
            "[App]\nStartupSec=0\nExecStart=/bin/sh -c 'sleep 1000 & (setsid sleep 1000 &) ; exec sleep 1000'\n"
        let first = try TestDaemon(
            [
                "front": script, "back": script + "[Lifecycle]\nSuspendDelaySec=0\n",
                "gone": "[App]\nStartupSec=0\nExecStart=/bin/sleep 1000\n",
            ], asUnprivilegedUser: true)
        try first.launch("gone", background: true)
        // It is suspended only after its script has started all processes.
        try first.launch("back")
        var families: [[Int32]] = []
        func areRunning(_ apps: [String]) throws -> Bool {
            families = try apps.map(first.processes)
            return families.allSatisfy { family in
                family.count == 3 && family.allSatisfy { TestDaemon.text(of: "/proc/\($0)/comm") == "sleep\n" }
            }
        }
        try first.eventually("the processes are running") { try areRunning(["back"]) }
        try first.launch("front")
        try first.eventually("all processes are running") {
            try areRunning(["front", "back"])
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
