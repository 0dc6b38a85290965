import Glibc
import Posix
import TestKit
import Testing

@testable import Linux

private let hasPython = access("/usr/bin/python3", X_OK) == 0

@Suite(
    "Input that a program has sent to itself (L53)",
    .enabled(if: hasPython && geteuid() == 0, "needs python3, and root"), .timeLimit(.minutes(2)))
struct OwnInputTests {
    private static let kinds =
        ["pipe", "pair", "unix", "unix-listener", "tcp", "listener"]
        + (access("/proc/net/if_inet6", R_OK) == 0 ? ["ipv6"] : [])

    /// The end of a program that sends something to itself, reads nothing, and prints `1`. It has a TCP socket `l` that listens.
    static func script(_ kind: String) -> String {
        let sends =
            switch kind {
            case "pipe": "r, w = os.pipe(); os.write(w, b'abc')"
            case "pair": "a, b = socket.socketpair(); b.send(b'abc')"
            case "unix", "unix-listener":
                """
                u = socket.socket(socket.AF_UNIX); u.bind("\\0greenroom-own-%d" % os.getpid()); u.listen()
                c = socket.socket(socket.AF_UNIX); c.connect(u.getsockname())
                \(kind == "unix" ? "a, _ = u.accept(); c.send(b'abc')" : "")
                """
            case "tcp": "c = socket.create_connection(l.getsockname()); a, _ = l.accept(); c.send(b'abc')"
            case "ipv6":
                """
                m = socket.socket(socket.AF_INET6); m.bind(("::", 0)); m.listen()
                c = socket.create_connection(("127.0.0.1", m.getsockname()[1])); a, _ = m.accept(); c.send(b'abc')
                """
            case "beside": ""
            default: "c = socket.create_connection(l.getsockname())"
            }
        return sends + "\nprint(1, flush=True)\nsignal.pause()\n"
    }

    /// A watch over all descriptors of a program that waits without reading.
    private func makeWatch(_ subject: Subject) throws -> DescriptorWatch {
        let process = try #require(try Process.open(subject.process.pid))
        let watch = try DescriptorWatch(
            [process], onlyPeers: false, budget: DescriptorBudget(total: 10_000), closer: DescriptorCloser())
        while watch.advance() {}
        return watch
    }

    private func start(_ kind: String) throws -> (subject: Subject, port: UInt16) {
        let subject = try Subject(python: Self.script(kind))
        let port = try subject.number()
        let ready = try subject.number()
        #expect(ready == 1)
        return (subject, port)
    }

    @Test(
        "what waits when the watch is made, and has its other end in the app, is the app's own",
        arguments: kinds)
    func own(_ kind: String) throws {
        let (subject, port) = try start(kind)
        let watch = try makeWatch(subject)
        let input = try watch.input()
        #expect(input.isOwn, "\(input)")
        // What comes later is from outside.
        let client = try TCPClient(port)
        #expect(try watch.input(at: .seconds(1)).isOwn == false)
        client.shutDown()
        watch.close()
        // Its process ends with it.
        #expect(!subject.process.isOver)
    }

    @Test("a connection from outside that waits beside one of the app is from outside")
    func beside() throws {
        let (subject, port) = try start("listener")
        let client = try TCPClient(port)
        let watch = try makeWatch(subject)
        #expect(try watch.input().isOwn == false)
        client.shutDown()
        watch.close()
        // Its process ends with it.
        #expect(!subject.process.isOver)
    }

    @Test("data that waits, and was sent from outside, is from outside")
    func outside() throws {
        let subject = try Subject(python: "a, _ = l.accept(); print(1, flush=True); signal.pause()")
        let client = try TCPClient(subject.number())
        let ready = try subject.number()
        #expect(ready == 1)
        client.send("abc")
        let watch = try makeWatch(subject)
        let input = try watch.input()
        #expect(input.kind == .stream && !input.isOwn)
        watch.close()
        // Its process ends with it.
        #expect(!subject.process.isOver)
    }

