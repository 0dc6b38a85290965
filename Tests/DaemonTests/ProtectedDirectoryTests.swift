import Control
import Glibc
import JSON
import Linux
import Posix
import Systemd
import TestKit
import Testing

/// A directory whose key is removed while the screen is locked (L15), on an ext4 image with fscrypt.
@Suite("Protected directories", .enabled(if: EncryptedImage.isPossible, EncryptedImage.requirement))
struct ProtectedDirectoryTests {
    private static let app = TestDaemon.manifest(
        "", app: "Notifications=protectedData", "[Lifecycle]\nProtectedData=yes\n")

    private final class Stage {
        let image: EncryptedImage
        let daemon: TestDaemon
        var secret: String { image.directory + "/secret" }

        /// - Parameter command: `cat`: prints the key.
        init(command: String? = nil) throws {
            image = try EncryptedImage()
            let settings =
                "ProtectedDirectory=\(image.directory)\nProtectedKeyCommand=\(command ?? "/bin/cat \(image.key)")\n"
            daemon = try TestDaemon(
                ["notes": ProtectedDirectoryTests.app], configuration: "[Manager]\n\(settings)")
            try replaceFile(at: secret, with: Array("x".utf8))
        }

        var log: String { TestDaemon.text(of: daemon.root + "/log") }
        var isReadable: Bool { access(secret, R_OK) == 0 }

        func lock(_ isLocked: Bool, by daemon: TestDaemon? = nil) throws {
            _ = try (daemon ?? self.daemon).call("SimulateLock", [.bool(isLocked)])
        }

        func waitUntilLocked(by daemon: TestDaemon? = nil) throws {
            try (daemon ?? self.daemon).eventually("the key is removed") { !isReadable }
        }
    }

    @Test(
        "the key is removed when the apps are in the background, and added before they are notified that it is back (L15)"
    )
    func lockAndUnlock() throws {
        let folder = try TestDaemon.makeFolder()
        let stage = try Stage(command: "/bin/sh -c 'cat \(folder)/key'")
        // The command waits until the test has written the key.
        #expect(mkfifo(folder + "/key", 0o600) == 0)
        try stage.daemon.launch("notes")
        #expect(stage.isReadable)
        try stage.lock(true)
        try stage.waitUntilLocked()
        #expect(try stage.daemon.state("notes") != "active")
        #expect(stage.daemon.inbox("notes", "protectedData") == "unavailable\n")
        try stage.lock(false)
        // Opened as soon as the command reads: the apps are not notified yet.
        let writer = try Descriptor.open(folder + "/key", O_WRONLY)
        #expect(stage.daemon.inbox("notes", "protectedData") == "unavailable\n")
        #expect(try stage.daemon.state("notes") != "active")
        try writeAll(try readFile(at: stage.image.key, limit: 64), to: writer)
        _ = consume writer
        try stage.daemon.waitUntil("notes", is: "active")
        #expect(stage.isReadable)
        #expect(stage.daemon.inbox("notes", "protectedData") == "available\n")
    }

    @Test("a process that keeps a file open is named in the log (L15)")
    func busy() throws {
        let stage = try Stage()
        let file = SharedDescriptor(try Descriptor.open(stage.secret, O_RDONLY))
        let sleep = try startSleep(input: file)
        try stage.lock(true)
        try stage.daemon.eventually("the log has the process") {
            stage.log.contains("are still open, and can be read while the screen is locked: ")
                && stage.log.contains("sleep (pid \(sleep.pid))")
        }
        _ = try? sleep.signal(SIGKILL)
    }

    @Test("a command that fails does not keep the apps away, and one of the next daemon adds the key (L15)")
    func failures() throws {
        let stage = try Stage(command: "/bin/false")
        try stage.daemon.launch("notes")
        try stage.lock(true)
        try stage.waitUntilLocked()
        try stage.lock(false)
        try stage.daemon.waitUntil("notes", is: "active")
        #expect(!stage.isReadable)
        #expect(stage.log.contains("cannot be unlocked: /bin/false failed"))
        // The next daemon does not know whether the key is there.
        try stage.lock(true)
        try stage.daemon.wait("notes", "stateChanged", state: "background")
        let settings = "ProtectedDirectory=\(stage.image.directory)\nProtectedKeyCommand=/bin/cat \(stage.image.key)\n"
        try replaceFile(at: stage.daemon.config + "/greenroom.conf", with: Array("[Manager]\n\(settings)".utf8))
        stage.daemon.crash()
        let next = try stage.daemon.successor()
        try stage.lock(false, by: next)
        try next.waitUntil("notes", is: "active")
        #expect(stage.isReadable)
    }

