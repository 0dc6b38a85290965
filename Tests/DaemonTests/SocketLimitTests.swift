import Control
import Glibc
import JSON
import Linux
import Posix
import TestKit
import Testing

/// What the machine does not give: descriptors, IPv6, low ports.
@Suite("Held sockets on machines with less")
struct SocketLimitTests {
    /// Runs a program of the system, and returns what it prints.
    @discardableResult
    private func run(_ words: [String]) throws -> String {
        let root = try TestDaemon.makeFolder()
        defer { removeTree(root) }
        let output = SharedDescriptor(try Descriptor.open(root + "/output", O_WRONLY | O_CREAT, mode: 0o600))
        var starting = try startProcess(
            SpawnRequest(
                executable: words[0], arguments: Array(words.dropFirst()), environment: ["PATH=/usr/bin:/bin"],
                standardOutput: output, standardError: output))
        while try starting.outcome() == .pending { waitForReadable([starting.outcomeDescriptor]) }
        waitForReadable([starting.process.descriptor])
        let status = try starting.process.reap()?.status
        let text = TestDaemon.text(of: root + "/output")
        guard status == .exited(0) else { throw TestFailure("\(words): \(status.map { "\($0)" } ?? "?"): \(text)") }
        return text
    }

    // MARK: Descriptors

    /// Takes all numbers that a new descriptor could have from a daemon. What is open stays open (setrlimit(2)), and
    /// what the daemon closes meanwhile frees no number: only the standard streams are below the limit.
    private func exhaust(_ daemon: TestDaemon) throws {
        try run(["/usr/bin/prlimit", "--pid=\(daemon.process.pid)", "--nofile=3:"])
    }