    @Test("no dump is made if the app has no socket that can be the other end")
    func noOtherEnd() throws {
        let (subject, port) = try start("beside")
        let client = try TCPClient(port)
        let process = try #require(try Process.open(subject.process.pid))
        let watch = try DescriptorWatch(
            [process], onlyPeers: false, budget: DescriptorBudget(total: 10_000), closer: DescriptorCloser())
        while watch.advance() { #expect(watch.stage != .origins) }
        #expect(try watch.input().isOwn == false)
        client.shutDown()
        watch.close()
        // Its process ends with it.
        #expect(!subject.process.isOver)
    }

    @Test("without a question to the kernel it is known which sockets of an app cannot be connected to each other")
    func possibleEnds() throws {
        let local: [UInt8] = [127, 0, 0, 1]
        let outside: [UInt8] = [192, 0, 2, 7]
        func known(_ socket: InternetSocket) -> KnownSocket {
            KnownSocket(family: socket.family, identity: socket.identity)
        }
        let sockets: [UInt64: KnownSocket] = [
            1: known(try Self.socket(local, 4711, local, 80)),
            2: known(try Self.socket(local, 80, local, 4711)),
            3: known(try Self.socket(local, 80, outside, 5000)),
        ]
        let listener = known(try Self.socket(local, 80, [0, 0, 0, 0], 0))
        let other = known(try Self.socket(local, 81, [0, 0, 0, 0], 0))
        func ends(_ inodes: Set<UInt64>) -> PossibleEnds { PossibleEnds(inodes) { sockets[$0] } }
        #expect(ends([1, 2]).hasEnd(of: 1) && ends([1, 2]).hasEnd(of: 2))
        #expect(!ends([1, 3]).hasEnd(of: 1) && !ends([2, 3]).hasEnd(of: 3))
        #expect(ends([1]).hasClient(of: listener) && !ends([1]).hasClient(of: other))
        #expect(!ends([2, 3]).hasClient(of: listener) && !ends([]).hasClient(of: nil))
        // Nothing is known of the socket 9, nor of a listening socket.
        #expect(ends([3, 9]).hasEnd(of: 3) && ends([3, 9]).hasClient(of: listener) && ends([3]).hasClient(of: nil))
        #expect(ends([3, 9]).hasEnd(of: 9) && !ends([9]).hasEnd(of: 9))
        #expect(ends(Set(10...300)).hasClient(of: listener))
    }

    private static func socket(
        _ own: [UInt8], _ ownPort: UInt16, _ peer: [UInt8], _ peerPort: UInt16
    ) throws -> InternetSocket {
        var bytes = internetMessage()
        bytes[0] = own.count == 4 ? 2 : 10
        bytes.replaceSubrange(4..<6, with: nativeBytes(ownPort.bigEndian))
        bytes.replaceSubrange(6..<8, with: nativeBytes(peerPort.bigEndian))
        bytes.replaceSubrange(8..<8 + own.count, with: own)
        bytes.replaceSubrange(24..<24 + peer.count, with: peer)
        return try internetSocket(bytes)
    }

    @Test("the other end of a connection is found in any form of its address")
    func flows() throws {
        func mapped(_ address: [UInt8]) -> [UInt8] { [UInt8](repeating: 0, count: 10) + [0xff, 0xff] + address }
        let local: [UInt8] = [127, 0, 0, 1]
        let client = try Self.socket(local, 4711, local, 80)
        let server = try Self.socket(mapped(local), 80, mapped(local), 4711)
        #expect(OwnConnections([client, server]).isOwn(client) && OwnConnections([client, server]).isOwn(server))
        #expect(!OwnConnections([client]).isOwn(client))
        let other = try Self.socket([127, 0, 0, 2], 80, local, 4711)
        #expect(!OwnConnections([client, other]).isOwn(other))
    }

    @Test("of a listening socket all connections that wait must be the app's")
    func listeners() throws {
        func listener(_ waiting: UInt32) throws -> InternetSocket {
            try internetSocket(internetMessage(state: 10, port: 80, inode: 1, readQueue: waiting))
        }
        func client(_ port: UInt16) throws -> InternetSocket {
            var bytes = internetMessage(port: port, inode: UInt32(port))
            bytes.replaceSubrange(6..<8, with: nativeBytes(UInt16(80).bigEndian))
            bytes.replaceSubrange(8..<12, with: [127, 0, 0, 1])
            bytes.replaceSubrange(24..<28, with: [127, 0, 0, 1])
            return try internetSocket(bytes)
        }
        let clients = [try client(1001), try client(1002)]
        for waiting in 0...3 as ClosedRange<UInt32> {
            let one = try listener(waiting)
            #expect(OwnConnections(clients + [one]).isOwn(one) == (1...2 ~= waiting))
        }
    }
}
