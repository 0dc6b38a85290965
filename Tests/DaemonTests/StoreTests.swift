import Glibc
import LifecycleCore
import Linux
import Posix
import Testing

@testable import Daemon

@Suite("What apps store for their next launch")
struct StoreTests {
    private let app = AppID("photos")!

    /// Where no service manager keeps anything, and nobody goes on afterwards.
    private func alone() -> StoredDescriptors {
        StoredDescriptors(logbook: Logbook(path: "/dev/null"), store: DescriptorStore { _ in nil })
    }

    private func passed(_ stored: StoredDescriptors) -> (names: [String], complaints: [String]) {
        var complaints: [String] = []
        let names = stored.passed(to: app) { complaints.append($0) }.map(\.name)
        return (names, complaints)
    }

    @Test("L18: a restoration state is sealed at its size when it is stored: it can't grow over its limit afterwards")
    func sealed() throws {
        let stored = alone()
        let file = try MemoryFile.empty("state")
        #expect(ftruncate(file.raw, 1 << 20) == 0)
        #expect(stored.add(try file.duplicate(), "state", of: app, closer: DescriptorCloser()) == .stored(written: 0))
        #expect(ftruncate(file.raw, 1 << 30) < 0 && errno == EPERM)
        #expect(ftruncate(file.raw, 0) < 0 && errno == EPERM)
        #expect(passed(stored).names == ["state"])
        let large = try MemoryFile.empty("state")
        #expect(ftruncate(large.raw, (1 << 20) + 1) == 0)
        #expect(stored.add(try large.duplicate(), "state", of: app, closer: DescriptorCloser()) != .stored(written: 0))
    }

    @Test("L18: one whose seals are sealed is measured again when it is handed over, and dropped if it has grown")
    func grown() throws {
        let stored = alone()
        let file = try MemoryFile.empty("state")
        // F_ADD_SEALS, F_SEAL_SEAL: as memfd_create(2) makes them without MFD_ALLOW_SEALING.
        #expect(fcntl(file.raw, 1033, 1) == 0)
        #expect(stored.add(try file.duplicate(), "state", of: app, closer: DescriptorCloser()) == .stored(written: 0))
        #expect(passed(stored).names == ["state"])
        #expect(ftruncate(file.raw, (1 << 20) + 1) == 0)
        #expect(passed(stored).complaints == ["FDNAME=state holds 1048577 bytes; 1048576 are allowed, and is dropped"])
        #expect(passed(stored) == ([], []))
    }

    @Test("L18: an error in a manifest does not cost the app what it stored; only a manifest that is gone does")
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
}
