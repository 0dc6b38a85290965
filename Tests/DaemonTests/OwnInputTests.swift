import Glibc
import JSON
import Linux
import Posix
import TestKit
import Testing

@Suite("Input that an app has sent to itself", .enabled(if: TrafficStage.hasPython, "needs python3"))
struct OwnInputTests {
    @Test(
        "a worker that wakes itself through its own pipe has a limited time for it; clients wake it at any time (L53)")
    func pipe() throws {
        // It never reads the pipe, whose other end its child has, so the pipe wakes it after each suspension.
        let program = """
            import signal
            reader, writer = os.pipe()
            os.write(writer, b'x')
            if os.fork() == 0:
                os.close(reader)
                signal.pause()
            os.close(writer)
            run()
            """
        let stage = try TrafficStage(["server": program], "BackgroundTimePerHourSec=2s")
        let port = try stage.launch()
        func waits() throws -> JSONValue? { try stage.daemon.status("server")["deferredWake"] }
        try stage.daemon.eventually("its wake waits") { try waits() != nil }
        let status = try stage.daemon.status("server")
        #expect(status["state"]?.stringValue == "suspended")
        #expect(status["lastInput"]?["own"]?.boolValue == true, "\(status)")
        #expect(status["deferredWake"]?["reason"]?.stringValue == "backgroundTimeUsedUp")
        #expect(status["deferredWake"]?["input"]?["kind"]?.stringValue == "pipe")
        #expect((status["deferredWake"]?["remainingSeconds"]?.numberValue ?? 0) > 0)
        #expect((status["backgroundTimeLastHourSeconds"]?.numberValue ?? 0) >= 2)
        let client = try TrafficClient(port: port)
        try client.exchange([1, 2, 3])
        try stage.daemon.eventually("its wake waits again") { try waits() != nil }
        try client.exchange([4])
        #expect(try stage.daemon.status("server")["lastInput"]?["own"] == nil)
    }

    @Test(
        "messages that the processes of an app have sent to each other do not wake it; one from outside does (L50)",
        arguments: ["SOCK_SEQPACKET", "SOCK_DGRAM"])
    func ownMessages(type: String) throws {
        let root = try TestDaemon.makeFolder()
        // A browser's processes: each has an end of a pair of sockets that tell who sends.
        let program = """
            import os, signal, socket, sys
            inbox = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            inbox.bind(sys.argv[1])
            own, other = socket.socketpair(socket.AF_UNIX, socket.\(type))
            own.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            other.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            other.send(b'from the parent')
            if os.fork() == 0:
                other.send(b'from the child')
                own.close()
                open(sys.argv[2], 'w').close()
                signal.pause()
            # What it leaves would wake it again after each suspension.
            while True:
                inbox.recv(100)

            """
        try replaceFile(at: root + "/app.py", with: Array(program.utf8))
        let command = "\(TrafficStage.python) \(root)/app.py \(root)/inbox \(root)/ready"
        let daemon = try TestDaemon(
            ["app": "[App]\nExecStart=\(command)\n[Lifecycle]\nSuspendDelaySec=3s"], root: root)
        try daemon.launch("app")
        try daemon.eventually("the messages are there") { access(root + "/ready", F_OK) == 0 }
        try daemon.ask("Background", "app")
        try daemon.waitUntil("app", is: "suspended")
        try daemon.eventually("its sockets are watched") {
            try daemon.status("app")["watch"]?["watched"]?.integerValue ?? 0 >= 1
        }
        let client = try SocketClient(.path(root + "/inbox"), SOCK_DGRAM)
        try client.send("hello")
        try daemon.eventually("the message from outside wakes it") {
            try daemon.status("app")["trafficWakes"]?.integerValue ?? 0 >= 1
        }
        let status = try daemon.status("app")
        #expect(status["trafficWakes"]?.integerValue == 1, "\(status)")
        #expect(status["lastInput"]?["own"] == nil && status["lastInput"]?["bytes"]?.integerValue == 5, "\(status)")
    }
}