    @Test(
        "the machine sleeps after the key was removed (L15)",
        .enabled(if: PrivateBus.isPossible, PrivateBus.requirement))
    func sleep() throws {
        let image = try EncryptedImage()
        let secret = image.directory + "/secret"
        try replaceFile(at: secret, with: Array("x".utf8))
        let settings = "ProtectedDirectory=\(image.directory)\nProtectedKeyCommand=/bin/cat \(image.key)\n"
        let slow = TestDaemon.manifest("background=ignore", "[Lifecycle]\nBackgroundDeadlineSec=1min")
        let stage = try BusStage(["slow": slow], configuration: "[Manager]\n\(settings)")
        let logind = try FakeLogind(stage)
        try logind.waitForInhibitor()
        try stage.daemon.launch("slow")
        try logind.setLocked(true)
        try stage.serve("the app leaves the foreground") { try stage.daemon.state("slow") != "active" }
        try logind.emitPrepare("PrepareForSleep", true)
        // The app does not answer.
        _ = try stage.daemon.call("Terminate", [.string("slow"), .bool(true)])
        try logind.waitForRelease()
        let log = TestDaemon.text(of: stage.root + "/log")
        let end = try #require(log.firstRange(of: "→ terminating"), "\(log)")
        let removal = try #require(log.firstRange(of: "vault: lock begins"), "\(log)")
        #expect(end.upperBound <= removal.lowerBound, "\(log)")
        #expect(access(secret, R_OK) != 0)
    }

    @Test("a directory without fscrypt is refused by verify, and named in the log (L15)")
    func unencrypted() throws {
        let folder = try TestDaemon.makeFolder()
        let settings = "[Manager]\nProtectedDirectory=\(folder)\nProtectedKeyCommand=/bin/true\n"
        let daemon = try TestDaemon(["notes": Self.app], configuration: settings)
        try daemon.eventually("the log has the problem") {
            TestDaemon.text(of: daemon.root + "/log").contains("ProtectedDirectory=: \(folder) cannot be protected: it")
        }
        // Locks work as without the setting.
        try daemon.launch("notes")
        _ = try daemon.call("SimulateLock", [.bool(true)])
        try daemon.wait("notes", "stateChanged", state: "background")
        _ = try daemon.call("SimulateLock", [.bool(false)])
        try daemon.waitUntil("notes", is: "active")
    }
}

/// An ext4 file system in a file, with an encrypted directory, for one test.
final class EncryptedImage {
    static let requirement: Comment = "needs root, mkfs.ext4, a loop device and a kernel with fscrypt"
    static let isPossible =
        geteuid() == 0 && access("/usr/sbin/mkfs.ext4", X_OK) == 0
        && access("/sys/fs/ext4/features/encryption", F_OK) == 0
        && access("/dev/loop-control", W_OK) == 0

    private let folder: String
    let directory: String
    let key: String

    init() throws {
        folder = try TestDaemon.makeFolder()
        (directory, key) = (folder + "/mounted/vault", folder + "/key")
        try createDirectories(at: folder + "/mounted")
        let bytes = (0..<64).map { _ in UInt8.random(in: 0...255) }
        try replaceFile(at: key, with: bytes)
        try Self.run("/usr/bin/truncate", "--size=16M", folder + "/image")
        try Self.run("/usr/sbin/mkfs.ext4", "-q", "-O", "encrypt", folder + "/image")
        try Self.run("/usr/bin/mount", "-o", "loop", folder + "/image", folder + "/mounted")
        try createDirectories(at: directory)
        let opened = try Descriptor.open(directory, O_RDONLY | O_DIRECTORY)
        // struct fscrypt_add_key_arg: the type 2 of a specifier, 36 bytes of it, the size of the key, 36 bytes, the key.
        var add = [UInt8](repeating: 0, count: 80) + bytes
        (add[0], add[40]) = (2, UInt8(bytes.count))
        try checkErrno(ioctl(opened.raw, 0xc050_6617, &add), "FS_IOC_ADD_ENCRYPTION_KEY")
        // struct fscrypt_policy_v2: AES-256-XTS, AES-256-CTS, and the identifier of the key.
        var policy: [UInt8] = [2, 1, 4, 2, 0, 0, 0, 0] + add[8..<24]
        try checkErrno(ioctl(opened.raw, 0x800c_6613, &policy), "FS_IOC_SET_ENCRYPTION_POLICY")
    }

    deinit { try? Self.run("/usr/bin/umount", "--lazy", folder + "/mounted") }

    private static func run(_ words: String...) throws {
        var starting = try startProcess(
            SpawnRequest(
                executable: words[0], arguments: Array(words.dropFirst()),
                environment: ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"]))
        while try starting.outcome() == .pending { waitForReadable([starting.outcomeDescriptor]) }
        waitForReadable([starting.process.descriptor])
        guard try starting.process.reap()?.status == .exited(0) else { throw TestFailure("\(words) failed") }
    }
}
