import Control
import Glibc
import JSON
import Linux
import Posix
import Systemd
import TestKit
import Testing

/// What apps show last, and who gets it (L18).
@Suite("Snapshots of apps")
struct SnapshotTests {
    private struct Snapshot: Equatable {
        var bytes: [UInt8]
        var type: String
        var time: UInt64

        var text: String { String(decoding: bytes, as: UTF8.self) }
    }

    private static let kinds = ["didEnterBackground", "takeSnapshot", "push", "willSuspend"]

    /// What `GetSnapshot` answers.
    private func snapshot(_ daemon: TestDaemon, _ app: String = "mail") throws -> Snapshot {
        let (descriptor, values) = try daemon.bus.descriptorAndValues(
            path: BusStage.path(app), interface: ControlNames.appInterface, member: "GetSnapshot")
        let isSealed = MemoryFile.hasSealedContents(descriptor.descriptor)
        #expect(isSealed)
        #expect(fcntl(descriptor.raw, F_GETFL) & O_ACCMODE == O_RDONLY)
        #expect(write(descriptor.raw, "x", 1) < 0)
        let bytes = try MemoryFile.contents(descriptor.descriptor, limit: 8 << 20)
        return Snapshot(bytes: try #require(bytes), type: values[0].stringValue ?? "", time: values[1].uintValue ?? 0)
    }

    /// The last part of the name of the error; empty: there was none.
    private func failure(
        _ daemon: TestDaemon, _ app: String = "mail", _ set: [Variant]? = nil, member: String = "SetSnapshot"
    ) -> (name: String, sentence: String) {
        do throws(BusError) {
            if let set {
                _ = try daemon.bus.call(
                    path: BusStage.path(app), interface: ControlNames.appInterface, member: member, set)
            } else {
                _ = try daemon.bus.descriptorAndValues(
                    path: BusStage.path(app), interface: ControlNames.appInterface, member: "GetSnapshot")
            }
            return ("", "")
        } catch {
            return (error.name.split(separator: ".").last.map(String.init) ?? "", error.message)
        }
    }

    private func sealed(_ bytes: [UInt8]) throws -> Variant {
        .descriptor(SharedDescriptor(try MemoryFile.sealed("test", bytes)))
    }

    private func time(_ daemon: TestDaemon, _ app: String = "mail") throws -> UInt64 {
        try daemon.bus.property(
            path: BusStage.path(app), interface: ControlNames.appInterface, "SnapshotTime"
        ).uintValue ?? 0
    }

    @Test("an app is asked for a snapshot when it has answered, and suspended when it has given it (L18)")
    func asked() throws {
        let stage = try SelfStage("BackgroundModes=push\n")
        let client = try stage.active(Self.kinds)
        #expect(failure(stage.daemon).name == "NoSnapshot")
        #expect(try time(stage.daemon) == 0)
        try stage.request("Background")
        try client.answer(client.next().serial)
        let question = try client.next()
        #expect(question.kind == "takeSnapshot")
        // Half of a PNG is the app's business: it is passed on as it is.
        let half: [UInt8] = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a]
        try client.call("SaveSnapshot", [sealed(half)])
        let first = try snapshot(stage.daemon)
        #expect(first.bytes == half && first.type == "image/png" && first.time > 0)
        #expect(try time(stage.daemon) == first.time)
        try client.answer(question.serial)
        #expect(try client.next().kind == "willSuspend")
        try stage.daemon.waitUntil("mail", is: "suspended")
        // After a push with new data it is taken anew.
        try stage.request("Push", "mail", [.string("1 message")])
        let push = try client.next()
        #expect(push.kind == "push")
        try client.answer(push.serial, [("result", .string("new-data"))])
        let second = try client.next()
        #expect(second.kind == "takeSnapshot")
        try client.call("SaveSnapshotAs", [.string("text/plain"), sealed(Array("1 message".utf8))])
        try client.answer(second.serial)
        #expect(try client.next().kind == "willSuspend")
        let next = try snapshot(stage.daemon)
        #expect(next.text == "1 message" && next.type == "text/plain" && next.time >= first.time)
    }

