import Glibc
import JSON
import Linux
import Posix
import Systemd
import TestKit
import Testing

@Suite("Connections of many workers that end together")
struct EndSpacingTests {
    /// A server that accepts connections and says nothing.
    private final class Database {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        private(set) var port: UInt16 = 0

        init() throws {
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
            var size = socklen_t(MemoryLayout<sockaddr_in>.size)
            let isOpen = withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(listener, $0, size) == 0 && listen(listener, 64) == 0 && getsockname(listener, $0, &size) == 0
                }
            }
            port = UInt16(bigEndian: address.sin_port)
            try #require(isOpen)
        }

        deinit { close(listener) }

        func accept() throws -> SharedDescriptor {
            SharedDescriptor(Descriptor(adopting: try checkErrno(Glibc.accept(listener, nil, nil), "accept")))
        }
    }

    @Test("the end of a database wakes each of 30 workers that are connected to it, one after the other (L50)")
    func spread() throws {
        let root = try TestDaemon.makeFolder()
        let database = try Database()
        let names = (1...30).map { "worker\($0)" }
        let manifests = names.map { name in
            let script =
                "exec 3<>/dev/tcp/127.0.0.1/\(database.port); read -r -u 3 line; echo $$line >\(root)/\(name); exec sleep 1000"
            return (name, TrafficStage.manifest("/bin/bash -c '\(script)'"))
        }
        let daemon = try TestDaemon(Dictionary(uniqueKeysWithValues: manifests), root: root)
        var connections: [SharedDescriptor] = []
        for name in names {
            try daemon.launch(name, background: true)
            connections.append(try database.accept())
        }
        for name in names { try daemon.waitUntilWatched(name) }
        let ended = EventLoop.now()
        connections = []
        for name in names {
            try daemon.eventually("\(name) has seen the end") { TestDaemon.text(of: "\(root)/\(name)") == "\n" }
        }
        // One each 33 ms. Without an order all would be awake at once.
        #expect(EventLoop.now() - ended >= .milliseconds(29 * 33))
        for name in names {
            let status = try daemon.status(name)
            #expect(status["lastInput"]?["kind"]?.stringValue == "stream", "\(status)")
            #expect(try daemon.receipts(name).isEmpty)
        }
        withExtendedLifetime(connections) {}
    }
}
