import Control
import Glibc
import JSON
import LifecycleCore
import Linux
import Posix
import Systemd
import TestKit
import Testing
import Timeline

@testable import Daemon

/// The events of the logbook are kept for `plot` and `replay`.
@Suite("The recording")
struct RecordingTests {
    private final class Performer: EffectPerforming {
        func perform(_ effect: Effect, _ id: EffectID) {}
    }

    private final class Stage {
        let root = makeTemporaryFolder("greenroom-recording")
        let loop: EventLoop
        let logbook: Logbook
        let driver: CoreDriver
        private let performer = Performer()
        private(set) var sent = 0

        init(limit: UInt64) throws {
            loop = try EventLoop()
            let recording = Recording(folder: root + "/recording", limit: limit, journal: .quiet)
            logbook = Logbook(path: root + "/logbook", journal: .quiet, recording: recording)
            logbook.create(LifecycleCore(), records: [:])
            driver = try CoreDriver(loop: loop, core: LifecycleCore(), logbook: logbook)
            driver.connect(performer: performer, observers: [])
        }

        deinit { removeTree(root) }

        /// Sends events until this many logbooks were replaced since the last call.
        func replace(_ count: Int) throws {
            var (seen, before) = (0, inode)
            while seen < count {
                driver.send(
                    .configuration(.registered(AppID("app\(sent % 50)") ?? .blank, AppPolicy(), launches: sent)))
                sent += 1
                while !loop.work.isEmpty { _ = try loop.runOnce(timeout: .seconds(60)) }
                if inode != before { (seen, before) = (seen + 1, inode) }
            }
        }

        private var inode: UInt64 {
            var about = stat()
            return lstat(root + "/logbook", &about) == 0 ? UInt64(about.st_ino) : 0
        }

        var numbers: [UInt64] { entries(of: root + "/recording").compactMap { UInt64($0) }.sorted() }

        var bytes: Int64 {
            numbers.reduce(0) { sum, number in
                var about = stat()
                return lstat("\(root)/recording/\(number)", &about) == 0 ? sum + Int64(about.st_size) : sum
            }
        }

        /// Plays all files.
        func play() throws -> (player: Player, core: LifecycleCore?) {
            var player = Player()
            var core: LifecycleCore?
            for path in numbers.map({ "\(root)/recording/\($0)" }) + [root + "/logbook"] {
                let segment = try Segment(readFile(at: path, limit: 1 << 28), name: path, version: Logbook.writer)
                player.play(segment) { if case .handled(_, effects: _, let after) = $0 { core = after } }
            }
            return (player, core)
        }
    }

    @Test("all events are kept when the logbook is replaced, and lead to the state of the daemon")
    func kept() throws {
        let stage = try Stage(limit: 64 << 20)
        defer { MappedFile.stopCountingOwnEnd() }
        try stage.replace(5)
        #expect(stage.numbers == [1, 2, 3, 4, 5])
        let (player, core) = try stage.play()
        #expect(player.problems.isEmpty && player.events == stage.sent && core == stage.driver.core)
        var about = stat()
        #expect(lstat(stage.root + "/recording/1", &about) == 0 && about.st_mode & 0o777 == 0o600)
        // The file for the next snapshot is there again.
        #expect(exists(at: stage.root + "/logbook.new"))
    }

    @Test("the oldest files are removed, so that all together stay within the limit; 0 keeps none")
    func bounded() throws {
        let stage = try Stage(limit: 400 << 10)
        defer { MappedFile.stopCountingOwnEnd() }
        try stage.replace(12)
        #expect(stage.bytes <= 400 << 10 && stage.numbers.count >= 2 && stage.numbers.last == 12)
        let (player, core) = try stage.play()
        #expect(player.problems.isEmpty && core == stage.driver.core && player.events < stage.sent)
        stage.logbook.recording?.limit = 0
        try stage.replace(2)
        #expect(stage.numbers.isEmpty)
    }

    @Test("the next daemon continues the numbers, and an end of all apps keeps the last logbook")
    func continued() throws {
        let stage = try Stage(limit: 64 << 20)
        defer { MappedFile.stopCountingOwnEnd() }
        try stage.replace(2)
        stage.logbook.remove()
        #expect(stage.numbers == [1, 2, 3])
        let next = Recording(folder: stage.root + "/recording", limit: 64 << 20, journal: .quiet)
        let file = try MappedFile(at: stage.root + "/logbook", creating: Logbook.smallest)
        #expect(next.add(file, at: stage.root + "/logbook", end: 200))
        #expect(stage.numbers == [1, 2, 3, 4])
        #expect(next.removeOldest() && stage.numbers == [2, 3, 4])
    }

