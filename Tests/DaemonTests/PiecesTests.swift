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

/// Work for many apps is done in pieces: no piece does the work of two apps.
@Suite("Work for many apps")
struct PiecesTests {
    @Test("the memory of all apps is measured in pieces, and in process-group mode with one search of /proc")
    func sampling() throws {
        try inOwnProcess {
            let root = makeTemporaryFolder("greenroom-sampling")
            defer { removeTree(root) }
            let loop = try EventLoop()
            let list = EventList()
            let context = try DaemonContext.bare(in: root, loop, list)
            var processes: [Linux.Process] = []
            for number in 1...5 {
                let run = try context.makeRun(RunID(UInt64(number)), of: "app\(number)")
                let process = try startSleep()
                run.setMainProcess(process)
                try run.enclosure.started(process)
                processes.append(process)
            }
            defer { for process in processes { _ = try? process.signal(SIGKILL) } }
            context.sampler.measure()
            // One measurement at a time.
            context.sampler.measure()
            #expect(list.events.isEmpty)
            while !loop.work.isEmpty { try loop.runOnce(timeout: .zero) }
            let readings: [MemoryReading] = list.events.compactMap {
                if case .memoryMeasured(let reading) = $0 { reading } else { nil }
            }
            #expect(readings.count == 1)
            #expect(readings.first?.sizes.map(\.run.number) == [1, 2, 3, 4, 5])
            #expect(readings.first?.sizes.allSatisfy { $0.bytes > 0 } == true)
            // The list of pids, a piece for each 16 processes of the machine, one for each app, and the end.
            let others = try ProcFS().pids().count
            #expect(loop.work.pieces <= 1 + (others + 64) / 16 + 5 + 1)
            #expect(loop.work.pieces >= 1 + 5 + 1)
        }
    }

    @Test("an app that ends or is removed while memory is measured is left out")
    func samplingOfRemoved() throws {
        try inOwnProcess {
            let root = makeTemporaryFolder("greenroom-sampling")
            defer { removeTree(root) }
            let loop = try EventLoop()
            let list = EventList()
            let context = try DaemonContext.bare(in: root, loop, list)
            let first = try context.makeRun(RunID(1), of: "photos")
            _ = try context.makeRun(RunID(2), of: "mail")
            context.sampler.measure()
            first.remove()
            while !loop.work.isEmpty { try loop.runOnce(timeout: .zero) }
            guard case .memoryMeasured(let reading)? = list.events.last else {
                Issue.record("no reading")
                return
            }
            #expect(reading.sizes.map(\.run.number) == [2])
        }
    }

    @Test("a step of reading the manifests reads one app; what was read before stays in effect until all are read")
    func manifests() throws {
        let root = makeTemporaryFolder("greenroom-manifests")
        defer { removeTree(root) }
        var folders = try #require(Folders(mode: .system) { _ in nil })
        folders.config = root
        folders.vendor = root + "/vendor"
        try createDirectories(at: root + "/apps")
        for number in 0..<100 {
            try replaceFile(at: "\(root)/apps/app\(number).app", with: Array("[App]\nExecStart=/bin/true\n".utf8))
        }
        let library = ManifestLibrary(folders: folders)
        let reading = library.beginReading()
        var before = 0
        var steps = 0
        while reading.advance() {
            #expect(reading.manifests.count <= before + 1)
            before = reading.manifests.count
            steps += 1
        }
        #expect(before == 100 && steps >= 100)
        #expect(library.manifests.isEmpty)
        #expect(library.adopt(reading).gone.isEmpty)
        #expect(library.manifests.count == 100)
        try removeFile(at: root + "/apps/app7.app")
        let second = library.beginReading()
        while second.advance() {}
        #expect(library.adopt(second).gone.map(\.name) == ["app7"])
    }

    @Test("a reload that is requested during another reads the files after it, and both are answered")
    func reloads() throws {
        let daemon = try TestDaemon(["first": "[App]\nExecStart=/bin/true\n"])
        func beginReload() throws -> BusConnection.Pending {
            try daemon.bus.callAsync(
                path: ControlNames.managerPath, interface: ControlNames.managerInterface, member: "Reload",
                timeout: .seconds(60))
        }
        let pending = try (0..<5).map { _ in try beginReload() }
        try replaceFile(
            at: daemon.config + "/apps/second.app", with: Array("[App]\nExecStart=/bin/true\n".utf8))
        let last = try beginReload()
        for one in pending + [last] { try daemon.bus.wait(for: one, until: nil) }
        let result = try ReloadResult(variant: try #require(try last.result?.get().first))
        #expect(result.apps == 2)
        #expect(try daemon.state("second") == "notRunning")
    }

    @Test("many calls of List at once are all answered, each with all apps")
    func lists() throws {
        let apps = (0..<40).map { ("app\($0)", "[App]\nExecStart=/bin/true\n") }
        let daemon = try TestDaemon(Dictionary(uniqueKeysWithValues: apps))
        let pending = try (0..<20).map { _ in
            try daemon.bus.callAsync(
                path: ControlNames.managerPath, interface: ControlNames.managerInterface, member: "List",
                timeout: .seconds(60))
        }
        for one in pending {
            try daemon.bus.wait(for: one, until: nil)
            guard case .array(_, let records)? = try one.result?.get().first else {
                Issue.record("no list")
                continue
            }
            #expect(try records.map { try AppStatus(variant: $0).id } == apps.map(\.0).sorted())
        }
    }

    @Test("a daemon that is killed again and again while it recovers many apps loses none of them")
    func recoveryIsRepeated() throws {
        let apps = (0..<30).map { ("app\($0)", TestDaemon.manifest("", "[Lifecycle]\nSuspendDelaySec=0")) }
        let first = try TestDaemon(Dictionary(uniqueKeysWithValues: apps))
        for (app, _) in apps {
            try first.launch(app, background: true)
            try first.waitUntil(app, is: "suspended")
        }
        let pids = try apps.map { try first.pid($0.0) }
        first.crash()
        for step in 1...8 { try first.successor(killedAfter: .milliseconds(8 * step)) }
        let last = try first.successor()
        #expect(try apps.map { try last.pid($0.0) } == pids)
        for (app, _) in apps { #expect(try last.state(app) == "suspended") }
        #expect(try last.ask("Activate", "app7")["state"]?.stringValue == "active")
        for (app, _) in apps { #expect(try last.receipts(app).isEmpty) }
    }

    @Test("a request that comes during the recovery is carried out after it")
    func requestDuringRecovery() throws {
        let apps = (0..<30).map { ("app\($0)", TestDaemon.manifest("", "[Lifecycle]\nSuspendDelaySec=0")) }
        let first = try TestDaemon(Dictionary(uniqueKeysWithValues: apps))
        for (app, _) in apps {
            try first.launch(app, background: true)
            try first.waitUntil(app, is: "suspended")
        }
        let pid = try first.pid("app29")
        _ = try first.call("Reexec")
        // The new program serves the socket before it has recovered all apps.
        try first.reconnect()
        #expect(try first.ask("Activate", "app29")["state"]?.stringValue == "active")
        #expect(try first.pid("app29") == pid)
        #expect(try first.state("app0") == "suspended")
    }
}
