import Glibc
import Posix
import Testing

@testable import Linux

@Suite("Listening sockets of threads", .timeLimit(.minutes(2)))
struct ThreadListenerTests {
    private static let listen = "s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1] + '.s'); s.listen()"
    private static let imports = "import ctypes, socket, threading, time\nlibc = ctypes.CDLL(None)\n"

    @Test(
        "a listener of a thread with its own descriptor table, and of a process whose first thread has ended, is found",
        .enabled(if: access("/usr/bin/python3", X_OK) == 0))
    func listeners() throws {
        let scratch = try Scratch()
        // CLONE_FILES, and exit(2), which ends one thread.
        let own =
            "ready = threading.Event()\ndef run():\n libc.unshare(0x400)\n \(Self.listen); ready.set(); time.sleep(1000)\n"
            + "threading.Thread(target=run, daemon=True).start(); ready.wait()"
        let ended =
            "def run():\n \(Self.listen); time.sleep(1000)\nthreading.Thread(target=run, daemon=True).start()\n"
            + "while not os.path.exists(sys.argv[1] + '.s'): time.sleep(0.01)\nprint(os.getpid(), flush=True)\n"
            + "libc.syscall(60 if os.uname().machine == 'x86_64' else 93, 0)"
        let none = "threading.Thread(target=lambda: time.sleep(1000), daemon=True).start()"
        for (index, (script, expected)) in [(own, true), (ended, true), (none, false)].enumerated() {
            let holder = try Holder(scratch.path + "/\(index)", Self.imports + script)
            if index == 1 {
                while try ProcFS().stat(of: holder.pid)?.isZombie == false { usleep(1000) }
            }
            // Between bind(2) and listen(2) of the thread there is a moment.
            while expected, try ProcFS().listens(holder.pid) == false { usleep(1000) }
            #expect(try ProcFS().listens(holder.pid) == expected, "\(script)")
        }
    }
}
