import Glibc
import JSON
import Linux
import Posix
import Systemd
import TestKit
import Testing

@Suite("Sockets that the daemon holds")
struct SocketTests {
    @Test("a connection launches an app, and is answered; status shows the sockets (L29)")
    func launch() throws {
        let port = try freePort()
        let stage = try SocketStage(["web": ("", "ListenStream=127.0.0.1:\(port)\nListenStream=ROOT/web.sock")])
        #expect(try stage.daemon.state("web") == "notRunning")
        #expect(try stage.problems("web") == ["", ""])
        let sockets = try stage.daemon.status("web")["sockets"]?.arrayValue
        #expect(sockets?[0]["address"]?.stringValue == "127.0.0.1:\(port)")
        #expect(sockets?[0]["type"]?.stringValue == "stream")
        let client = try SocketClient(.port(port))
        try client.exchange("one")
        #expect(try stage.launches("web") == 1)
        try SocketClient(.path(stage.path("web.sock"))).exchange("two")
        try client.exchange("three")
        #expect(try stage.launches("web") == 1)
    }

    @Test("an app of Type=listening with held sockets is ready when it has accepted what waits there (L7)")
    func acceptance() throws {
        let port = try freePort()
        let stage = try SocketStage([
            "web": (
                "hold ROOT/go",
                "ListenStream=127.0.0.1:\(port)\n[App]\nType=listening\n[Lifecycle]\nLaunchDeadlineSec=5min"
            )
        ])
        let client = try SocketClient(.port(port))
        try client.send("one")
        try stage.daemon.waitUntil("web", is: "launching")
        // Several measurements: it waits for the file, without the processor.
        try stage.daemon.eventually("the program is executed") {
            try stage.daemon.status("web")["launches"]?.integerValue == 1
        }
        for _ in 0..<20 { #expect(try stage.daemon.status("web")["state"]?.stringValue == "launching") }
        try replaceFile(at: stage.path("go"), with: [])
        #expect(try client.receive() == "one")
        try stage.daemon.eventually("it is ready") {
            ["background", "suspended"].contains(try stage.daemon.status("web")["state"]?.stringValue)
        }
    }

    @Test("every kind of socket launches its app, and gets what arrived before (L29)")
    func kinds() throws {
        let (stream, datagram) = (try freePort(), try freePort())
        let name = "greenroom-test-\(getpid())-kinds"
        let stage = try SocketStage([
            "port": ("", "ListenStream=\(stream)"), "udp": ("", "ListenDatagram=127.0.0.1:\(datagram)"),
            "abstract": ("", "ListenStream=@\(name)"), "path": ("", "ListenDatagram=ROOT/dgram"),
            "packets": ("", "ListenSequentialPacket=ROOT/packets"),
        ])
        try SocketClient(.port(stream)).exchange("stream")
        try SocketClient(.port(datagram), SOCK_DGRAM).exchange("datagram")
        try SocketClient(.abstract(name)).exchange("abstract")
        try SocketClient(.path(stage.path("dgram")), SOCK_DGRAM).exchange("local datagram")
        try SocketClient(.path(stage.path("packets")), SOCK_SEQPACKET).exchange("packet")
        for app in ["port", "udp", "abstract", "path", "packets"] { #expect(try stage.launches(app) == 1) }
    }

    @Test("a connection wakes a suspended app, also with Traffic=no (L50)", arguments: ["yes", "no"])
    func wake(_ traffic: String) throws {
        let port = try freePort()
        let stage = try SocketStage([
            "web": ("", "ListenStream=127.0.0.1:\(port)\nTraffic=\(traffic)\n\(SocketStage.longIdle)")
        ])
        try SocketClient(.port(port)).exchange("one")
        let pid = try stage.daemon.pid("web")
        for text in ["two", "three"] {
            try stage.daemon.waitUntil("web", is: "suspended")
            try SocketClient(.port(port)).exchange(text)
            #expect(try stage.daemon.pid("web") == pid)
        }
        let status = try stage.daemon.status("web")
        #expect((status["trafficWakes"]?.integerValue ?? 0) >= 2, "\(status)")
        #expect(status["lastInput"]?["kind"]?.stringValue == "listener", "\(status)")
        #expect(try stage.launches("web") == 1)
    }

    @Test("a connection that was not accepted survives a crash of the app, and is answered by the next process (L29)")
    func crash() throws {
        let port = try freePort()
        let stage = try SocketStage(["web": ("die-first ROOT/died", "ListenStream=127.0.0.1:\(port)")])
        let client = try SocketClient(.port(port))
        try client.exchange("kept")
        #expect(exists(at: stage.path("died")))
        #expect(try stage.launches("web") == 2)
    }

    @Test("after its end the app is launched by the next connection, and all its sockets are as before (L29)")
    func again() throws {
        let stage = try SocketStage([
            "web": ("names ROOT/names", "ListenStream=ROOT/a\nListenStream=ROOT/b\nFileDescriptorName=web")
        ])
        for text in ["one", "two"] {
            try SocketClient(.path(stage.path("a"))).exchange(text)
            try SocketClient(.path(stage.path("b"))).exchange(text)
            try stage.daemon.terminate("web")
        }
        #expect(TestDaemon.text(of: stage.path("names")) == "web:web wait wait\nweb:web wait wait\n")
    }

    @Test("held sockets come before stored descriptors, with their names")
    func names() throws {
        let root = try TestDaemon.makeFolder()
        let text =
            TestDaemon.manifest("stored store kept", trace: root + "/trace") + "[Wake]\nListenStream=\(root)/socket\n"
        let stage = try SocketStage([:], root: root)
        try replaceFile(at: stage.daemon.config + "/apps/photos.app", with: Array(text.utf8))
        _ = try stage.daemon.call("Reload")
        try stage.daemon.launch("photos", background: true)
        try stage.daemon.terminate("photos")
        try stage.daemon.launch("photos", background: true)
        try stage.daemon.terminate("photos")
        let traced = stage.daemon.trace().filter { $0.contains("photos.socket") || $0 == "nothing" }
        #expect(traced == ["photos.socket", "photos.socket:kept"])
    }

    @Test("files of sockets have the mode and the owner of the manifest, and folders are made; a reload changes them")
    func files() throws {
        let owner = geteuid() == 0 ? "SocketUser=nobody\nSocketGroup=nogroup\n" : ""
        let stage = try SocketStage([
            "web": ("", "ListenStream=ROOT/deep/folder/web.sock\nSocketMode=0620\nDirectoryMode=0750\n" + owner)
        ])
        func about(_ name: String) -> Glibc.stat {
            var about = Glibc.stat()
            lstat(stage.path(name), &about)
            return about
        }
        #expect(about("deep/folder/web.sock").st_mode & 0o7777 == 0o620)
        #expect(about("deep/folder").st_mode & 0o7777 == 0o750)
        if geteuid() == 0 { #expect(about("deep/folder/web.sock").st_uid == 65_534) }
        let inode = about("deep/folder/web.sock").st_ino
        try stage.rewrite("web", "", "ListenStream=ROOT/deep/folder/web.sock\nSocketMode=0600")
        #expect(about("deep/folder/web.sock").st_mode & 0o7777 == 0o600)
        #expect(about("deep/folder/web.sock").st_uid == geteuid())
        #expect(about("deep/folder/web.sock").st_ino == inode)
    }

    @Test(
        "a port that is taken is named in status and in the log once; the app is launched when it has all its sockets")
    func taken() throws {
        let (port, other) = (try freePort(), try freePort())
        let taken = try BusyPort(port)
        let stage = try SocketStage([
            "web": ("names ROOT/names", "ListenStream=127.0.0.1:\(port)\nListenStream=127.0.0.1:\(other)")
        ])
        #expect(try stage.problems("web")[0].contains("Address already in use (EADDRINUSE)"))
        #expect(try stage.problems("web")[1] == "")
        // A process would take the second socket for the first one.
        let client = try SocketClient(.port(other))
        try client.send("one")
        let result = try stage.daemon.launch("web", background: true)
        #expect(
            result["lastReceipt"]?["explanation"]?.stringValue
                == "Could not be launched: its socket 127.0.0.1:\(port) is not bound: bind 127.0.0.1:\(port): Address "
                + "already in use (EADDRINUSE).", "\(result)")
        #expect(try stage.launches("web") == 0)
        taken.close()
        try stage.daemon.launch("web", background: true)
        #expect(try client.receive() == "one")
        #expect(TestDaemon.text(of: stage.path("names")) == "web.socket:web.socket wait wait\n")
        try SocketClient(.port(port)).exchange("two")
        #expect(stage.log.split(separator: "\n").count { $0.contains("cannot listen at 127.0.0.1:\(port)") } == 1)
        #expect(stage.log.contains("listens at 127.0.0.1:\(port) now"))
    }

    @Test("connections that wait at one socket launch the app when the other one is bound, or are reset")
    func incomplete() throws {
        let port = try freePort()
        let taken = try BusyPort(port)
        let settings = "ListenStream=127.0.0.1:\(port)\nListenStream=ROOT/KIND\nConnectionWaitSec="
        let stage = try SocketStage([
            "patient": ("", settings.replacing("KIND", with: "patient") + "infinity"),
            "web": ("", settings.replacing("KIND", with: "web") + "1s"),
        ])
        let client = try SocketClient(.path(stage.path("patient")))
        try client.send("waited")
        for _ in 0..<2 { #expect(try SocketClient(.path(stage.path("web"))).receive() ?? "" == "") }
        #expect(stage.log.contains("reset the connections that waited: its socket 127.0.0.1:\(port) is not bound"))
        #expect(try stage.launches("web") + stage.launches("patient") == 0)
        #expect(try stage.daemon.receipts("web").isEmpty && stage.daemon.receipts("patient").isEmpty)
        taken.close()
        #expect(try client.receive() == "waited")
    }

    @Test("an app without any socket gets one when its port is free, and a connection launches it then")
    func late() throws {
        let port = try freePort()
        let taken = try BusyPort(port)
        let stage = try SocketStage(["web": ("", "ListenStream=127.0.0.1:\(port)")])
        #expect(try stage.problems("web")[0] != "")
        taken.close()
        try stage.daemon.eventually("the port is bound") { try stage.problems("web")[0] == "" }
        try SocketClient(.port(port)).exchange("one")
    }

    @Test(
        "two apps with the same address: status of the second one names the first, which it replaces when that is gone")
    func twice() throws {
        let port = try freePort()
        let stage = try SocketStage([
            "a": ("", "ListenStream=127.0.0.1:\(port)\nListenStream=ROOT/socket"),
            "b": ("", "ListenStream=\(port)\nListenStream=ROOT/socket"),
        ])
        #expect(try stage.problems("a") == ["", ""])
        let problems = try stage.problems("b")
        #expect(problems[0].hasSuffix("app 'a' has it"), "\(problems)")
        #expect(problems[1] == "app 'a' has this address", "\(problems)")
        unlink("\(stage.daemon.config)/apps/a.app")
        _ = try stage.daemon.call("Reload")
        #expect(try stage.problems("b") == ["", ""])
        try SocketClient(.path(stage.path("socket"))).exchange("one")
        #expect(try stage.launches("b") == 1)
    }

    @Test("a stop closes the sockets and removes their files; a manifest that is removed too")
    func stop() throws {
        let port = try freePort()
        let stage = try SocketStage([
            "a": ("", "ListenStream=127.0.0.1:\(port)\nListenStream=ROOT/a"), "b": ("", "ListenStream=ROOT/b"),
        ])
        unlink("\(stage.daemon.config)/apps/b.app")
        _ = try stage.daemon.call("Reload")
        #expect(!exists(at: stage.path("b")))
        #expect(exists(at: stage.path("a")))
        try stage.rewrite("a", "", "ListenStream=127.0.0.1:\(port)")
        #expect(!exists(at: stage.path("a")))
        try stage.rewrite("a", "", "ListenStream=ROOT/a")
        #expect(exists(at: stage.path("a")))
        #expect(throws: TestFailure.self) { try SocketClient(.port(port)) }
        stage.daemon.stop()
        #expect(!exists(at: stage.path("a")))
    }

    @Test("a socket that a reload adds is bound at the end of a running app, which does not have it")
    func added() throws {
        let stage = try SocketStage(["web": ("", "ListenStream=ROOT/a")])
        try SocketClient(.path(stage.path("a"))).exchange("one")
        try stage.rewrite("web", "", "ListenStream=ROOT/a\nListenStream=ROOT/b")
        #expect(try stage.problems("web")[1].contains("when the app has ended"))
        #expect(!exists(at: stage.path("b")))
        try stage.daemon.terminate("web")
        try stage.daemon.eventually("it is bound") { try stage.problems("web") == ["", ""] }
        try SocketClient(.path(stage.path("b"))).exchange("two")
    }

    @Test("an app that shuts its socket down, or removes its file, gets a new one after its end")
    func damaged() throws {
        let stage = try SocketStage([
            "shut": ("shut-down exit 0", "ListenStream=ROOT/shut"),
            "unlinked": ("unlink ROOT/unlinked", "ListenStream=ROOT/unlinked"),
        ])
        _ = try? stage.daemon.launch("shut", background: true)
        try stage.daemon.eventually("it is made again") { stage.log.contains("has shut it down") }
        try stage.daemon.eventually("it is usable") {
            try stage.problems("shut") == [""] && exists(at: stage.path("shut"))
        }
        try stage.daemon.launch("unlinked", background: true)
        try stage.daemon.eventually("status says so") {
            try stage.problems("unlinked")[0].contains("its file was removed")
        }
        try stage.daemon.terminate("unlinked")
        try stage.daemon.eventually("its file is made again") { exists(at: stage.path("unlinked")) }
        try stage.rewrite("unlinked", "", "ListenStream=ROOT/unlinked")
        try SocketClient(.path(stage.path("unlinked"))).exchange("one")
    }

    @Test("a folder of sockets that is removed is made again, and clients reach the app")
    func vanished() throws {
        let stage = try SocketStage([
            "a": ("", "ListenStream=ROOT/files/sockets/a"), "b": ("", "ListenStream=ROOT/files/sockets/b"),
        ])
        for round in 0..<2 {
            removeTree(stage.path("files"))
            try stage.daemon.eventually("both are made again") {
                exists(at: stage.path("files/sockets/a")) && exists(at: stage.path("files/sockets/b"))
            }
            for app in ["a", "b"] {
                try SocketClient(.path(stage.path("files/sockets/\(app)"))).exchange("\(round)")
                try stage.daemon.terminate(app)
            }
        }
    }

    @Test(
        "clients of an app that always fails wait, and are reset after ConnectionWaitSec=; the next ones wait anew (L11)"
    )
    func rejected() throws {
        let port = try freePort()
        let stage = try SocketStage([
            "web": ("exit 1", "ListenStream=127.0.0.1:\(port)\nConnectionWaitSec=1s\nListenDatagram=127.0.0.1:\(port)")
        ])
        for _ in 0..<2 {
            let clients = try (0..<40).map { _ in try SocketClient(.port(port)) }
            for client in clients { #expect(try client.receive() == nil) }
        }
        #expect(stage.log.contains("reset the connections that waited"))
        try stage.rewrite("web", "", "ListenStream=127.0.0.1:\(port)\nConnectionWaitSec=1s")
        try stage.daemon.launch("web", background: true)
        try SocketClient(.port(port)).exchange("one")
    }

    @Test("an app that accepts nothing is not launched again, and the daemon rests")
    func ignores() throws {
        let port = try freePort()
        let stage = try SocketStage(["web": ("hold ROOT/go", "ListenStream=127.0.0.1:\(port)")])
        let client = try SocketClient(.port(port))
        try client.send("one")
        try stage.daemon.waitUntil("web", is: "background")
        try replaceFile(at: stage.path("go"), with: [])
        #expect(try client.receive() == "one")
        #expect(try stage.launches("web") == 1)
    }
}

/// A socket that listens at a port.
final class BusyPort {
    private var number: Int32

    init(_ port: UInt16) throws {
        number = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        let number = number
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(number, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard result == 0, listen(number, 1) == 0 else { throw TestFailure("port \(port): error \(errno)") }
    }

    func close() {
        if number >= 0 { Glibc.close(number) }
        number = -1
    }

    deinit { close() }
}