    @Test(
        "more sockets than descriptors: each of the others is refused with a sentence, and the earlier ones work",
        .enabled(if: isInstalled("prlimit"), "prlimit is missing"))
    func budget() throws {
        // Of 256 descriptors 128 are for watches and sockets, and 64 for sockets.
        let root = try TestDaemon.makeFolder()
        let daemon = try TestDaemon(
            ["worker@": SocketStage.manifest("", "ListenStream=ROOT/sockets/%i", in: root)], root: root,
            wrapper: ["/usr/bin/prlimit", "--nofile=256:256"])
        let names = (100..<180).map { "\($0)" }
        for name in names { #expect(symlink("worker@.app", "\(daemon.config)/apps/worker@\(name).app") == 0) }
        try daemon.reload()
        func problem(_ name: String) throws -> String {
            try daemon.status("worker@" + name)["sockets"]?.arrayValue?.first?["problem"]?.stringValue ?? ""
        }
        let refusal = "the daemon holds 64 sockets; its limit of open files (LimitNOFILE=) allows no more"
        #expect(try names.prefix(64).allSatisfy { try problem($0) == "" })
        for name in names.dropFirst(64) { #expect(try problem(name) == refusal) }
        for name in ["100", "130", "163"] { try SocketClient(.path("\(root)/sockets/\(name)")).exchange(name) }
        #expect(throws: TestFailure.self) { try SocketClient(.path("\(root)/sockets/164")) }
        // An instance that is asked for is refused, too, and is none then.
        for app in ["worker@164", "worker@new"] {
            let sentence = try daemon.launch(app, background: true)["lastReceipt"]?["explanation"]?.stringValue
            #expect(
                sentence
                    == "Could not be launched: its socket \(root)/sockets/\(app.dropFirst(7)) is not bound: \(refusal)."
            )
        }
        #expect(try !daemon.listed().contains("worker@new"))
        // What another one gives back is free.
        for name in names.prefix(16) { unlink("\(daemon.config)/apps/worker@\(name).app") }
        try daemon.reload()
        for name in names.prefix(16) where name == "100" { try daemon.terminate("worker@" + name, remove: true) }
        try daemon.eventually("the others are bound") { try names.dropFirst(64).allSatisfy { try problem($0) == "" } }
        try SocketClient(.path("\(root)/sockets/164")).exchange("164")
    }

    @Test(
        "a daemon without a free descriptor binds and launches nothing, keeps the clients, and works when it has some again",
        .enabled(if: isInstalled("prlimit") && geteuid() == 0, "needs prlimit and root"))
    func exhausted() throws {
        let stage = try SocketStage([
            "running": ("", "ListenStream=ROOT/running"), "web": ("", "ListenStream=ROOT/web"),
            "failing": ("exit 1", "ListenStream=ROOT/failing\nConnectionWaitSec=1s"),
        ])
        try SocketClient(.path(stage.path("running"))).exchange("one")
        try stage.daemon.waitUntilWatched("running")
        let manifest = SocketStage.manifest("", "ListenStream=ROOT/late", in: stage.root)
        try replaceFile(at: "\(stage.daemon.config)/apps/late.app", with: Array(manifest.utf8))
        try exhaust(stage.daemon)
        // A manifest that cannot be read disables no app.
        let errors = try stage.daemon.reload()
        #expect(errors.count == 1 && errors[0].contains("the manifests were not read again: "), "\(errors)")
        #expect(try stage.daemon.listed() == ["failing", "running", "web"])
        let clients = try ["web", "failing"].map { try SocketClient(.path(stage.path($0))) }
        for client in clients { try client.send("waited") }
        try stage.daemon.eventually("the launch has failed") {
            stage.log.contains("Could not be launched: ") && stage.log.contains("Too many open files (EMFILE)")
        }
        // One that is suspended needs no descriptor to be woken.
        try SocketClient(.path(stage.path("running"))).exchange("two")
        try run(["/usr/bin/prlimit", "--pid=\(stage.daemon.process.pid)", "--nofile=4096:"])
        #expect(try stage.daemon.reload() == [])
        try stage.daemon.launch("web", background: true)
        #expect(try clients[0].receive() == "waited")
        #expect(try clients[1].receive() ?? "" == "")
        try SocketClient(.path(stage.path("late"))).exchange("late")
    }

    // MARK: Names

    @Test("a template holds no socket, and an instance whose name makes its address invalid is refused with a sentence")
    func names() throws {
        let root = try TestDaemon.makeFolder()
        let daemon = try TestDaemon(
            ["worker@": SocketStage.manifest("", "ListenStream=ROOT/sockets/%I", in: root)], root: root)
        for (name, reason) in [
            ("", "is a template; name an instance of it"), ("a/b", "the name of an instance has letters, digits"),
            (String(repeating: "x", count: 300), "it has 307 bytes; the limit is 128"),
            (String(repeating: "x", count: 100), "exceeds the maximum of 107"), ("a-..-..-b", "contains '..'"),
        ] {
            let sentence = daemon.launchRefusal("worker@" + name)
            #expect(sentence?.contains(reason) == true, "\(name): \(sentence ?? "")")
        }
        #expect(try daemon.listed().isEmpty)
        #expect(!exists(at: root + "/sockets"))
        // An escaped slash makes a folder.
        try daemon.launch("worker@a-b", background: true)
        try SocketClient(.path(root + "/sockets/a/b")).exchange("one")
    }

    // MARK: Addresses

    @Test("on a kernel without IPv6 a port alone is bound for IPv4, and an address of IPv6 is refused with a sentence")
    func withoutIPv6() throws {
        let (port, six, only) = (try freePort(), try freePort(), try freePort())
        let stage = try SocketStage(
            [
                "port": ("", "ListenStream=\(port)\nListenDatagram=\(port)"), "six": ("", "ListenStream=[::1]:\(six)"),
                "only": ("", "ListenStream=\(only)\nBindIPv6Only=ipv6-only"),
            ], wrapper: [TestDaemon.app, "held", "without-ipv6"])
        #expect(try stage.problems("port") == ["", ""])
        try SocketClient(.port(port)).exchange("stream")
        try SocketClient(.port(port), SOCK_DGRAM).exchange("datagram")
        let unsupported = "Address family not supported by protocol (EAFNOSUPPORT)"
        #expect(try stage.problems("six") == ["socket [::1]:\(six): \(unsupported)"])
        #expect(try stage.problems("only") == ["socket \(only): \(unsupported)"])
        // The socket is found again by its address of IPv4.
        stage.daemon.crash()
        stage.daemon = try stage.daemon.successor()
        #expect(try stage.problems("port") == ["", ""])
        try SocketClient(.port(port)).exchange("again")
    }

    @Test(
        "where IPv6 is disabled a port alone accepts IPv4", .enabled(if: geteuid() == 0, "needs root"),
        .enabled(if: ["unshare", "nsenter", "bash"].allSatisfy(isInstalled), "unshare, nsenter or bash is missing"))
    func disabledIPv6() throws {
        let script =
            "for i in all default lo; do echo 1 >/proc/sys/net/ipv6/conf/$i/disable_ipv6; done; "
            + "PATH=$PATH:/sbin:/usr/sbin; ip link set lo up; exec \"$@\""
        let stage = try SocketStage(
            ["web": ("", "ListenStream=8080"), "six": ("", "ListenStream=[::1]:8081")],
            wrapper: ["/usr/bin/unshare", "--net", "/bin/sh", "-c", script, "sh"])
        #expect(try stage.problems("web") == [""])
        #expect(
            try stage.problems("six") == ["bind [::1]:8081: Cannot assign requested address (EADDRNOTAVAIL)"])
        let client = "exec 3<>/dev/tcp/127.0.0.1/8080; echo hello >&3; read -r answer <&3; echo \"$answer\""
        let words = ["/usr/bin/nsenter", "--net=/proc/\(stage.daemon.process.pid)/ns/net", "/bin/bash", "-c", client]
        #expect(try run(words) == "hello\n")
    }

    @Test(
        "the daemon of a user cannot bind a low port and says why; its other apps work",
        .enabled(if: geteuid() == 0, "needs root to become another user"),
        .enabled(if: firstUnprivilegedPort > 1, "every user can bind low ports here"))
    func lowPort() throws {
        let stage = try SocketStage(
            ["low": ("", "ListenStream=127.0.0.1:1"), "web": ("", "ListenStream=ROOT/web")], asUnprivilegedUser: true)
        #expect(
            try stage.problems("low") == [
                "bind 127.0.0.1:1: Permission denied (EACCES); ports below \(firstUnprivilegedPort) need CAP_NET_BIND_SERVICE"
            ])
        try SocketClient(.path(stage.path("web"))).exchange("one")
        let result = try stage.daemon.launch("low", background: true)
        #expect(result["lastReceipt"]?["explanation"]?.stringValue?.contains("EACCES") == true)
    }
}

/// net.ipv4.ip_unprivileged_port_start
private let firstUnprivilegedPort =
    Int(TestDaemon.text(of: "/proc/sys/net/ipv4/ip_unprivileged_port_start").prefix { $0.isNumber }) ?? 1024
