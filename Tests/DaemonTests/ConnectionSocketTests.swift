import Glibc
import LifecycleCore
import Linux
import Posix
import Systemd
import TestKit
import Testing

@testable import Daemon

@Suite("The socket of an app's connections")
struct ConnectionSocketTests {
    @Test("there is a server once a process has connected, also after the socket was removed and made again")
    func firstConnection() throws {
        try inOwnProcess {
            let root = makeTemporaryFolder("greenroom-first")
            defer { removeTree(root) }
            let events = EventList()
            let loop = try EventLoop()
            let context = try DaemonContext.bare(in: root, loop, events)
            let run = try context.makeRun(RunID(1), of: "photos")
            let connections = run.connections
            try connections.listen()
            #expect(connections.server == nil)
            #expect(run.descriptorsForReexec.map(\.name).contains(RecoveredDescriptors.connectionSocket(run.id)))

            let first = try UnixSocket.connect(to: connections.path)
            while connections.server == nil { try loop.runOnce(timeout: .seconds(30)) }
            try removeFile(at: connections.path)
            try connections.listenAgain()
            #expect(connections.server == nil)
            let second = try UnixSocket.connect(to: connections.path)
            while connections.server == nil { try loop.runOnce(timeout: .seconds(30)) }
            run.remove()
            #expect(!exists(at: connections.path) && connections.socket == nil)
            _ = (first.raw, second.raw)
        }
    }

    @Test("until the daemon serves it, a connection waits in the socket")
    func beforeServing() throws {
        try inOwnProcess {
            let root = makeTemporaryFolder("greenroom-waits")
            defer { removeTree(root) }
            let events = EventList()
            let loop = try EventLoop()
            let context = try DaemonContext.bare(in: root, loop, events)
            let run = try context.makeRun(RunID(1), of: "photos")
            try run.connections.listen(isServing: false)
            let client = try UnixSocket.connect(to: run.connections.path)
            #expect(try !loop.runOnce(timeout: .zero))
            #expect(run.connections.server == nil)
            run.connections.beginServing()
            while run.connections.server == nil { try loop.runOnce(timeout: .seconds(30)) }
            run.remove()
            _ = client.raw
        }
    }
}
