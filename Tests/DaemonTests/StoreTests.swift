import Glibc
import JSON
import LifecycleCore
import Linux
import Posix
import Systemd
import Testing

@testable import Daemon

@Suite("Descriptors that apps store for their next launch")
struct StoreTests {
    private let app = AppID("photos")!

    /// Stored descriptors without a descriptor store and without files.
    private func makeStored(_ journal: Journal = .quiet) -> StoredDescriptors {
        StoredDescriptors(
            logbook: Logbook(path: "/dev/null", journal: journal),
            store: DescriptorStore(environment: { _ in nil }, journal: journal), journal: journal)
    }

    private func names(_ stored: StoredDescriptors) -> [String] { stored.passed(to: app).map(\.name) }

    @Test("a restoration state is sealed at its size when it is stored, so it cannot grow beyond its limit (L18)")
    func sealed() throws {
        let stored = makeStored()
        let file = try MemoryFile.empty("state")
        #expect(ftruncate(file.raw, 1 << 20) == 0)
        #expect(stored.add(try file.duplicate(), "state", of: app, closer: DescriptorCloser()) == .stored(written: 0))
        #expect(ftruncate(file.raw, 1 << 30) < 0 && errno == EPERM)
        #expect(ftruncate(file.raw, 0) < 0 && errno == EPERM)
        #expect(names(stored) == ["state"])
        let large = try MemoryFile.empty("state")
        #expect(ftruncate(large.raw, (1 << 20) + 1) == 0)
        #expect(stored.add(try large.duplicate(), "state", of: app, closer: DescriptorCloser()) != .stored(written: 0))
    }

    @Test("a refused restoration state says why, in units, and whether the previous one is kept (L18)")
    func refused() throws {
        let stored = makeStored()
        func add(_ descriptor: consuming Descriptor) -> StoredDescriptors.Addition {
            stored.add(descriptor, "state", of: app, closer: DescriptorCloser())
        }
        let device = add(try Descriptor.open("/dev/null", O_RDONLY))
        #expect(device == .refused("FDNAME=state was refused: not a memfd"))
        let first = add(try MemoryFile.empty("state"))
        #expect(first == .stored(written: 0))
        let large = try MemoryFile.empty("state")
        #expect(ftruncate(large.raw, 2 << 20) == 0)
        let second = add(try large.duplicate())
        #expect(second == .refused("FDNAME=state was refused: 2M; the limit is 1M; the previous state is kept"))
        #expect(names(stored) == ["state"])
    }

    @Test(
        "a restoration state that cannot be sealed is measured again before a launch, and removed if it is too large (L18)"
    )
    func grown() throws {
        let log = try TestLog()
        let stored = makeStored(log.journal)
        let file = try MemoryFile.empty("state")
        // F_ADD_SEALS, F_SEAL_SEAL: as memfd_create(2) makes them without MFD_ALLOW_SEALING.
        #expect(fcntl(file.raw, 1033, 1) == 0)
        #expect(stored.add(try file.duplicate(), "state", of: app, closer: DescriptorCloser()) == .stored(written: 0))
        #expect(names(stored) == ["state"])
        #expect(ftruncate(file.raw, (1 << 20) + 1) == 0)
        #expect(names(stored).isEmpty)
        #expect(log.lines.count == 1)
        #expect(log.text.contains("photos: FDNAME=state was removed: 1048577 bytes; the limit is 1M"))
        #expect(names(stored).isEmpty)
        #expect(log.lines.count == 1)
    }

    @Test("a restoration state that cannot be read is refused, and the one before is kept (L18)")
    func unreadable() throws {
        let stored = makeStored()
        let file = try MemoryFile.empty("state")
        #expect(stored.add(try file.duplicate(), "state", of: app, closer: DescriptorCloser()) == .stored(written: 0))
        let writable = try Descriptor.open("/proc/self/fd/\(file.raw)", O_WRONLY)
        let refusal = StoredDescriptors.Addition.refused(
            "FDNAME=state was refused: not open for reading; the previous state is kept")
        #expect(stored.add(writable, "state", of: app, closer: DescriptorCloser()) == refusal)
        #expect(names(stored) == ["state"])
    }

    @Test("the daemon does not wait for a lease that an app has on its restoration state")
    func lease() throws {
        let file = SharedDescriptor(try MemoryFile.empty("state"))
        let other = try Descriptor.open("/proc/self/fd/\(file.raw)", O_RDWR)
        // The kernel asks the holder of the lease with this signal to give it up.
        signal(SIGIO, SIG_IGN)
        // F_SETLEASE, F_WRLCK
        #expect(fcntl(other.raw, 1024, 1) == 0)
        // It is not opened again. With a wait for the end of the lease (/proc/sys/fs/lease-break-time) it would be.
        #expect(MemoryFile.fromStart(file) === file)
    }

    @Test("a restoration state is passed on at offset 0, at each launch, wherever its descriptor was left (L18)")
    func offset() throws {
        let stored = makeStored()
        let file = try MemoryFile.empty("state")
        try writeAll(Array("hello".utf8), to: file, path: "state")
        #expect(stored.add(try file.duplicate(), "state", of: app, closer: DescriptorCloser()) == .stored(written: 0))
        for _ in 0..<2 {
            let passed = try #require(stored.passed(to: app).first)
            #expect(lseek(passed.descriptor.raw, 0, SEEK_CUR) == 0)
            // The app reads it. That moves neither the descriptor that it stored nor the next one that it is passed.
            #expect(lseek(passed.descriptor.raw, 3, SEEK_SET) == 3)
            #expect(lseek(file.raw, 0, SEEK_CUR) == 5)
        }
    }

