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

/// Restoration states and snapshots as files.
@Suite("Recovery of restoration states without a descriptor store")
struct KeptStateTests {
    private func start(_ script: String, _ more: [String: String] = [:]) throws -> TestDaemon {
        let root = try TestDaemon.makeFolder()
        let photos = TestDaemon.manifest(script, "[Lifecycle]\nSuspendDelaySec=0", trace: root + "/trace")
        return try TestDaemon(more.merging(["photos": photos]) { $1 }, root: root)
    }

    private func files(_ daemon: TestDaemon) -> [String] { entries(of: daemon.runtime + "/stored").sorted() }
    /// The descriptors that were passed to the app at its launches.
    private func passedDescriptors(_ daemon: TestDaemon) -> [String] { daemon.trace().filter { $0.contains("=") } }

    @Test("restoration state and snapshot survive SIGKILL of the daemon and jetsam of the app (L18, L42)")
    func jetsam() throws {
        let first = try start("contents store state=old store state=new store snapshot=picture")
        try first.launch("photos", background: true)
        try first.waitUntil("photos", is: "suspended")
        var about = Glibc.stat()
        #expect(stat(first.runtime + "/stored", &about) == 0 && about.st_mode & 0o777 == 0o700)
        #expect(files(first).count == 2)
        first.crash()
        let second = try first.successor()
        #expect(JSONText.of(try second.call("SimulatePressure", [.string("critical")]), "victim") == "photos")
        try second.waitUntil("photos", is: "notRunning")
        try second.launch("photos")
        #expect(passedDescriptors(second) == ["state=new", "snapshot=picture"])
        #expect(files(second).count == 2)
        second.crash()
        let third = try second.successor()
        try third.terminate("photos", remove: true)
        #expect(files(third).isEmpty)
        try third.launch("photos")
        #expect(passedDescriptors(third).count == 2)
    }

    @Test("the file of a state is removed when the state is replaced or removed, or when the manifest is removed")
    func removedFiles() throws {
        let first = try start("store state=one")
        try first.launch("photos")
        try first.terminate("photos")
        let one = files(first)
        #expect(one.count == 1)
        try first.launch("photos")
        #expect(files(first).count == 1 && files(first) != one)
        try sendDatagram("FDSTOREREMOVE=1\nFDNAME=state", to: first.notifySocket("photos"))
        try first.eventually("the file is removed") { files(first).isEmpty }
        try first.terminate("photos")
        try first.launch("photos")
        #expect(files(first).count == 1)
        try first.terminate("photos")
        first.crash()
        try removeFile(at: first.config + "/apps/photos.app")
        let second = try first.successor()
        #expect(files(second).isEmpty)
    }

    @Test(
        "states and snapshots survive a stop in the state folder, except those of removed apps"
    )
    func stopped() throws {
        let first = try start(
            "contents store state=kept store state.a.b=line", ["mail": TestDaemon.manifest("store state=gone")])
        try first.launch("photos")
        try first.launch("mail")
        try first.terminate("mail", remove: true)
        #expect(first.stop() == .exited(0))
        #expect(!exists(at: first.runtime + "/stored"))
        #expect(entries(of: first.state + "/restoration").sorted() == ["photos.state", "photos.state+a.b"])
        let second = try first.successor()
        #expect(!exists(at: second.state + "/restoration"))
        #expect(files(second).count == 2)
        second.crash()
        let third = try second.successor()
        try third.launch("photos")
        #expect(passedDescriptors(third) == ["state=kept", "state.a.b=line"])
    }

    @Test("a damaged state file affects only the state of its app")
    func damaged() throws {
        let first = try start("contents store state=one", ["mail": TestDaemon.manifest("store state=two")])
        try first.launch("photos")
        try first.launch("mail")
        let paths = files(first).map { first.runtime + "/stored/" + $0 }
        #expect(paths.count == 2)
        first.crash()
        try removeFile(at: paths[0])
        symlink("/etc/passwd", paths[0])
        truncate(paths[1], (1 << 20) + 1)
        let second = try first.successor()
        #expect(try second.state("photos") == "active" || second.state("mail") == "active")
        try second.terminate("photos")
        try second.launch("photos")
        #expect(passedDescriptors(second).isEmpty)
        #expect(TestDaemon.text(of: second.root + "/log").contains(paths[1]))
    }

    @Test("a memfd is copied completely, independent of its offset, unless it is larger than the limit")
    func copied() throws {
        let folder = makeTemporaryFolder("greenroom-state")
        defer { removeTree(folder) }
        let bytes = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        let file = try MemoryFile.empty("state")
        try writeAll(bytes, to: file)
        try MemoryFile.save(file, at: folder + "/1", limit: bytes.count)
        #expect(lseek(file.raw, 0, SEEK_CUR) == bytes.count)
        let loaded = try MemoryFile.load(folder + "/1", name: "state", limit: bytes.count)
        let contents = try MemoryFile.contents(loaded, limit: 1 << 20)
        #expect(contents == bytes)
        #expect(ftruncate(loaded.raw, 1 << 20) < 0 && errno == EPERM)
        #expect(throws: SystemError.self) {
            try MemoryFile.save(file, at: folder + "/1", limit: bytes.count - 1)
        }
        #expect(throws: SystemError.self) {
            _ = try MemoryFile.load(folder + "/1", name: "state", limit: bytes.count - 1)
        }
        #expect(entries(of: folder) == ["1"])
    }

    @Test("the snapshots of all apps have a limit; a snapshot that exceeds it does not survive the daemon")
    func bounded() throws {
        let folder = makeTemporaryFolder("greenroom-state")
        defer { removeTree(folder) }
        let files = try StateFiles(folder: folder + "/stored")
        // The file has no contents, so it uses no memory.
        let large = SharedDescriptor(try MemoryFile.empty("snapshot"))
        #expect(ftruncate(large.raw, 8 << 20) == 0)
        let most = UInt64(try #require(StateFiles.budgets["snapshot"])) >> 23
        for serial in 1...most { #expect(try files.save(large, "snapshot", serial) == 8 << 20) }
        #expect(throws: Problem.self) { try files.save(large, "snapshot", most + 1) }
        let small = SharedDescriptor(try MemoryFile.sealed("state", [1]))
        #expect(try files.save(small, "state", most + 2) == 1)
        files.remove(1)
        #expect(try files.save(large, "snapshot", most + 1) == 8 << 20)
        files.close()
        #expect(entries(of: folder).isEmpty)
    }
}
