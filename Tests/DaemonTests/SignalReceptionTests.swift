import Glibc
import JSON
import Linux
import Posix
import Systemd
import TestKit
import Testing

/// Which programs the daemon sends the signals of notices to.
@Suite("Signals that an app receives or misses")
struct SignalReceptionTests {
    /// It has no handler: it blocks the signal and waits for it.
    private static let waiter = """
        import os, signal, socket, sys

        def notify(text):
            path = os.environ["NOTIFY_SOCKET"]
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as messages:
                messages.sendto(text.encode(), "\\0" + path[1:] if path.startswith("@") else path)

        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
        notify("READY=1")
        signal.sigwait([signal.SIGUSR1])
        with open(sys.argv[1], "w") as file:
            file.write("saved")
        notify("X_GREENROOM_BACKGROUND=1")
        while True:
            signal.pause()
        """

    @Test("an app that receives its notices with sigwait enters the background and is suspended (L3)")
    func waits() throws {
        let root = try TestDaemon.makeFolder()
        try replaceFile(at: root + "/waiter.py", with: Array(Self.waiter.utf8))
        let text = """
            [App]
            Type=notify
            ExecStart=/usr/bin/python3 \(root)/waiter.py \(root)/saved
            [Signals]
            EnterBackground=SIGUSR1

            """
        let daemon = try TestDaemon(["photos": text], root: root)
        try daemon.launch("photos")
        _ = try daemon.begin("Background", "photos", [])
        try daemon.waitUntil("photos", is: "suspended")
        #expect(TestDaemon.text(of: root + "/saved") == "saved")
        #expect(try daemon.status("photos")["lastWarning"] == nil)
    }

    @Test("an app that does not catch the signal of a notice is not ended by it, and its status says so (L3)")
    func misses() throws {
        let text = "[App]\nExecStart=/bin/sleep infinity\n[Signals]\nEnterBackground=SIGUSR1\n"
        let daemon = try TestDaemon(["photos": text])
        try daemon.launch("photos")
        let pid = try daemon.pid("photos")
        let sentence = "EnterBackground=SIGUSR1 was not sent: the main process does not catch it"
        for _ in 1...2 {
            _ = try daemon.begin("Background", "photos", [])
            try daemon.waitUntil("photos", is: "suspended")
            #expect(try daemon.status("photos")["lastWarning"]?.stringValue == sentence)
            try daemon.launch("photos")
        }
        #expect(try daemon.pid("photos") == pid)
        let log = TestDaemon.text(of: daemon.root + "/log")
        #expect(log.split(separator: "\n").count { $0.contains(sentence) } == 1)
    }
}
