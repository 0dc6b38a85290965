import Control
import Glibc
import JSON
import Linux
import Posix
import Systemd
import TestKit
import Testing

/// The daemon is started with any of its standard descriptors closed, and with few descriptors.
@Suite("Descriptors that the daemon is started with")
struct StandardDescriptorTests {
    /// A shell's redirections that close the descriptors of this set: bit n is descriptor n.
    private static func closing(_ closed: Int) -> [String] {
        let redirections = (0...2).filter { closed & 1 << $0 != 0 }.map { "\($0)>&-" }
        return ["/bin/sh", "-c", "exec \"$0\" \"$@\" \(redirections.joined(separator: " "))"]
    }

    private static func target(_ pid: Int32, _ descriptor: Int) -> String? {
        var target = [CChar](repeating: 0, count: 4096)
        let length = readlink("/proc/\(pid)/fd/\(descriptor)", &target, 4095)
        return length > 0 ? String(decoding: target[..<length].map { UInt8(bitPattern: $0) }, as: UTF8.self) : nil
    }

    @Test(
        "standard descriptors that are closed at the start are /dev/null, also after a reexec and for apps",
        arguments: 0..<8)
    func closed(set: Int) throws {
        let daemon = try TestDaemon(
            ["first", "second"].reduce(into: [:]) { $0[$1] = TestDaemon.manifest("", app: "StandardOutput=inherit") },
            configuration: "[Manager]\nForegroundLimit=2\n", wrapper: Self.closing(set))
        let log = daemon.root + "/log"
        let open = ["/dev/null", log, log]
        let expected = (0...2).map { set & 1 << $0 == 0 ? open[$0] : "/dev/null" }
        let hasJournal = access("/run/systemd/journal/socket", W_OK) == 0
        func check(_ app: String) throws {
            #expect((0...2).map { Self.target(daemon.process.pid, $0) } == expected)
            try daemon.launch(app)
            let found = try (0...2).map { Self.target(try daemon.pid(app), $0) }
            #expect(found[0] == "/dev/null")
            #expect(found[1] == found[2])
            if !hasJournal { #expect(found[1] == expected[2]) }
        }
        try check("first")
        _ = try daemon.call("Reexec")
        try daemon.reconnect()
        try check("second")
        #expect(daemon.stop() == .exited(0))
    }

    @Test("greenroomctl works with any of its standard descriptors closed", arguments: 0..<8)
    func commandLine(closed: Int) throws {
        let daemon = try TestDaemon(["photos": TestDaemon.manifest("")])
        let output = SharedDescriptor(
            try Descriptor.open(daemon.root + "/output", O_WRONLY | O_CREAT | O_APPEND, mode: 0o600))
        let wrapper = Self.closing(closed)
        var starting = try startProcess(
            SpawnRequest(
                executable: wrapper[0],
                arguments: wrapper.dropFirst() + [
                    TestDaemon.binaries + "/greenroomctl", "--runtime", daemon.runtime, "list",
                ], standardOutput: output, standardError: output))
        while try starting.outcome() == .pending { waitForReadable([starting.outcomeDescriptor]) }
        waitForReadable([starting.process.descriptor])
        #expect(try starting.process.reap()?.status == .exited(0))
        #expect(TestDaemon.text(of: daemon.root + "/output").contains("photos") == (closed & 2 == 0))
    }
}

/// Programs that have a connection to the daemon.
extension StandardDescriptorTests {
    @Test(
        "greenroom-top's standard descriptors that are closed at the start are /dev/null, and its socket is none of them"
    )
    func top() throws {
        let daemon = try TestDaemon(["photos": TestDaemon.manifest("")])
        let wrapper = Self.closing(7)
        var starting = try startProcess(
            SpawnRequest(
                executable: wrapper[0],
                arguments: wrapper.dropFirst() + [
                    TestDaemon.binaries + "/greenroom-top", "--runtime", daemon.runtime, "--control", "/bin/false",
                    "--batch", "1000000", "--interval", "1000",
                ]))
        while try starting.outcome() == .pending { waitForReadable([starting.outcomeDescriptor]) }
        let process = starting.process
        defer {
            _ = try? process.signal(SIGKILL)
            waitForReadable([process.descriptor])
            _ = try? process.reap()
        }
        try daemon.eventually("it is connected") {
            (0..<32).contains { Self.target(process.pid, $0)?.hasPrefix("socket:") ?? false }
        }
        #expect((0...2).map { Self.target(process.pid, $0) } == ["/dev/null", "/dev/null", "/dev/null"])
    }
}

/// The limit of open files.
extension StandardDescriptorTests {
    private static func limited(to number: Int) -> [String] {
        ["/bin/sh", "-c", "ulimit -n \(number) && exec \"$0\" \"$@\""]
    }

    @Test("the daemon does not start with fewer open files than it needs, and says how many", arguments: [32, 127])
    func tooFew(limit: Int) throws {
        let root = try TestDaemon.makeFolder()
        defer { removeTree(root) }
        let wrapper = Self.limited(to: limit)
        let (status, output) = try TestDaemon.runToEnd(
            Array(wrapper.dropFirst()) + [TestDaemon.binaries + "/greenroomd"] + TestDaemon.daemonArguments(root),
            in: root, executable: wrapper[0])
        #expect(status == .exited(1))
        #expect(
            output
                == "greenroomd: the limit of open files (RLIMIT_NOFILE) is \(limit); expected at least 128: raise it with "
                + "LimitNOFILE= or ulimit -n\n")
    }

    @Test("with the fewest open files that the daemon accepts, apps are launched while four clients are connected")
    func few() throws {
        let daemon = try TestDaemon(["photos": TestDaemon.manifest("")], wrapper: Self.limited(to: 128))
        // Beside the connection of the test.
        let clients = try (0..<3).map { _ in try BusConnection(path: daemon.runtime + "/bus") }
        for client in clients {
            let answer = try client.call(
                path: ControlNames.managerPath, interface: ControlNames.managerInterface, member: "Version")
            #expect(answer.first == .string(ControlNames.version))
        }
        #expect(try daemon.launch("photos")["state"]?.stringValue == "active")
        try daemon.ask("Background", "photos")
        try daemon.waitUntil("photos", is: "suspended")
        #expect(try daemon.ask("Activate", "photos")["state"]?.stringValue == "active")
        #expect(!TestDaemon.text(of: daemon.root + "/log").contains("EMFILE"))
    }
}
