import Glibc
import JSON
import LifecycleCore
import Linux
import Manifest
import Systemd
import TestKit
import Testing

@testable import Daemon

/// Main processes that the kernel tells us less of than of our own children.
@Suite("Main processes of other parents")
struct MainProcessTests {
    @Test("L17: a main process whose parent lives answers by stopping itself, too: the kernel tells its parent alone")
    func stops() throws {
        let daemon = try TestDaemon([
            "photos": TestDaemon.manifest("background=stop child", "[Lifecycle]\nBackgroundDeadlineSec=10min")
        ])
        try daemon.launch("photos")
        let pid = try daemon.pid("photos")
        #expect(try ProcFS().stat(of: pid)?.parent != daemon.process.pid)
        _ = try daemon.begin("Background", "photos", [])
        try daemon.waitUntil("photos", is: "suspended")
        #expect(try daemon.ask("Activate", "photos")["state"]?.stringValue == "active")
        #expect(try daemon.pid("photos") == pid)
    }

    @Test("an end that the event loop would not watch for is found all the same")
    func unwatched() throws {
        // A performer makes the process the subreaper of its orphans.
        try inOwnProcess {
            let root = makeTemporaryFolder("greenroom-unwatched")
            defer { removeTree(root) }
            let loop = try EventLoop()
            var signals: [Int32] = []
            let performer = try EffectPerformer.bare(in: root, loop) {
                if case .run(_, .exited(.signaled(let signal, _), _, _)) = $0 { signals.append(signal) }
            }
            let run = try performer.makeRun(RunID(1), of: "photos")
            var starting = try startProcess(SpawnRequest(executable: "/bin/sleep", arguments: ["1000"]))
            while try starting.outcome() == .pending { waitForReadable([starting.outcomeDescriptor]) }
            performer.noteMainProcess(run, starting.process)
            // EEXIST: epoll(7) watches a descriptor once.
            let other = try loop.addDescriptor(starting.process.descriptor, events: .priority) { _ in }
            performer.watchExit(run)
            #expect(run.exitSource == nil)
            try starting.process.signal(SIGKILL)
            let limit = loop.now() + .seconds(60)
            while signals.isEmpty, loop.now() < limit { try loop.runOnce(timeout: .seconds(1)) }
            #expect(signals == [SIGKILL])
            other.cancel()
        }
    }
}
