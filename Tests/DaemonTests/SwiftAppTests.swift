import Control
import JSON
import Systemd
import TestKit
import Testing

/// docs/examples/reader, a program with the Swift library, as an app of the daemon.
@Suite("The Swift library")
struct SwiftAppTests {
    private static let manifest = """
        [App]
        Type=notify
        ExecStart=\(programFolder())/greenroom-reader
        URLSchemes=reader
        [Lifecycle]
        BackgroundModes=push
        SuspendDelaySec=0

        """

    private func expect(page: Int, _ daemon: TestDaemon) throws {
        try daemon.eventually("the reader is on page \(page)") {
            try daemon.status("reader")["statusText"]?.stringValue == "page \(page)"
        }
    }

    @Test(
        "a reader opens a URL, saves in the background, is woken by a push, and the next process has its page (L8, L17, L30)"
    )
    func reader() throws {
        let daemon = try TestDaemon(["reader": Self.manifest])
        let opened = try daemon.call("Open", [.string(""), .string("reader:12"), .dictionary([])]).first
        #expect(opened?["state"]?.stringValue == "active")
        try expect(page: 12, daemon)
        #expect(try daemon.ask("Background", "reader")["outcome"]?.stringValue == "done")
        try daemon.waitUntil("reader", is: "suspended")
        try daemon.ask("Push", "reader", [.string("13")])
        try expect(page: 13, daemon)
        try daemon.wait("reader", "wakeCompleted")
        try daemon.waitUntil("reader", is: "suspended")
        #expect(daemon.inbox("reader", "push.1") == nil)
        try daemon.terminate("reader")
        #expect(try daemon.receipts("reader").last?["namespace"]?.stringValue == "exit")
        try daemon.launch("reader")
        try expect(page: 13, daemon)
    }

    @Test("a reader connects to the next daemon, and answers what the one before has asked (L17)")
    func nextDaemon() throws {
        var daemon = try TestDaemon(["reader": Self.manifest])
        try daemon.launch("reader")
        for page in 1...5 {
            daemon.crash()
            daemon = try daemon.successor()
            _ = try daemon.call("Open", [.string("reader"), .string("reader:\(page)"), .dictionary([])])
            try expect(page: page, daemon)
            #expect(try daemon.ask("Background", "reader")["outcome"]?.stringValue == "done")
            try daemon.waitUntil("reader", is: "suspended")
            try daemon.ask("Activate", "reader")
        }
        #expect(try daemon.receipts("reader").isEmpty)
    }
}