    @Test(
        "a file system that is full removes the recording before the logbook lacks an event",
        .enabled(if: mayMount(), "a file system cannot be mounted"))
    func givesWay() throws {
        let folder = makeTemporaryFolder("greenroom-small")
        defer { removeTree(folder) }
        try #require(mount("tmpfs", folder, "tmpfs", 0, "size=1m") == 0)
        defer { _ = detach(folder) }
        let recording = Recording(folder: folder + "/recording", limit: 64 << 20, journal: .quiet)
        func addFile() throws -> Bool {
            // Once it is no longer mapped its space is free when it is removed.
            recording.add(
                try MappedFile(at: folder + "/old", creating: 512 << 10), at: folder + "/old", end: 512 << 10)
        }
        #expect(try addFile())
        let logbook = Logbook(path: folder + "/logbook", journal: .quiet, recording: recording)
        logbook.create(LifecycleCore(), records: [:])
        defer { MappedFile.stopCountingOwnEnd() }
        for number in 0..<120 { logbook.persist([UInt8](repeating: 1, count: 4096), as: "run/\(number)") }
        #expect(!logbook.isIncomplete && entries(of: folder + "/recording").isEmpty)
    }

    @Test("greenroomctl plot shows what was recorded before and after a reexec and a crash, and replay plays it")
    func plot() throws {
        let root = try TestDaemon.makeFolder()
        let first = try TestDaemon(["photos": TestDaemon.manifest(""), "notes": TestDaemon.manifest("")], root: root)
        try first.launch("photos")
        _ = try first.call("Reexec")
        try first.reconnect()
        try first.launch("notes")
        first.crash()
        let second = try first.successor()
        try second.waitUntil("photos", is: "suspended")
        _ = try second.terminate("photos")
        func run(_ arguments: String...) throws -> JSONValue {
            let result = try runToEnd(arguments, second)
            #expect(result.status == .exited(0))
            return try JSONValue.parse(result.output)
        }
        let timeline = try run("--json", "plot", "photos")
        #expect(timeline["problems"]?.arrayValue == [])
        let apps = timeline["apps"]?.arrayValue ?? []
        #expect(apps.compactMap { $0["app"]?.stringValue } == ["photos"])
        let states = apps.first?["states"]?.arrayValue?.compactMap { $0["label"]?.stringValue } ?? []
        #expect(states.prefix(3) == ["launching", "inactive", "active"] && states.contains("suspended"))
        #expect(exists(at: second.runtime + "/recording/1"))
        let replay = try run("--json", "replay", "--jetsam-order", "lru")
        #expect(replay["decisions"]?.arrayValue == [] && replay["order"]?.stringValue == "lru")
        #expect((replay["events"]?.integerValue ?? 0) > 10)
        let savings = try run("--json", "savings", "photos")["apps"]?.arrayValue ?? []
        #expect(savings.count == 1 && savings.first?["sleeps"]?.integerValue == 1)
        #expect((savings.first?["asleepSeconds"]?.numberValue ?? 0) > 0)
        let foreign = try runToEnd(["plot", "--svg", "--file", second.config + "/apps/photos.app"], second)
        #expect(
            foreign.status == .exited(1) && foreign.output.contains("photos.app is not a recording of greenroomd.\n"))
        // Of a file that is damaged the events before are played, and the exit status says that others are missing.
        var damaged = try readFile(at: second.runtime + "/recording/1", limit: 1 << 24)
        damaged.removeLast(8)
        try replaceFile(at: second.root + "/damaged", with: damaged)
        for verb in [["replay", second.root + "/damaged"], ["savings", "--file", second.root + "/damaged"]] {
            let part = try runToEnd(verb, second)
            #expect(part.status == .exited(1) && part.output.contains("/damaged"), "\(part.output)")
            #expect(part.output.contains(verb[0] == "replay" ? "No app was killed for memory in " : " slept for "))
        }
        let whole = try runToEnd(["replay", second.runtime + "/recording/1"], second)
        #expect(whole.status == .exited(0), "\(whole.output)")
        // Nothing ends what a dead daemon leaves behind.
        _ = try second.terminate("notes")
        // The state is known where the recording ends.
        second.crash()
        let offline = try runToEnd(["--json", "plot", "--file", second.runtime], second)
        #expect(offline.status == .exited(0) && offline.output.contains("photos"))
    }

    private func runToEnd(_ arguments: [String], _ daemon: TestDaemon) throws -> (output: String, status: EndStatus?) {
        let (status, output) = try TestDaemon.runToEnd(
            ["--runtime", daemon.runtime] + arguments, in: daemon.root,
            executable: TestDaemon.binaries + "/greenroomctl")
        return (output, status)
    }
}