    @Test(
        "stored descriptors are kept if the app's manifest has an error, and removed if the manifest is removed (L18)")
    func reloaded() throws {
        let root = try TestDaemon.makeFolder()
        let good = TestDaemon.manifest("stored store state", trace: root + "/trace")
        let path = root + "/config/apps/photos.app"
        let daemon = try TestDaemon(["photos": good], root: root)
        func write(_ text: String) throws {
            try replaceFile(at: path, with: Array(text.utf8))
            _ = try daemon.call("Reload")
        }
        func relaunch() throws {
            try daemon.launch("photos")
            try daemon.terminate("photos")
        }
        try relaunch()
        try write("[App]\nNonsense\n")
        try write(good)
        try relaunch()
        try removeFile(at: path)
        _ = try daemon.call("Reload")
        try write(good)
        try relaunch()
        #expect(daemon.trace().filter { $0 == "nothing" || $0 == "state" } == ["nothing", "state", "nothing"])
    }

    @Test("the restoration state is kept if the program cannot be executed, however often it is launched (L11)")
    func notExecuted() throws {
        let root = try TestDaemon.makeFolder()
        let good = TestDaemon.manifest("stored store state", trace: root + "/trace")
        let path = root + "/config/apps/photos.app"
        let daemon = try TestDaemon(["photos": good], root: root)
        func write(_ text: String) throws {
            try replaceFile(at: path, with: Array(text.utf8))
            _ = try daemon.call("Reload")
        }
        try daemon.launch("photos")
        try daemon.terminate("photos")
        // As if the file system with the program was not mounted.
        try write("[App]\nExecStart=/no/such/program\n")
        for _ in 0..<3 {
            #expect(try daemon.launch("photos")["lastReceipt"]?["exitStatus"]?.integerValue == 203)
            try daemon.waitUntil("photos", is: "notRunning")
        }
        try write(good)
        try daemon.launch("photos")
        #expect(daemon.trace().filter { $0 == "nothing" || $0 == "state" } == ["nothing", "state"])
    }

    /// A memfd with so many bytes that were written.
    private static func file(_ bytes: Int) throws -> Descriptor {
        let file = try MemoryFile.empty("data")
        let piece = [UInt8](repeating: 1, count: 1 << 20)
        for _ in 0..<(bytes >> 20) { try writeAll(piece, to: file, path: "data") }
        return file
    }

    @Test(
        "the memfds of an app have at most 64M in memory: one more is refused, and what has grown is removed after its end"
    )
    func limit() throws {
        let log = try TestLog()
        let stored = makeStored(log.journal)
        func add(_ descriptor: consuming Descriptor, _ name: String) -> StoredDescriptors.Addition {
            stored.add(descriptor, name, of: app, closer: DescriptorCloser())
        }
        // What was never written takes no memory.
        let sparse = try MemoryFile.empty("sparse")
        #expect(ftruncate(sparse.raw, 1 << 40) == 0)
        #expect(add(sparse, "sparse") == .stored(written: 0))
        let first = try Self.file(40 << 20)
        #expect(add(try first.duplicate(), "first") == .stored(written: 0))
        #expect(add(try Self.file(8 << 20), "snapshot") == .stored(written: 0))
        #expect(stored.bytes(of: app) == 48 << 20)
        let reason = "the descriptors of the app have 70M in memory with it; the limit is 64M"
        #expect(add(try Self.file(30 << 20), "second") == .refused("FDNAME=second was refused: \(reason)"))
        #expect(add(try Self.file(20 << 20), "second") == .stored(written: 0))
        #expect(stored.bytes { _ in true } == 68 << 20 && stored.bytes { _ in false } == 0)
        // What is replaced does not count.
        for _ in 0..<2 { #expect(add(try Self.file(4 << 20), "snapshot.a") == .stored(written: 0)) }
        try writeAll([UInt8](repeating: 1, count: 10 << 20), to: first, path: "data")
        stored.limitMemory(of: app)
        #expect(names(stored) == ["sparse", "first", "snapshot"])
        #expect(log.text.contains("photos: FDNAME=second was removed: \(reason)"))
    }

    @Test("status shows what an app has stored, and the user removes all of it with the app (L42)")
    func removed() throws {
        let root = try TestDaemon.makeFolder()
        let manifest = TestDaemon.manifest("stored store state store data", trace: root + "/trace")
        let daemon = try TestDaemon(["photos": manifest], root: root)
        for remove in [false, true] {
            try daemon.launch("photos")
            #expect(try daemon.status("photos")["storedBytes"]?.integerValue ?? 0 >= 8192)
            try daemon.ask("Terminate", "photos", [.bool(remove)])
            try daemon.waitUntil("photos", is: "notRunning")
            #expect((try daemon.status("photos")["storedBytes"] == nil) == remove)
        }
        try daemon.launch("photos")
        let stored = daemon.trace().filter { $0 == "nothing" || $0.contains("data") }
        #expect(stored == ["nothing", "state:data", "nothing"], "\(daemon.trace())")
    }
}
