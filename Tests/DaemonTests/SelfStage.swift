import Control
import Glibc
import JSON
import Linux
import Posix
import Systemd
import TestKit
import Testing

/// A daemon with an app whose connections the test uses, and another one that must notice nothing of what they do.
final class SelfStage {
    let daemon: TestDaemon
    private let other: SelfClient
    private var before: [String] = []

    /// No client answers `willTerminate` when the daemon of a test ends.
    static let quick = "TerminateDeadlineSec=100ms\n"

    init(_ more: String = "", script: String = "") throws {
        let root = try TestDaemon.makeFolder()
        daemon = try TestDaemon(
            [
                "mail": SelfConnectionTests.manifest(root, Self.quick + more, script: script),
                "other": SelfConnectionTests.manifest(root, Self.quick, lend: "lend-other"),
            ], configuration: "[Manager]\nForegroundLimit=2\n", root: root)
        other = try SelfStage.launch(daemon, "other", "lend-other")
        try request("Launch", "mail", [.dictionary([])])
    }

    /// Launches an app into the foreground, with a connection that takes part.
    static func launch(_ daemon: TestDaemon, _ app: String, _ lend: String) throws -> SelfClient {
        try request(daemon, "Launch", app, [.dictionary([])])
        let client = try SelfClient(daemon, lend)
        try client.attach()
        try client.call("Ready")
        guard try client.next().kind == "didBecomeActive" else { throw TestFailure("\(app) is not active") }
        return client
    }

    /// Makes a request whose answer is not waited for: the app has to act before.
    static func request(_ daemon: TestDaemon, _ member: String, _ app: String, _ more: [Variant] = []) throws {
        _ = try daemon.bus.callAsync(
            path: ControlNames.managerPath, interface: ControlNames.managerInterface, member: member,
            [.string(app)] + more, timeout: .seconds(60))
        // It is on its way before a connection of the test ends.
        _ = try daemon.call("Version")
    }

    func request(_ member: String, _ app: String = "mail", _ more: [Variant] = []) throws {
        try Self.request(daemon, member, app, more)
    }

    /// The app is active, and a connection takes part.
    func active(_ kinds: [String] = SelfClient.kinds) throws -> SelfClient {
        let client = try SelfClient(daemon)
        try client.attach(kinds)
        try client.call("Ready")
        try daemon.waitUntil("mail", is: "active")
        if kinds.contains("didBecomeActive") { _ = try client.next() }
        return client
    }

    /// The other app is answered, and so is a client of the daemon.
    func ping(sourceLocation: SourceLocation = #_sourceLocation) throws {
        #expect(try other.call("RemainingTime") == [.uint64(.max)], sourceLocation: sourceLocation)
        #expect(try daemon.state("other") == "active", sourceLocation: sourceLocation)
    }

    /// Waits until the last warning of the app contains these words, and looks for them in the log.
    func expectWarning(_ words: String, sourceLocation: SourceLocation = #_sourceLocation) throws {
        try daemon.eventually("the warning '\(words)'") {
            try daemon.status("mail")["lastWarning"]?.stringValue?.contains(words) == true
        }
        let log = TestDaemon.text(of: daemon.root + "/log")
        #expect(log.contains(words), "the log lacks '\(words)'", sourceLocation: sourceLocation)
    }

    /// Remembers what the daemon has open.
    func mark() throws { before = kept(try daemon.settledDescriptors()) }

    /// Without the files that it opens for a moment, at times of its own.
    private func kept(_ descriptors: [String]) -> [String] {
        descriptors.filter { $0 != "/proc" && !$0.hasPrefix("/proc/") && !$0.hasPrefix("/sys/") }
    }

    /// The daemon has open what it had, and the app is as it was.
    func expectNothingLeft(sourceLocation: SourceLocation = #_sourceLocation) throws {
        try ping(sourceLocation: sourceLocation)
        var found: [String] = []
        try? daemon.eventually("the daemon's descriptors are back") {
            found = kept(daemon.openDescriptors())
            return found == before
        }
        #expect(found == before, sourceLocation: sourceLocation)
        #expect(try daemon.receipts("mail").isEmpty, sourceLocation: sourceLocation)
    }

    /// The memory of the daemon that is in RAM, in KiB.
    var residentKibibytes: Int {
        let status = TestDaemon.text(of: "/proc/\(daemon.process.pid)/status")
        guard let line = status.split(separator: "\n").first(where: { $0.hasPrefix("VmRSS:") }) else { return 0 }
        return line.split(separator: " ").dropFirst().first.flatMap { Int($0.filter(\.isNumber)) } ?? 0
    }
}
