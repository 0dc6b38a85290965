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

/// What an app can do to its inbox, and a file system that is full.
@Suite("Inboxes that cannot be written")
struct HostileInboxTests {
    private static let sections = "[Lifecycle]\nSuspendDelaySec=0\nBackgroundModes=push"

    private func start(_ root: String? = nil, _ more: [String: String] = [:]) throws -> TestDaemon {
        let mail = ["mail": TestDaemon.manifest("", Self.sections)]
        return try TestDaemon(mail.merging(more) { $1 }, root: root)
    }

    private func name(_ number: Int) -> String { "push.000000000000000\(number)" }

    @Test(
        "an inbox that the app replaces is made again with the next push, and nothing outside of it is changed (L31)",
        arguments: ["missing", "link", "file", "fifo", "no permissions"])
    func replaced(how: String) throws {
        let daemon = try start()
        try daemon.launch("mail")
        let inbox = daemon.runtime + "/inbox/mail"
        let target = daemon.root + "/target"
        try createDirectories(at: target)
        try replaceFile(at: target + "/keep", with: [1])
        if how == "no permissions" { #expect(chmod(inbox, 0) == 0) } else { #expect(rmdir(inbox) == 0) }
        switch how {
        case "link": #expect(symlink(target, inbox) == 0)
        case "file": try replaceFile(at: inbox, with: [])
        case "fifo": #expect(mkfifo(inbox, 0o600) == 0)
        default: break
        }
        for number in 1...3 { try daemon.ask("Push", "mail", [.string("\(number)")]) }
        for number in 1...3 { #expect(daemon.inbox("mail", name(number)) == "\(number)\n") }
        try daemon.terminate("mail")
        #expect(daemon.inbox("mail", name(1)) == nil)
        #expect(try daemon.launch("mail")["state"]?.stringValue == "active")
        #expect(entries(of: target) == ["keep"])
    }

    @Test("an app that is launched after its inbox was replaced has an inbox", arguments: ["link", "file", "fifo"])
    func launchedAfter(how: String) throws {
        let daemon = try start()
        try daemon.launch("mail")
        try daemon.terminate("mail")
        let inbox = daemon.runtime + "/inbox/mail"
        let target = daemon.root + "/target"
        try createDirectories(at: target)
        try replaceFile(at: target + "/keep", with: [1])
        #expect(rmdir(inbox) == 0)
        switch how {
        case "link": #expect(symlink(target, inbox) == 0)
        case "file": try replaceFile(at: inbox, with: [])
        default: #expect(mkfifo(inbox, 0o600) == 0)
        }
        #expect(try daemon.launch("mail")["state"]?.stringValue == "active")
        try daemon.ask("Push", "mail", [.string("1")])
        #expect(daemon.inbox("mail", name(1)) == "1\n")
        #expect(entries(of: target) == ["keep"])
    }

    @Test(
        "a file system that is mounted on an inbox gets no file, and the next launch has an inbox again",
        .enabled(if: mayMount(), "only root can mount a file system"))
    func mounted() throws {
        let daemon = try start()
        try daemon.launch("mail")
        let inbox = daemon.runtime + "/inbox/mail"
        #expect(mount("test", inbox, "tmpfs", 0, "size=64k") == 0)
        defer { detach(inbox) }
        try daemon.ask("Push", "mail", [.string("1")])
        #expect(entries(of: inbox).isEmpty)
        try daemon.terminate("mail")
        try daemon.launch("mail")
        try daemon.ask("Push", "mail", [.string("2")])
        #expect(entries(of: inbox).count == 1)
        #expect(TestDaemon.text(of: daemon.root + "/log").contains("a file system was mounted on its inbox"))
    }

    @Test("inboxes of apps that do not run are emptied at the start, and those of unknown apps removed")
    func unused() throws {
        let root = try TestDaemon.makeFolder()
        for app in ["mail", "gone"] {
            try createDirectories(at: "\(root)/run/inbox/\(app)/own")
            try replaceFile(at: "\(root)/run/inbox/\(app)/push.0000000000000001", with: [1])
        }
        let daemon = try start(root)
        let inboxes = daemon.runtime + "/inbox"
        try daemon.eventually("they are empty") {
            entries(of: inboxes) == ["mail"] && entries(of: inboxes + "/mail") == ["own"]
        }
        #expect(try daemon.state("mail") == "notRunning")
    }

    // MARK: A full file system

    /// A small file system as the runtime folder.
    private func withSmallRuntime(_ body: (String) throws -> Void) throws {
        let root = try TestDaemon.makeFolder()
        let path = root + "/run"
        try createDirectories(at: path)
        try #require(mount("test", path, "tmpfs", 0, "size=4m,mode=755") == 0)
        defer {
            detach(path)
            removeTree(root)
        }
        try body(root)
    }

    @Test(
        "pushes that a full file system refuses wait and survive the daemon, and the next one is refused (L31)",
        .enabled(if: mayMount(), "only root can mount a file system"))
    func full() throws {
        try withSmallRuntime { root in
            let first = try start(root, ["other": TestDaemon.manifest("")])
            try first.launch("mail")
            try first.launch("other")
            try first.ask("Activate", "mail")
            let pids = try ["mail", "other"].map(first.pid)
            let big = first.runtime + "/inbox/other/big"
            #expect(fill(big))
            // It was accepted before the daemon could know, and is kept.
            try first.ask("Push", "mail", [.string("1")])
            #expect(first.inbox("mail", name(1)) == nil)
            #expect(try first.status("mail")["lastWarning"]?.stringValue?.contains("No space left on device") == true)
            #expect(first.failure("Push", [.string("mail"), .string("2")]) == "Failed")
            #expect(first.failure("Send", [.string("mail"), .string("battery"), .string("20")]) == "Failed")
            first.crash()
            try removeFile(at: big)
            let second = try first.successor()
            #expect(try ["mail", "other"].map(second.pid) == pids)
            try second.eventually("the push is written") { second.inbox("mail", name(1)) == "1\n" }
            try second.ask("Push", "mail", [.string("3")])
            // A push that was refused has no number.
            #expect(second.inbox("mail", name(2)) == "3\n")
            // The timer writes it too.
            #expect(fill(big))
            try second.ask("Send", "mail", [.string("battery"), .string("20")])
            #expect(second.inbox("mail", "battery") == nil)
            try removeFile(at: big)
            try second.eventually("the state is written") { second.inbox("mail", "battery") == "20\n" }
            second.stop()
        }
    }

    @Test(
        "while the runtime folder is full, the logbook records what happens: the next daemon finds all apps (law 13)",
        .enabled(if: mayMount(), "only root can mount a file system"))
    func fullLogbook() throws {
        try withSmallRuntime { root in
            let first = try start(root, ["other": TestDaemon.manifest("")])
            try first.launch("mail")
            let big = first.runtime + "/inbox/mail/big"
            #expect(fill(big))
            // More than two snapshots.
            let socket = try first.notifySocket("mail")
            for number in 1...150 {
                try sendDatagram("STATUS=\(number) " + String(repeating: "z", count: 2000), to: socket)
                try first.eventually("the message is read") {
                    try first.status("mail")["statusText"]?.stringValue?.hasPrefix("\(number) ") == true
                }
            }
            let pid = try first.pid("mail")
            first.crash()
            try removeFile(at: big)
            let second = try first.successor()
            #expect(try second.pid("mail") == pid && second.state("mail") == "active")
            #expect(try second.status("mail")["statusText"]?.stringValue?.hasPrefix("150 ") == true)
            #expect(!TestDaemon.text(of: root + "/log").contains("are missing"))
            second.stop()
        }
    }
}

/// Receipts that the disk refuses, and files that are removed in pieces.
@Suite("Storage that is tried again")
struct StorageRetryTests {
    @Test("a receipt that the disk refuses is in the logbook, and is written when the disk takes it (L45)")
    func receipts() throws {
        try inOwnProcess {
            let root = makeTemporaryFolder("greenroom-receipts")
            defer { removeTree(root) }
            defer { MappedFile.stopCountingOwnEnd() }
            let loop = try EventLoop()
            let context = try DaemonContext.bare(in: root, loop, EventList())
            context.logbook.create(LifecycleCore(), records: [:])
            let path = context.folders.receipts
            // A folder in place of the file cannot be written by any user.
            try createDirectories(at: path)
            let mail = try #require(AppID("mail"))
            let receipt = Receipt(
                id: 1, app: mail, run: RunID(1), pid: 7, state: .active, namespace: .exit, code: 0,
                explanation: "Exited with status 0.", exit: .exited(0), wall: .seconds(1), cpu: .zero, memory: 1)
            #expect(throws: Problem.self) { try context.storage.receipts.write(receipt) }
            context.storage.pendingReceipts.update()
            #expect(context.logbook.recordNames == ["receipt/1"])
            // The next daemon knows it.
            let records = try #require(try Logbook.read(at: root + "/logbook")).records
            let next = try ReceiptStore(folders: context.folders, clock: WallClock())
            next.adoptPending(PendingReceipts.lines(in: records))
            #expect(next.last(of: mail)?.id == 1 && next.nextID == 2 && next.pending.count == 1)
            try removeFile(at: path, folder: true)
            while !context.storage.retries.isEmpty { try loop.runOnce(timeout: .seconds(60)) }
            #expect(context.logbook.recordNames.isEmpty && context.storage.receipts.pending.isEmpty)
            let last = try ReceiptStore(folders: context.folders, clock: WallClock())
            #expect(try last.read(limit: 10).map(\.id) == [1])
            // One that is on disk is not written twice.
            last.adoptPending(PendingReceipts.lines(in: records))
            #expect(last.pending.isEmpty)
        }
    }

    @Test("an inbox with many files is removed in pieces, behind the clients, and the next one is empty")
    func pieces() throws {
        try inOwnProcess {
            let root = makeTemporaryFolder("greenroom-inbox")
            defer { removeTree(root) }
            let loop = try EventLoop()
            let context = try DaemonContext.bare(in: root, loop, EventList())
            try createDirectories(at: context.folders.inboxes)
            let inbox = Inbox(of: try #require(AppID("mail")), in: context.storage.inboxes, owner: nil)
            try context.storage.inboxes.create(inbox)
            for number in 0..<640 { try replaceFile(at: "\(inbox.path)/\(number)", with: []) }
            let before = loop.work.pieces
            try context.storage.inboxes.empty(inbox)
            // The first 64 were removed at once.
            #expect(!loop.work.isEmpty && loop.work.pieces == before)
            try context.storage.inboxes.create(inbox)
            #expect(entries(of: inbox.path).isEmpty)
            while !loop.work.isEmpty { try loop.runOnce(timeout: .zero) }
            #expect(loop.work.pieces - before >= (640 - 64) / 64)
            #expect(entries(of: context.folders.inboxes) == ["mail"])
        }
    }
}
