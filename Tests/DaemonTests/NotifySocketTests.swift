import Glibc
import LifecycleCore
import Linux
import Posix
import Systemd
import TestKit
import Testing

@testable import Daemon

/// What a notify socket counts as messages of a second.
@Suite("The share of a notify socket")
struct NotifySocketTests {
    private final class Receiver: NotifySocketDelegate {
        var datagrams = 0
        var warnings: [String] = []
        /// What was written for the datagram with this number.
        var written: [Int: Int] = [:]
        weak var socket: NotifySocket?

        func reasonToIgnore(sender: Int32) -> String? { nil }
        func received(_ messages: [NotifyMessage], _ descriptors: inout ReceivedDescriptors, from sender: Int32) {
            datagrams += 1
            if let bytes = written[datagrams] { socket?.charge(bytes: bytes) }
        }
        func warned(_ sentence: String) { warnings.append(sentence) }
        func logWarning(_ sentence: String) {}
    }

    private final class Stage {
        let root = makeTemporaryFolder("greenroom-notify")
        let loop: EventLoop
        let receiver = Receiver()
        let socket: NotifySocket
        private let sender: SharedDescriptor

        init() throws {
            // 250 descriptors arrive at once.
            raiseDescriptorLimit()
            loop = try EventLoop()
            let logbook = Logbook(path: root + "/logbook", journal: .quiet)
            socket = try NotifySocket(
                RunID(1), in: NotifySockets(loop: loop, logbook: logbook, folder: root), owner: nil)
            let made = Glibc.socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
            sender = SharedDescriptor(Descriptor(adopting: made))
            socket.delegate = receiver
            receiver.socket = socket
            var address = sockaddr_un()
            address.sun_family = UInt16(AF_UNIX)
            withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(socket.path.utf8)) }
            let result = withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    connect(made, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
                }
            }
            try #require(result == 0)
        }

        deinit { removeTree(root) }

        /// Sends `READY=1` with a number of descriptors, which are all the socket itself.
        func send(descriptors: Int = 0) throws {
            let bytes = Array("READY=1".utf8)
            let sent = sendMessage(
                bytes, with: [Int32](repeating: sender.raw, count: descriptors), on: sender.raw,
                flags: Int32(MSG_DONTWAIT))
            try #require(sent == bytes.count)
        }

        /// Runs the loop until so many datagrams were read.
        func serve(_ count: Int) throws {
            while receiver.datagrams < count { try loop.runOnce(timeout: .seconds(30)) }
        }

        /// Waits until the closer has closed all descriptors: with many of them the socket is not read for that reason.
        func waitUntilClosed() throws {
            let pipe = try Pipe()
            socket.closer.close(try pipe.write.duplicate())
            waitForReadable([SharedDescriptor(pipe.closingWrite())])
        }
    }

    /// Whether the socket was not read because of the number of messages.
    private func isFlooded(_ stage: Stage) -> Bool {
        stage.receiver.warnings.contains { $0.contains("notify messages within 1s") }
    }

    @Test("each descriptor counts as a message: four datagrams with 250 of them are the messages of a second")
    func descriptors() throws {
        let stage = try Stage()
        for number in 1...4 {
            try stage.send(descriptors: 250)
            try stage.serve(number)
            try stage.waitUntilClosed()
        }
        try stage.send()
        // If a second is over between two of the datagrams, those before it do not count in the next one: more are sent.
        var sent = 5
        while !isFlooded(stage) {
            if stage.receiver.datagrams == sent {
                try stage.waitUntilClosed()
                try stage.send(descriptors: 250)
                sent += 1
            }
            try stage.loop.runOnce(timeout: .seconds(30))
        }
        #expect(isFlooded(stage))
        #expect(stage.receiver.datagrams == sent - 1)
        // It waits, and is not lost.
        try stage.serve(sent)
    }

    @Test("what a datagram causes above the limit counts in the next seconds: the next datagram waits for them")
    func debt() throws {
        let stage = try Stage()
        // 32 MiB count as 2,048 messages: those of this second, of the next one, and some of the third.
        stage.receiver.written[1] = 32 << 20
        let start = stage.loop.now()
        try stage.send()
        try stage.serve(1)
        try stage.send()
        try stage.serve(2)
        // Without the debt it would be read after one second.
        #expect(stage.loop.now() - start >= .seconds(2))
        #expect(isFlooded(stage))
    }
}
