import Control
import Glibc
import JSON
import Linux
import Posix
import Systemd
import TestKit
import Testing

@Suite("Held sockets under load", .serialized)
struct SocketLoadTests {
    @Test("connections to 300 workers that do not run are all answered", .timeLimit(.minutes(5)))
    func burst() throws {
        let names = (0..<300).map { "worker\($0)" }
        var apps: [String: (commands: String, settings: String)] = [:]
        for name in names { apps[name] = ("", "ListenStream=ROOT/sockets/\(name)") }
        let stage = try SocketStage(apps)
        var clients: [SocketClient] = []
        for name in names {
            let client = try SocketClient(.path(stage.path("sockets/\(name)")))
            try client.send(name)
            clients.append(client)
        }
        for (name, client) in zip(names, clients) { #expect(try client.receive() == name) }
        // The connection that was open has not read the signals of so many launches.
        let bus = try BusConnection(path: stage.daemon.runtime + "/bus")
        // An app may answer a client before the daemon has counted its launch.
        try stage.daemon.eventually("each app was launched once") {
            let list = try bus.call(
                path: ControlNames.managerPath, interface: ControlNames.managerInterface, member: "List")
            let launches = JSONValue(list[0]).arrayValue?.map { $0["launches"]?.integerValue ?? 0 }
            return launches?.count == 300 && launches?.allSatisfy { $0 == 1 } ?? false
        }
    }

    @Test("while one app has a flood of clients that it does not accept, others are launched and answered")
    func flood() throws {
        let port = try freePort()
        let stage = try SocketStage([
            "flooded": ("hold ROOT/go", "ListenStream=127.0.0.1:\(port)\nBacklog=16"),
            "failing": ("exit 1", "ListenStream=ROOT/failing\nConnectionWaitSec=1s"),
            "web": ("", "ListenStream=ROOT/web"),
        ])
        // Beyond the backlog a connection is not established at once: these do not wait for it.
        var flood: [Int32] = []
        defer { for number in flood { close(number) } }
        for _ in 0..<200 {
            let number = socket(
                AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = port.bigEndian
            address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
            withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    _ = connect(number, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
            flood.append(number)
        }
        let failing = try (0..<50).map { _ in try SocketClient(.path(stage.path("failing"))) }
        for round in 0..<5 {
            try SocketClient(.path(stage.path("web"))).exchange("\(round)")
            try stage.daemon.terminate("web")
        }
        for client in failing { #expect(try client.receive() ?? "" == "") }
        #expect(try stage.launches("flooded") == 1)
    }

    @Test("a client that says nothing keeps no worker awake, and another client wakes it")
    func silent() throws {
        let stage = try SocketStage(["web": ("", "ListenStream=ROOT/web")])
        let silent = try SocketClient(.path(stage.path("web")))
        for text in ["one", "two"] {
            try stage.daemon.waitUntil("web", is: "suspended")
            try SocketClient(.path(stage.path("web"))).exchange(text)
        }
        try stage.daemon.waitUntil("web", is: "suspended")
        try silent.exchange("at last")
        #expect(try stage.launches("web") == 1)
    }

    @Test(
        "a client that says nothing launches its app once; that is unloaded with the connection, and serves the next client"
    )
    func silentBeforeLaunch() throws {
        let stage = try SocketStage(["web": ("", "ListenStream=ROOT/web\n[Lifecycle]\nUnloadAfterSec=5s")])
        let silent = try SocketClient(.path(stage.path("web")))
        // It is suspended for 5s only.
        try stage.daemon.wait("web", "stateChanged", state: "suspended")
        try stage.daemon.waitUntil("web", is: "notRunning")
        #expect(try silent.receive() ?? "" == "")
        let ended = try stage.daemon.status("web")
        #expect(ended["lastReceipt"]?["endedForMemory"]?.boolValue == true)
        let saved = try #require(ended["savedBytes"]?.integerValue)
        #expect(saved > 0 && saved == ended["lastReceipt"]?["memoryBytes"]?.integerValue)
        #expect(try stage.launches("web") == 1)
        try SocketClient(.path(stage.path("web"))).exchange("one")
        #expect(try stage.launches("web") == 2)
        #expect(try stage.daemon.status("web")["savedBytes"] == nil)
    }

    @Test("a worker that dies at each start is launched at intervals, however many clients connect (L11)")
    func dying() throws {
        let stage = try SocketStage(["web": ("exit 1", "ListenStream=ROOT/web\nConnectionWaitSec=1s")])
        for _ in 0..<3 {
            let clients = try (0..<40).map { _ in try SocketClient(.path(stage.path("web"))) }
            for client in clients { #expect(try client.receive() ?? "" == "") }
        }
        // 10s, 20s and 40s lie between launches.
        #expect(try (1...8).contains(stage.launches("web")))
        try stage.rewrite("web", "", "ListenStream=ROOT/web")
        try stage.daemon.launch("web", background: true)
        try SocketClient(.path(stage.path("web"))).exchange("one")
    }

    @Test("an app gets 64 sockets and its stored descriptors, and a manifest has no more")
    func many() throws {
        let lines = (0..<64).map { "ListenStream=ROOT/sockets/\($0)" }.joined(separator: "\n")
        let stage = try SocketStage(["web": ("", lines)])
        #expect(try stage.problems("web") == Array(repeating: "", count: 64))
        for number in [0, 63] { try SocketClient(.path(stage.path("sockets/\(number)"))).exchange("\(number)") }
        #expect(try stage.launches("web") == 1)
    }
}
