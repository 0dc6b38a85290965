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
            let before = try ProcFS().pids().count
            context.memory.sampler.measure()
            // One measurement at a time.
            context.memory.sampler.measure()
            #expect(list.events.isEmpty)
            while !loop.work.isEmpty { try loop.runOnce(timeout: .zero) }
            let readings: [MemoryReading] = list.events.compactMap {
                if case .memory(.measured(let reading)) = $0 { reading } else { nil }
            }
            #expect(readings.count == 1)
            #expect(readings.first?.sizes.map(\.run.number) == [1, 2, 3, 4, 5])
            #expect(readings.first?.sizes.allSatisfy { $0.bytes > 0 } == true)
            // The list of pids, a piece for each 16 processes of the machine, one for each app, and the end.
            let others = max(before, try ProcFS().pids().count)
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
            context.memory.sampler.measure()
            first.remove()
            while !loop.work.isEmpty { try loop.runOnce(timeout: .zero) }
            guard case .memory(.measured(let reading))? = list.events.last else {
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
        #expect(reading.manifests.isEmpty)
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

    @Test("a reload is done in pieces: other calls are answered meanwhile, and one that is requested meanwhile follows")
    func reloads() throws {
        try inOwnProcess {
            let stage = try ProgramStage(apps: 300)
            try stage.start()
            let (client, other) = (try stage.client(), try stage.client())
            let first = try stage.call(client, "Reload")
            try stage.turns(20)
            let version = try stage.call(other, "Version")
            #expect(try stage.turns(until: version) <= 20)
            #expect(first.answer == nil)
            // The first reload is reading the files, and may not find this one.
            try stage.writeManifest("another")
            let second = try stage.call(other, "Reload")
            #expect(try stage.turns(until: first) >= 300)
            #expect(second.answer == nil)
            #expect(try stage.turns(until: second) >= 300)
            #expect(try ReloadResult(variant: try #require(try second.result().first)).apps == 301)
            #expect(stage.program.driver.core.state(of: try #require(AppID("another"))) == .notRunning)
            try stage.stop()
        }
    }

    @Test("List is answered in pieces: other calls are answered meanwhile, and several calls of it one after the other")
    func lists() throws {
        try inOwnProcess {
            let stage = try ProgramStage(apps: 300)
            try stage.start()
            let (client, other) = (try stage.client(), try stage.client())
            let lists = try (0..<3).map { _ in try stage.call(client, "List") }
            try stage.turns(20)
            let version = try stage.call(other, "Version")
            #expect(try stage.turns(until: version) <= 20)
            #expect(lists[0].answer == nil)
            for (index, list) in lists.enumerated() {
                // The first has begun before.
                #expect(try stage.turns(until: list) >= (index == 0 ? 250 : 300))
                let records = try #require(try list.result().first?.arrayValue)
                #expect(try records.map { try AppStatus(variant: $0).id } == (0..<300).map { "app\($0)" }.sorted())
            }
            try stage.stop()
        }
    }

    @Test("calls are answered in the middle of a recovery; a request and a reload are carried out after it")
    func requestDuringRecovery() throws {
        try inOwnProcess {
            let stage = try ProgramStage(apps: 300, suspended: 300)
            let before = stage.turnCount
            try stage.begin()
            let (client, other) = (try stage.client(), try stage.client())
            let activate = try stage.call(client, "Activate", [.string("app7")])
            let reload = try stage.call(client, "Reload")
            let version = try stage.call(other, "Version")
            #expect(try stage.turns(until: version) <= 40)
            #expect(!stage.isReady)
            #expect(activate.answer == nil && reload.answer == nil)
            let during = try stage.turns(until: activate)
            #expect(stage.isReady)
            // A piece for each app that is found again, and one for each of the others.
            #expect(stage.turnCount - before >= 600)
            #expect(during >= 300)
            // Its process has ended with the previous daemon, so it is launched again.
            #expect(try RequestResult(variant: try #require(try activate.result().first)).state == "active")
            _ = try stage.turns(until: reload)
            #expect(try ReloadResult(variant: try #require(try reload.result().first)).apps == 300)
            try stage.stop()
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
}