    @Test("an answer to a question that a later one has displaced comes late, which is no warning (L18)")
    func displaced() throws {
        let stage = try SelfStage("BackgroundModes=push\n")
        let client = try stage.active(Self.kinds)
        try stage.request("Background")
        try client.answer(client.next().serial)
        let first = try client.next()
        #expect(first.kind == "takeSnapshot")
        #expect(try client.next().kind == "willSuspend")
        // Its handler of pushes takes longer than the daemon waits for a snapshot.
        try stage.request("Push", "mail", [.string("1 message")])
        try client.answer(client.next().serial, [("result", .string("new-data"))])
        let second = try client.next()
        #expect(second.kind == "takeSnapshot")
        let failure = client.failure("Answer", [.uint64(first.serial), .dictionary([])])
        #expect(failure?.name == "NotOpen" && failure?.sentence.contains("it was answered, or is over") == true)
        try client.answer(second.serial)
        #expect(try stage.daemon.status("mail")["lastWarning"] == nil)
        #expect(!TestDaemon.text(of: stage.daemon.root + "/log").contains("Answer was refused"))
    }

    @Test("an app takes back what it advertises before it is suspended, and is notified when it runs again (L43)")
    func withdraw() throws {
        let stage = try SelfStage()
        let client = try stage.active(["didEnterBackground", "withdraw", "willSuspend", "didResume"])
        try stage.request("Background")
        try client.answer(client.next().serial)
        let question = try client.next()
        #expect(question.kind == "withdraw")
        #expect(try stage.daemon.state("mail") == "background")
        try client.answer(question.serial)
        #expect(try client.next().kind == "willSuspend")
        try stage.daemon.waitUntil("mail", is: "suspended")
        try stage.request("Activate")
        #expect(try client.next().kind == "didResume")
    }

    @Test("an app that never gives it is suspended all the same, and what comes late is kept (L18)")
    func silent() throws {
        let stage = try SelfStage()
        let client = try stage.active(Self.kinds)
        try stage.request("Background")
        try client.answer(client.next().serial)
        let question = try client.next()
        #expect(question.kind == "takeSnapshot")
        #expect(try client.next().kind == "willSuspend")
        try stage.daemon.waitUntil("mail", is: "suspended")
        // It comes late, and is kept.
        try client.call("SaveSnapshotAs", [.string("image/webp"), sealed([1])])
        try client.answer(question.serial)
        #expect(try snapshot(stage.daemon).type == "image/webp")
        #expect(try stage.daemon.state("mail") == "suspended")
    }

