import Glibc
import JSON
import Linux
import Posix
import TestKit
import Testing

@Suite("Options of held sockets")
struct SocketOptionTests {
    @Test("NonBlocking= is set at each launch, whatever the process before has set", arguments: ["yes", "no"])
    func nonBlocking(_ value: String) throws {
        let settings = "ListenStream=ROOT/web\nListenDatagram=ROOT/datagrams\nNonBlocking=\(value)"
        let stage = try SocketStage(["web": ("names ROOT/names", settings)])
        let own = value == "yes" ? "nonblocking" : "wait"
        var expected = ""
        for text in ["one", "two"] {
            try SocketClient(.path(stage.path("web"))).exchange(text)
            expected += "web.socket:web.socket \(own) \(own)\n"
            #expect(TestDaemon.text(of: stage.path("names")) == expected)
            try stage.daemon.terminate("web")
        }
        let other = value == "yes" ? "no" : "yes"
        try stage.rewrite("web", "names ROOT/names", settings.replacing("=\(value)", with: "=\(other)"))
        try SocketClient(.path(stage.path("web"))).exchange("three")
        let changed = value == "yes" ? "wait" : "nonblocking"
        #expect(TestDaemon.text(of: stage.path("names")) == expected + "web.socket:web.socket \(changed) \(changed)\n")
    }

    private func connects(_ domain: Int32, _ port: UInt16) -> Bool {
        let number = socket(domain, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        defer { close(number) }
        if domain == AF_INET { return (try? SocketClient(.port(port))) != nil }
        var address = sockaddr_in6()
        address.sin6_family = sa_family_t(AF_INET6)
        address.sin6_port = port.bigEndian
        address.sin6_addr = in6addr_loopback
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(number, $0, socklen_t(MemoryLayout<sockaddr_in6>.size)) == 0
            }
        }
    }

    @Test("a reload that changes BindIPv6Only= binds the socket again: at once, or at the end of the app that runs")
    func bindIPv6Only() throws {
        let (port, other) = (try freePort(), try freePort())
        let settings = "\nBindIPv6Only="
        let stage = try SocketStage([
            "web": ("", "ListenStream=\(port)" + settings + "both"),
            "idle": ("", "ListenStream=\(other)" + settings + "both"),
        ])
        #expect(connects(AF_INET, other) && connects(AF_INET6, other))
        try stage.daemon.waitUntil("idle", is: "suspended")
        try stage.daemon.terminate("idle")
        try SocketClient(.port(port)).exchange("one")
        for (app, port) in [("web", port), ("idle", other)] {
            try stage.rewrite(app, "", "ListenStream=\(port)" + settings + "ipv6-only")
        }
        #expect(!connects(AF_INET, other) && connects(AF_INET6, other))
        let problem = "BindIPv6Only= or ReusePort= has changed; it is made again when the app has ended"
        #expect(try stage.problems("web") == [problem])
        try SocketClient(.port(port)).exchange("two")
        // It is known after a restart, too.
        stage.daemon.crash()
        stage.daemon = try stage.daemon.successor()
        try stage.daemon.eventually("the manifest is read") { try stage.problems("web") == [problem] }
        try stage.daemon.terminate("web")
        try stage.daemon.eventually("it is bound again") { try stage.problems("web") == [""] }
        #expect(!connects(AF_INET, port) && connects(AF_INET6, port))
    }

    @Test("with ReusePort= two apps have the same port, and each connection launches one of them")
    func reusePort() throws {
        let port = try freePort()
        let settings = "ListenStream=127.0.0.1:\(port)\nReusePort=yes"
        let stage = try SocketStage([
            "a": ("", settings), "b": ("", settings), "c": ("", "ListenStream=127.0.0.1:\(port)"),
        ])
        #expect(try stage.problems("a") == [""] && stage.problems("b") == [""])
        #expect(try stage.problems("c")[0].contains("Address already in use (EADDRINUSE)"))
        // The kernel chooses by the addresses of the connection.
        try stage.daemon.eventually("both are launched") {
            try SocketClient(.port(port)).exchange("one")
            return try stage.launches("a") == 1 && stage.launches("b") == 1
        }
    }

    @Test("with FreeBind= an address is bound that the machine does not have")
    func freeBind() throws {
        let port = try freePort()
        let stage = try SocketStage([
            "free": ("", "ListenStream=198.51.100.1:\(port)\nListenStream=[2001:db8::1]:\(port)\nFreeBind=yes"),
            "web": ("", "ListenStream=198.51.100.2:\(port)"),
        ])
        #expect(try stage.problems("free") == ["", ""])
        #expect(try stage.problems("web")[0].contains("(EADDRNOTAVAIL)"))
        try stage.rewrite("web", "", "ListenStream=198.51.100.2:\(port)\nFreeBind=yes")
        #expect(try stage.problems("web") == [""])
    }
}
