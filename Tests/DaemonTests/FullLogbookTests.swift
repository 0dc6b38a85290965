import Glibc
import LifecycleCore
import Linux
import Posix
import Systemd
import TestKit
import Testing

@testable import Daemon

/// The file system has no space for the logbook.
@Suite("A logbook that cannot be written")
struct FullLogbookTests {
    private final class Performer: EffectPerforming {
        func perform(_ effect: Effect, _ id: EffectID) {}
    }

    private final class Stage {
        let folder = makeTemporaryFolder("greenroom-full")
        let loop: EventLoop
        let logbook: Logbook
        let driver: CoreDriver
        private let performer = Performer()

        init() throws {
            loop = try EventLoop()
            logbook = Logbook(path: folder + "/logbook", journal: .quiet)
            logbook.create(LifecycleCore(), records: [:])
            driver = try CoreDriver(loop: loop, core: LifecycleCore(), logbook: logbook)
            driver.connect(performer: performer, observers: [])
        }

        deinit { removeTree(folder) }

        /// What the next daemon would find.
        func read() throws -> RecoveredState {
            let copy = folder + "/copy"
            try replaceFile(at: copy, with: readFile(at: folder + "/logbook", limit: 1 << 28))
            return try #require(try Logbook.read(at: copy))
        }

        /// Runs the loop until the logbook is written.
        func finish() throws {
            var turns = 0
            while logbook.nextAttempt != nil || logbook.isIncomplete || !loop.work.isEmpty {
                turns += 1
                try #require(turns < 100_000, "the logbook is not written")
                _ = try loop.runOnce(timeout: .seconds(60))
            }
        }
    }

    /// Limits the size of files of this process. A larger one is EFBIG, like ENOSPC of a full file system.
    private func limitFiles(to bytes: UInt?) {
        signal(SIGXFSZ, SIG_IGN)
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
        limit.rlim_cur = bytes ?? limit.rlim_max
        setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
    }

    @Test(
        "a snapshot that cannot be written leaves the logbook as it is; it is continued, and replaced once that is possible"
    )
    func noSnapshot() throws {
        let stage = try Stage()
        defer { MappedFile.stopCountingOwnEnd() }
        // A folder in its position cannot be written by any user.
        let spare = stage.folder + "/logbook.new"
        try removeFile(at: spare)
        try createDirectories(at: spare)
        while stage.logbook.nextAttempt == nil {
            stage.driver.send(.configuration(.configured(ManagerPolicy())))
            _ = try stage.loop.runOnce(timeout: .zero)
        }
        let app = try #require(AppID("photos"))
        stage.driver.send(.configuration(.registered(app, AppPolicy(), launches: 0)))
        stage.logbook.persist([7], as: "run/7")
        let before = try stage.read()
        #expect(!stage.logbook.isIncomplete && !before.lacksEvents)
        #expect(before.core == stage.driver.core && before.records["run/7"] == [7])
        try removeFile(at: spare, folder: true)
        try stage.finish()
        let after = try stage.read()
        #expect(after.core == stage.driver.core && after.records["run/7"] == [7])
        #expect(after.position?.eventsHandled == 0)
        #expect(after.eventNumber == stage.logbook.eventNumber)
    }

    @Test("a logbook that cannot grow says that events are missing, and is complete again once it can be written")
    func gap() throws {
        try inOwnProcess {
            let stage = try Stage()
            defer { MappedFile.stopCountingOwnEnd() }
            let photos = try #require(AppID("photos"))
            stage.driver.send(.configuration(.registered(photos, AppPolicy(), launches: 0)))
            let core = stage.driver.core
            limitFiles(to: 256 << 10)
            var count = 0
            while !stage.logbook.isIncomplete {
                count += 1
                stage.logbook.persist([UInt8](repeating: 1, count: 4096), as: "run/\(count)")
                try #require(count < 1000)
            }
            // Not recorded, and handled all the same.
            stage.logbook.batch {
                stage.logbook.persist([9], as: "run/9")
                stage.driver.send(.configuration(.unregistered(photos)))
            }
            #expect(stage.driver.core != core)
            let before = try stage.read()
            #expect(before.lacksEvents && before.position == nil && before.core == core)
            #expect(before.records.count == count - 1)
            limitFiles(to: nil)
            try stage.finish()
            let after = try stage.read()
            #expect(!after.lacksEvents && after.warnings.isEmpty)
            #expect(after.core == stage.driver.core)
            #expect(after.records.count == count && after.records["run/9"] == [9])
            #expect(after.eventNumber == stage.logbook.eventNumber)
        }
    }

    @Test("what happens while the new file is made is in it, also if the old one is full")
    func gapDuringSnapshot() throws {
        try inOwnProcess {
            let stage = try Stage()
            defer { MappedFile.stopCountingOwnEnd() }
            // The new file has space for all of it.
            let spare = stage.folder + "/logbook.new"
            try removeFile(at: spare)
            _ = try MappedFile(at: spare, creating: 4 << 20)
            while stage.loop.work.isEmpty { stage.driver.send(.configuration(.configured(ManagerPolicy()))) }
            limitFiles(to: 256 << 10)
            var count = 0
            while !stage.logbook.isIncomplete {
                count += 1
                stage.logbook.batch {
                    stage.logbook.persist([UInt8](repeating: 1, count: 2048), as: "run/\(count)")
                    stage.driver.send(
                        .configuration(.registered(AppID("app\(count)") ?? .blank, AppPolicy(), launches: 0)))
                }
                try #require(count < 1000)
            }
            stage.driver.send(.absence(.locked))
            limitFiles(to: nil)
            try stage.finish()
            let after = try stage.read()
            #expect(!after.lacksEvents && after.warnings.isEmpty)
            #expect(after.core == stage.driver.core && after.records.count == count)
            #expect(after.eventNumber == stage.logbook.eventNumber)
        }
    }

    @Test("a file of the previous daemon that cannot be replaced is kept, and says that events are missing")
    func keptFile() throws {
        let folder = makeTemporaryFolder("greenroom-full")
        defer { removeTree(folder) }
        defer { MappedFile.stopCountingOwnEnd() }
        let path = folder + "/logbook"
        let first = Logbook(path: path, journal: .quiet)
        let core = LifecycleCore(firstRun: 7, firstReceipt: 3)
        first.create(core, records: ["run/6": [1]])
        first.append(.absence(.locked), at: .origin)
        var recovered = try #require(try Logbook.read(at: path))
        recovered.position = nil
        try removeFile(at: path + ".new")
        try createDirectories(at: path + ".new")
        let second = Logbook(path: path, journal: .quiet)
        second.resumeLog(recovered)
        second.endRecovery()
        #expect(second.isIncomplete && second.nextAttempt != nil)
        let third = try #require(try Logbook.read(at: path))
        #expect(third.lacksEvents && third.records == ["run/6": [1]] && third.eventNumber > recovered.eventNumber)
        try removeFile(at: path + ".new", folder: true)
        second.close(core)
        let fourth = try #require(try Logbook.read(at: path))
        #expect(!second.isIncomplete && second.nextAttempt == nil)
        #expect(!fourth.lacksEvents && fourth.core == core && fourth.records == ["run/6": [1]])
    }
}
