import Control
import Glibc
import JSON
import Linux
import Posix
import Systemd
import TestKit
import Testing

/// Apps that misuse their connections: each is refused or bounded with a sentence in the log, its status and its own error; other
/// apps notice nothing, and the daemon keeps nothing of it.
@Suite("Connections of apps: bad input")
struct SelfBadInputTests {
    @Test(
        "answers to what was never asked, and ends of tasks that never began, are errors without an effect (L17, L21)")
    func unasked() throws {
        let stage = try SelfStage()
        let client = try stage.active()
        try stage.mark()
        let active = client.serial
        for serial in [0, 1, active, active + 1, UInt64(Int64.max), .max] {
            let failure = client.failure("Answer", [.uint64(serial), .dictionary([("result", .string("new-data"))])])
            #expect(failure?.name == "NotOpen")
            #expect(failure?.sentence.contains("no event \(serial) waits for an answer") == true)
        }
        try stage.expectWarning("Answer was refused: no event")
        for token in ["a", "", String(repeating: "x", count: 5000), "\n"] {
            #expect(client.failure("EndTask", [.string(token)])?.name == "NotOpen")
        }
        try stage.expectWarning("EndTask was refused: no task with the token")
        #expect(client.failure("Attach", [.dictionary([("handles", .uint64(1))])])?.name == "InvalidArgument")
        #expect(client.failure("Attach", [.dictionary([("serial", .string("1"))])])?.name == "InvalidArgument")
        #expect(
            client.failure("SetStateSummary", [.string(String(repeating: "x", count: 1025))])?.name
                == "InvalidArgument")
        #expect(client.failure("NoSuchMethod")?.name == "UnknownMethod")
        #expect(client.failure("SetStatus", [.uint64(1)])?.name == "InvalidArgs")
        try stage.expectNothingLeft()
        #expect(try stage.daemon.state("mail") == "active")
    }

    @Test("1,000 tasks are open, the next one is refused, and all end again (L27)")
    func tasks() throws {
        let stage = try SelfStage()
        let client = try stage.active()
        try stage.mark()
        #expect(try client.callAll("BeginTask", (1...1000).map { [.string("upload"), .string("\($0)")] }))
        let refusal = client.failure("BeginTask", [.string("upload"), .string("1001")])
        #expect(refusal?.name == "TooMany")
        #expect(refusal?.sentence.contains("1000 tasks are open") == true)
        // The repetition of a call is no new task.
        #expect(client.failure("BeginTask", [.string("upload"), .string("7")]) == nil)
        #expect(try stage.daemon.status("mail")["tasks"]?.arrayValue?.count == 1000)
        try stage.expectWarning("BeginTask was refused: 1000 tasks are open")
        try stage.ping()
        #expect(try client.callAll("EndTask", (1...1000).map { [.string("\($0)")] }))
        // The end of a task is answered once it is recorded; the core handles it a moment later.
        try stage.daemon.eventually("all tasks have ended") {
            try stage.daemon.status("mail")["tasks"]?.arrayValue?.count == 0
        }
        try stage.expectNothingLeft()
    }

    @Test("of 10,000 messages that an app sends at once 1,000 are read in a second; others are answered meanwhile")
    func flood() throws {
        let stage = try SelfStage()
        let client = try stage.active()
        try stage.mark()
        do {
            let raw = try RawSelfClient(stage.daemon)
            var call = RawMessage(1, "Heartbeat")
            call.flags = 1
            let bytes = (1...10_000).flatMap { number -> [UInt8] in
                call.serial = UInt32(number)
                return call.bytes
            }
            var sent = 0
            var isHeld = false
            while !isHeld {
                sent += raw.sendSome(bytes[(sent % bytes.count)...])
                try stage.ping()
                isHeld = TestDaemon.text(of: stage.daemon.root + "/log").contains("over its connections within 1s")
            }
            try stage.expectWarning("the app sent 1000 messages over its connections within 1s; the rest waits")
            for _ in 0..<20 { try stage.ping() }
        }
        // The app's other connection is served once the second is over.
        #expect(try client.call("RemainingTime") == [.uint64(.max)])
        try stage.expectNothingLeft()
    }

    @Test("what is no sealed memfd is refused as a state, whatever it is; several descriptors are refused (L11)")
    func descriptors() throws {
        let stage = try SelfStage()
        let client = try stage.active()
        try client.call("SaveState", [.descriptor(SharedDescriptor(try MemoryFile.sealed("state", Array("7".utf8))))])
        // A helper thread closes what came with the message.
        try stage.daemon.eventually("one copy of the state is open") {
            stage.daemon.openDescriptors().count { $0.contains("memfd:state") } == 1
        }
        try stage.mark()
        let large = try MemoryFile.empty("state")
        #expect(ftruncate(large.raw, 2 << 30) == 0)
        let unsealed = SharedDescriptor(large)
        let fifo = stage.daemon.root + "/fifo"
        #expect(mkfifo(fifo, 0o600) == 0)
        let pair = try SocketPair()
        let cases: [(SharedDescriptor, String)] = [
            (unsealed, "the memfd is not sealed"),
            (SharedDescriptor(try Descriptor.open(fifo, O_RDWR | O_NONBLOCK)), "not a memfd"),
            (SharedDescriptor(pair.closingNear()), "not a memfd"),
            (SharedDescriptor(try Descriptor.open("/", O_RDONLY | O_DIRECTORY)), "not a memfd"),
            (SharedDescriptor(try Descriptor.open("/dev/zero", O_RDWR)), "not a memfd"),
            (SharedDescriptor(try Descriptor.open("/proc/self/status", O_RDONLY)), "not a memfd"),
        ]
        for (descriptor, words) in cases {
            for member in ["SaveState", "SaveSnapshot"] {
                let failure = client.failure(member, [.descriptor(descriptor)])
                #expect(failure?.sentence.contains(words) == true, "\(failure?.sentence ?? "accepted")")
            }
            let typed = client.failure("SaveSnapshotAs", [.string("image/jpeg"), .descriptor(descriptor)])
            #expect(typed?.sentence.contains(words) == true, "\(typed?.sentence ?? "accepted")")
            try stage.expectWarning(words)
        }
        try MemoryFile.seal(unsealed.descriptor)
        for type in [
            "", "png", "image/", "/png", "image/png; a=b", "image/p\u{1b}[m", String(repeating: "a", count: 127) + "/b",
        ] {
            let failure = client.failure("SaveSnapshotAs", [.string(type), .descriptor(unsealed)])
            #expect(failure?.name == "InvalidArgument" && failure?.sentence.contains("is not a media type") == true)
        }
        #expect(client.failure("SaveState", [.descriptor(unsealed)])?.sentence.contains("the limit is") == true)
        let raw = try RawSelfClient(stage.daemon)
        var save = RawMessage(1, "SaveState")
        save.signature = "h"
        save.body.put(UInt32(0))
        // A descriptor that is announced and not sent, then two where one is taken, then one for another method.
        try raw.send(save.bytes)
        #expect(try raw.answer(to: 1).type == 3)
        save.serial = 2
        save.descriptors = 2
        try raw.send(save.bytes, with: [unsealed.raw, unsealed.raw])
        #expect(try raw.answer(to: 2).type == 3)
        var status = RawMessage(3, "Heartbeat")
        status.descriptors = 1
        try raw.send(status.bytes, with: [unsealed.raw])
        #expect(try raw.answer(to: 3).type == 3)
        try raw.finish()
        // The one before is still stored.
        var stored = RawMessage(1, "GetState")
        stored.flags = 0
        let reader = try RawSelfClient(stage.daemon)
        try reader.send(stored.bytes)
        #expect(try reader.answer(to: 1).type == 2)
        try reader.finish()
        try stage.expectNothingLeft()
    }

    @Test("states that are copied count as messages by their size")
    func largeStates() throws {
        let stage = try SelfStage()
        let client = try stage.active()
        let bytes = [UInt8](repeating: 0, count: 8 << 20)
        let image = SharedDescriptor(try MemoryFile.sealed("greenroom-test", bytes))
        try stage.daemon.eventually("the app has to wait") {
            try client.call("SaveSnapshot", [.descriptor(image)])
            let warning = try stage.daemon.status("mail")["lastWarning"]?.stringValue
            return warning?.contains("messages over its connections within 1s; the rest waits") == true
        }
        try stage.ping()
    }

    @Test("descriptors in the authentication, or within a message, end the connection")
    func misplacedDescriptors() throws {
        let stage = try SelfStage()
        let client = try stage.active()
        try stage.mark()
        let pair = try SocketPair()
        for isInHandshake in [true, false] {
            let raw = try RawSelfClient(stage.daemon, handshake: !isInHandshake)
            let bytes = isInHandshake ? RawSelfClient.handshake : RawMessage(1, "Heartbeat").bytes
            if !isInHandshake { try raw.send(Array(bytes.prefix(20))) }
            try raw.send(Array(bytes.suffix(20)), with: [pair.near.raw])
            try raw.finish()
            try stage.expectWarning("was closed: it sent a descriptor, which is not accepted here")
        }
        #expect(try client.call("RemainingTime") == [.uint64(.max)])
        try stage.expectNothingLeft()
    }

    @Test("a message of more than 64K, and one that is deeper than a method needs, are refused")
    func largeMessages() throws {
        let stage = try SelfStage()
        let client = try stage.active()
        try stage.mark()
        let raw = try RawSelfClient(stage.daemon)
        var status = RawMessage(1, "SetStatus")
        status.signature = "s"
        status.body.put(String(repeating: "x", count: 100_000))
        var rest = status.bytes[...]
        // The daemon may end the connection before it has all of it.
        while !rest.isEmpty {
            let sent = raw.sendSome(rest)
            if sent < 0 { break }
            rest = rest.dropFirst(sent)
        }
        try raw.finish()
        try stage.expectWarning("it sends a message of more than 65536 bytes")
        let many = (0..<65).map { Variant.string("kind\($0)") }
        #expect(
            client.failure("Attach", [.dictionary([("handles", .array("s", many))])])?.sentence.contains("at most 64")
                == true)
        try stage.expectNothingLeft()
    }

    @Test("a big-endian client is served as any other")
    func bigEndian() throws {
        let stage = try SelfStage()
        let raw = try RawSelfClient(stage.daemon)
        var attach = RawMessage(1, "Attach", isBigEndian: true)
        attach.signature = "a{sv}"
        attach.body.putArray(alignment: 8) { options in
            options.putEntry("handles", "as") { handles in
                handles.putArray(alignment: 4) { $0.put("didBecomeActive") }
            }
            options.putEntry("serial", "t") { $0.put(UInt64(0)) }
        }
        try raw.send(attach.bytes)
        #expect(try raw.answer(to: 1).type == 2)
        try raw.send(RawMessage(2, "Ready", isBigEndian: true).bytes)
        #expect(try raw.answer(to: 2).type == 2)
        try stage.daemon.waitUntil("mail", is: "active")
        var task = RawMessage(3, "BeginTask", isBigEndian: true)
        task.signature = "ss"
        task.body.put("upload")
        task.body.put("a")
        try raw.send(task.bytes)
        #expect(try raw.answer(to: 3).body == [UInt8](repeating: 0xff, count: 8))
        #expect(
            try stage.daemon.status("mail")["tasks"]?.arrayValue?.first?["name"]?.stringValue == "upload")
        let state = try MemoryFile.sealed("state", Array("page 7".utf8))
        var save = RawMessage(4, "SaveState", isBigEndian: true)
        save.signature = "h"
        save.descriptors = 1
        save.body.put(UInt32(0))
        try raw.send(save.bytes, with: [state.raw])
        #expect(try raw.answer(to: 4).type == 2)
        try stage.ping()
    }

    @Test("a client that never reads is disconnected, and its app gets its notices otherwise")
    func neverReads() throws {
        let stage = try SelfStage()
        let reader = try stage.active(["openURL"])
        try stage.mark()
        let raw = try RawSelfClient(stage.daemon)
        var attach = RawMessage(1, "Attach")
        attach.signature = "a{sv}"
        attach.body.putArray(alignment: 8) { options in
            options.putEntry("handles", "as") { handles in
                handles.putArray(alignment: 4) { $0.put("didEnterBackground") }
            }
        }
        try raw.send(attach.bytes)
        _ = try raw.answer(to: 1)
        var call = RawMessage(2, "RemainingTime")
        var isOpen = true
        while isOpen {
            call.serial += 1
            isOpen = raw.sendSome(call.bytes[...]) >= 0
            if call.serial % 100 == 0 { try stage.ping() }
        }
        try stage.expectWarning("was closed: it does not read: ")
        #expect(try reader.call("RemainingTime") == [.uint64(.max)])
        // No connection handles it any more, so the app has nothing to finish.
        try stage.daemon.ask("Background", "mail")
        try stage.daemon.waitUntil("mail", is: "suspended")
        #expect(try stage.daemon.receipts("mail").isEmpty)
        try stage.ping()
    }

    @Test("a client that reads late gets all events in order, and a state only as it is last (L31)")
    func readsLate() throws {
        let stage = try SelfStage()
        let client = try stage.active()
        for number in 1...40 {
            try stage.daemon.ask("Send", "mail", [.string("x-\(number)"), .string("")])
            try stage.daemon.ask("Send", "mail", [.string("battery"), .string("\(number)")])
        }
        try stage.ping()
        var events: [SelfClient.Event] = []
        while events.last?.details["payload"]?.stringValue != "40" { events.append(try client.next()) }
        #expect(events.map(\.serial) == events.map(\.serial).sorted())
        let own = events.compactMap { $0.details["kind"]?.stringValue }.filter { $0.hasPrefix("x-") }
        #expect(own == (1...40).map { "x-\($0)" })
    }

    @Test("a connection that is handed to a child, which reads from it, and stays open after the app has closed it")
    func handedOn() throws {
        let stage = try SelfStage()
        let shared = SharedDescriptor(try SelfClient.borrow(stage.daemon))
        let client = SelfClient(
            adopting: try BusConnection(descriptor: shared.descriptor.duplicate(), name: "greenroomd"))
        try client.attach()
        try client.call("Ready")
        #expect(try client.next().kind == "didBecomeActive")
        let position = client.serial
        var starting = try startProcess(
            SpawnRequest(
                executable: "/bin/sh", arguments: ["-c", "head -c 1 && exec sleep 1000"],
                environment: ["PATH=/bin:/usr/bin"],
                standardInput: shared))
        while try starting.outcome() == .pending { waitForReadable([starting.outcomeDescriptor]) }
        let child = starting.process
        defer {
            _ = try? child.signal(SIGKILL)
            waitForReadable([child.descriptor])
            _ = try? child.reap()
        }
        // The child takes bytes of the events, so this process cannot read them any more.
        try stage.request("Background")
        let second = try SelfClient(stage.daemon)
        try second.attach(after: position)
        #expect(try second.kinds(1) == ["willResignActive"])
        let entered = try second.next()
        #expect(entered.kind == "didEnterBackground")
        try second.answer(entered.serial)
        try stage.daemon.waitUntil("mail", is: "suspended")
        try stage.ping()
        #expect(try stage.daemon.receipts("mail").isEmpty)
    }

    @Test("connections that say nothing are closed after 5s; until then no others of the app are accepted")
    func silent() throws {
        let stage = try SelfStage()
        let client = try stage.active()
        try stage.mark()
        var silent: [RawSelfClient] = []
        // On a busy machine the first ones are closed meanwhile: then it takes more of them.
        try stage.daemon.eventually("one is refused") {
            silent.append(try RawSelfClient(stage.daemon, handshake: false))
            return TestDaemon.text(of: stage.daemon.root + "/log").contains("was refused: 8 connections are open")
        }
        try stage.expectWarning("was refused: 8 connections are open")
        try stage.ping()
        for one in silent { try one.finish() }
        #expect(try client.call("RemainingTime") == [.uint64(.max)])
        try stage.expectNothingLeft()
    }

    @Test("a client that attaches again and again gets events again, which count as messages")
    func attachesAgain() throws {
        let stage = try SelfStage()
        let client = try stage.active()
        for number in 1...40 { try stage.daemon.ask("Send", "mail", [.string("x-\(number)"), .string("")]) }
        let position = client.serial
        let handles = Variant.dictionary([("handles", .strings(SelfClient.kinds)), ("serial", .uint64(position))])
        // Five answers with 40 events each are fewer messages than the daemon keeps for a client that does not read yet.
        try stage.daemon.eventually("the app has to wait") {
            for _ in 1...12 { #expect(try client.callAll("Attach", Array(repeating: [handles], count: 5))) }
            return try stage.daemon.status("mail")["lastWarning"]?.stringValue?.contains("within 1s") == true
        }
        try stage.expectWarning("the app sent 1000 messages over its connections within 1s; the rest waits")
        try stage.ping()
    }
}
