import Glibc
import JSON
import Linux
import Posix
import TestKit
import Testing

@Suite(
    "Locks of TCP sockets that are held for ever",
    .enabled(if: TrafficStage.hasPython && geteuid() == 0, "needs python3, and root for userfaultfd(2)"))
struct LockedSocketTests {
    private static let warning = "what the app has to do cannot be measured completely"

    /// Another app can have one, too, where the thread that asks had no processor for 2s.
    private func warnings(_ stage: TrafficStage, _ app: String) -> Int {
        TestDaemon.text(of: stage.daemon.root + "/log").split(separator: "\n")
            .count { $0.contains(" \(app):") && $0.contains(Self.warning) }
    }

    @Test("another process that holds the lock of its socket delays no launch, no look and no suspension (L51)")
    func otherProcess() throws {
        let holder = try LockHolder()
        let stage = try TrafficStage(["server": "run()", "second": "run()"])
        let client = try TrafficClient(port: try stage.launch())
        try client.exchange([1])
        try stage.suspended()
        let second = try TrafficClient(port: try stage.launch("second"))
        try second.exchange([2])
        try client.exchange([3])
        try stage.suspended("second")
        try stage.suspended()
        try second.exchange([4])
        #expect(warnings(stage, "server") + warnings(stage, "second") == 0)
        withExtendedLifetime(holder) {}
    }

    @Test("an app that holds the lock of its own socket stays awake, with a reason; others are unaffected (L51)")
    func own() throws {
        let stage = try TrafficStage(
            [
                "holder": socketLocker + """
                    import signal, time
                    def end(*_):
                        release()
                        count = 0
                        while count < 4096: count += len(accepted.recv(65536))
                        # Otherwise it would be a request without an answer.
                        accepted.send(b'x')
                        connection.recv(9)
                    signal.signal(signal.SIGUSR1, end)
                    connection = socket.create_connection(listener.getsockname())
                    accepted, _ = listener.accept()
                    hold(connection)
                    publish(sys.argv[1], '1')
                    # Only beside ticks it counts what goes over connections.
                    while True: time.sleep(0.2)
                    """,
                "server": "run()",
            ], "RequestSec=1s")
        _ = try stage.launch("holder")
        let client = try TrafficClient(port: try stage.launch())
        // While the question about the other app is open, and after it has no answer.
        try client.exchange([1])
        try stage.suspended()
        try stage.daemon.eventually("the journal has the reason") { warnings(stage, "holder") > 0 }
        try stage.daemon.eventually("status has the reason") {
            let reasons = try stage.daemon.status("holder")["awake"]?.arrayValue ?? []
            // The thread that holds it waits for a page, in sendto(2).
            return reasons.contains { ["unwatchedCall", "cpu"].contains($0["reason"]?.stringValue) }
        }
        try client.exchange([2])
        try stage.suspended()
        #expect(try stage.daemon.state("holder") == "background")
        // The thread gets its answer, and the app has nothing to do any more.
        kill(try stage.daemon.pid("holder"), SIGUSR1)
        try stage.suspended("holder")
        #expect(warnings(stage, "holder") == 1)
        try stage.daemon.terminate("holder", remove: true)
        #expect(try stage.daemon.state("holder") == "notRunning")
    }

    @Test("an app that holds the lock of its own socket can be ended, and launched again (L51)")
    func ended() throws {
        let stage = try TrafficStage([
            "holder": socketLocker + """
                connection = socket.create_connection(listener.getsockname())
                accepted, _ = listener.accept()
                hold(connection)
                publish(sys.argv[1], '1')
                import time
                while True: time.sleep(0.2)
                """
        ])
        for round in 1...2 {
            _ = try stage.launch("holder")
            try stage.daemon.eventually("the journal has the reason, once for each run") {
                warnings(stage, "holder") == round
            }
            try stage.daemon.terminate("holder", remove: true)
            try stage.daemon.waitUntil("holder", is: "notRunning")
        }
        #expect(stage.daemon.stop() == .exited(0))
    }
}

/// A process that is no app and holds the lock of a TCP socket until it is dropped.
private final class LockHolder {
    private let process: Linux.Process

    private static let script =
        socketLocker + """
            import signal, socket
            listener = socket.create_server(("127.0.0.1", 0))
            connection = socket.create_connection(listener.getsockname())
            hold(connection)
            print(1, flush=True)
            signal.pause()
            """

    init() throws {
        let pipe = try Pipe()
        try pipe.read.setNonBlocking(false)
        try pipe.write.setNonBlocking(false)
        var request = SpawnRequest(
            executable: TrafficStage.python, arguments: ["-c", Self.script], environment: ["PATH=/usr/bin:/bin"])
        request.standardOutput = SharedDescriptor(try pipe.write.duplicate())
        var starting = try startProcess(request)
        request.standardOutput = nil
        process = starting.process
        let output = pipe.closingWrite()
        while try starting.outcome() == .pending { waitForReadable([starting.outcomeDescriptor]) }
        var byte: UInt8 = 0
        // The end of the file: it may not hold one.
        guard read(output.raw, &byte, 1) == 1 else { throw TestFailure("no lock is held") }
    }

    deinit {
        _ = try? process.signal(SIGKILL)
        waitForReadable([process.descriptor])
        _ = try? process.reap()
    }
}