    @Test(
        "a snapshot that is no memfd, too large or of no media type is refused with a sentence, and the one before stays (L18)"
    )
    func refused() throws {
        let stage = try SelfStage()
        let client = try stage.active(Self.kinds)
        try client.call("SaveSnapshotAs", [.string("text/plain"), sealed(Array("kept".utf8))])
        let large = try MemoryFile.empty("large")
        #expect(ftruncate(large.raw, 2 << 30) == 0)
        try MemoryFile.seal(large)
        let sentence = client.failure("SaveSnapshot", [.descriptor(SharedDescriptor(large))])?.sentence ?? ""
        #expect(sentence.contains("2G; the limit is 8M"), "\(sentence)")
        #expect(
            client.failure("SaveSnapshotAs", [.string("x"), try sealed([])])?.sentence.contains("media type") == true)
        #expect(try snapshot(stage.daemon).text == "kept")
        try stage.ping()
    }

    @Test(
        "X_GREENROOM_SNAPSHOT_TYPE= names the type; it survives a kill of the daemon, a stop, and with SnapshotPersistent=yes a new boot (L18)"
    )
    func kept() throws {
        let script = "store-type text/plain store snapshot=page"
        let lifecycle = "[Lifecycle]\nSuspendDelaySec=0\n"
        let first = try TestDaemon([
            "mail": TestDaemon.manifest(script, lifecycle + "SnapshotPersistent=yes"),
            "photos": TestDaemon.manifest(script, lifecycle),
        ])
        try first.launch("mail")
        try first.launch("photos")
        let taken = try snapshot(first)
        #expect(taken.text == "page" && taken.type == "text/plain")
        first.crash()
        let second = try first.successor()
        #expect(try snapshot(second) == taken)
        #expect(second.stop() == .exited(0))
        let third = try second.successor()
        #expect(try snapshot(third) == taken && snapshot(third, "photos").type == "text/plain")
        #expect(third.stop() == .exited(0))
        // The facts are of another boot.
        for app in ["mail", "photos"] {
            let path = third.state + "/restoration/\(app).snapshot-facts"
            let text = TestDaemon.text(of: path).split(separator: "\n").prefix(2).joined(separator: "\n")
            try replaceFile(at: path, with: Array((text + "\n0123\n").utf8))
        }
        let fourth = try third.successor()
        #expect(try snapshot(fourth) == taken)
        #expect(failure(fourth, "photos").name == "NoSnapshot")
        #expect(!exists(at: fourth.state + "/restoration"))
    }

    @Test(
        "what shows the windows gives the snapshot of a program that takes no part; an app that is asked gives its own (L18)"
    )
    func provided() throws {
        let root = try TestDaemon.makeFolder()
        let daemon = try TestDaemon(
            [
                "plain": TestDaemon.manifest("", "[Lifecycle]\nSuspendDelaySec=1h"),
                "hidden": TestDaemon.manifest("store snapshot=secret", "[Lifecycle]\nSnapshotPrivacy=hidden"),
                "mail": SelfConnectionTests.manifest(root, SelfStage.quick),
            ], root: root)
        try daemon.launch("plain")
        #expect(failure(daemon, "plain", [.string("image/jpeg"), try sealed([1, 2])]).name == "")
        let given = try snapshot(daemon, "plain")
        #expect(given.bytes == [1, 2] && given.type == "image/jpeg")
        #expect(try time(daemon, "plain") == given.time)
        #expect(failure(daemon, "plain", [.string("jpeg"), try sealed([1])]).name == "InvalidArgument")
        let fifo = daemon.root + "/fifo"
        #expect(mkfifo(fifo, 0o600) == 0)
        let pipe = SharedDescriptor(try Descriptor.open(fifo, O_RDWR | O_NONBLOCK))
        #expect(failure(daemon, "plain", [.string("image/png"), .descriptor(pipe)]).sentence.contains("not a memfd"))
        try daemon.launch("hidden")
        #expect(failure(daemon, "hidden").name == "SnapshotHidden")
        #expect(failure(daemon, "hidden", [.string("image/png"), try sealed([1])]).name == "SnapshotHidden")
        #expect(try time(daemon, "hidden") == 0)
        try SelfStage.request(daemon, "Launch", "mail", [.dictionary([])])
        let client = try SelfClient(daemon)
        try client.attach(Self.kinds)
        #expect(
            failure(daemon, "mail", [.string("image/png"), try sealed([1])]).sentence.contains(
                "takes its snapshots itself"))
        #expect(failure(daemon, "nobody").name == "UnknownObject")
        for (scene, problem) in [("main", ""), ("other", "NoScene"), ("a/b", "InvalidArgument")] {
            let set: [Variant] = [.string(scene), .string("text/plain"), try sealed(Array("window".utf8))]
            #expect(failure(daemon, "plain", set, member: "SetSceneSnapshot").name == problem)
        }
        let ofScene = try daemon.bus.call(
            path: BusStage.path("plain"), interface: ControlNames.appInterface, member: "ReadSceneSnapshot",
            [.string("main")])
        #expect(ofScene.first == .bytes(Array("window".utf8)))
        #expect(try snapshot(daemon, "plain") == given)
    }

    @Test(
        "while the screen is locked the snapshot of an app with protected data is withheld; the message bus passes no descriptor (L15, L18)",
        .enabled(if: PrivateBus.isPossible && geteuid() == 0, PrivateBus.requirement))
    func locked() throws {
        let lifecycle = "[Lifecycle]\nSuspendDelaySec=1h\n"
        let stage = try BusStage([
            "mail": TestDaemon.manifest("store snapshot=inbox", lifecycle + "ProtectedData=yes"),
            "plain": TestDaemon.manifest("store snapshot=clock", lifecycle),
        ])
        let logind = try FakeLogind(stage)
        try logind.waitForInhibitor()
        try stage.daemon.launch("plain")
        try stage.daemon.launch("mail")
        #expect(try snapshot(stage.daemon).text == "inbox")
        try logind.setLocked(true)
        try stage.serve("it is withheld") { failure(stage.daemon).name == "SnapshotWithheld" }
        #expect(try snapshot(stage.daemon, "plain").text == "clock")
        try logind.setLocked(false)
        try stage.serve("it is given") { failure(stage.daemon).name == "" }
        let answer = try stage.ask(
            "GetSnapshot", path: BusStage.path("mail"), interface: ControlNames.appInterface)
        #expect(
            try stage.ask("ReadSnapshot", path: BusStage.path("mail"), interface: ControlNames.appInterface).get()[0]
                == .bytes(Array("inbox".utf8)))
        let words = [
            "busctl", "--system", "call", ControlNames.busName, BusStage.path("mail"), ControlNames.appInterface,
        ]
        // Those who may not manage the app do not get it.
        let refused = try stage.run(words + ["ReadSnapshot"], asOtherUser: true)
        #expect(refused.status != 0 && !refused.text.contains("105"), "\(refused.text)")
        guard case .failure(let error) = answer else {
            Issue.record("the message bus passes it")
            return
        }
        #expect(error.message.contains("use ReadSnapshot"))
    }

    @Test("greenroomctl snapshot writes bytes to a pipe or a file, and shows only text on a terminal (L18)")
    func commandLine() throws {
        let daemon = try TestDaemon([
            "mail": TestDaemon.manifest("store-type text/plain store snapshot=Inbox\\x1bX"),
            "photos": TestDaemon.manifest("store snapshot=PNG"),
        ])
        try daemon.launch("mail")
        try daemon.launch("photos")
        let control = "\(TestDaemon.binaries)/greenroomctl --runtime \(daemon.runtime)"
        func shell(_ line: String) throws -> (status: EndStatus?, output: String) {
            try daemon.run("/bin/sh", ["-c", line])
        }
        #expect(try shell("\(control) snapshot photos | cat").output == "PNG")
        let file = daemon.root + "/photos.png"
        #expect(try shell("\(control) snapshot photos -o \(file)").output == "")
        #expect(TestDaemon.text(of: file) == "PNG")
        let described = try JSONValue.parse(shell("\(control) --json snapshot photos").output)
        #expect(described["type"]?.stringValue == "image/png" && described["bytes"]?.integerValue == 3)
        let terminal = try shell("script -qec '\(control) snapshot photos' /dev/null")
        #expect(terminal.status == .exited(1))
        #expect(terminal.output.contains("-o FILE writes it to a file"), "\(terminal.output)")
        let text = try shell("script -qec '\(control) snapshot mail' /dev/null")
        #expect(text.output.hasPrefix("Inbox") && !text.output.contains("\u{1b}"), "\(text.output)")
        let unknown = try shell("\(control) snapshot photo")
        #expect(unknown.status == .exited(1) && unknown.output.contains("photo"), "\(unknown.output)")
    }
}

extension TestDaemon {
    /// Runs a program as a user does, and waits for its end.
    func run(_ program: String, _ arguments: [String]) throws -> (status: EndStatus?, output: String) {
        let path = root + "/output"
        let output = SharedDescriptor(try Descriptor.open(path, O_WRONLY | O_CREAT | O_TRUNC, mode: 0o600))
        var starting = try startProcess(
            SpawnRequest(
                executable: program, arguments: arguments, environment: ["PATH=/usr/bin:/bin", "TERM=dumb"],
                standardOutput: output, standardError: output))
        while try starting.outcome() == .pending { waitForReadable([starting.outcomeDescriptor]) }
        waitForReadable([starting.process.descriptor])
        return (try starting.process.reap()?.status, TestDaemon.text(of: path))
    }
}
