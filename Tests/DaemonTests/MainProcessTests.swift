import Glibc
import JSON
import LifecycleCore
import Linux
import Manifest
import Systemd
import TestKit
import Testing

@testable import Daemon

/// The kernel reports stops and exit statuses to the parent of a process only.
@Suite("Main processes that are not children of the daemon")
struct MainProcessTests {
    @Test("an app whose main process is not a child of the daemon answers by stopping itself (L17)")
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

    @Test("the end of a main process is detected even if the event loop cannot watch it")
    func unwatched() throws {
        // The context makes the process the subreaper of its orphans.
        try inOwnProcess {
            let root = makeTemporaryFolder("greenroom-unwatched")
            defer { removeTree(root) }
            let loop = try EventLoop()
            var signals: [Int32] = []
            let list = EventList {
                if case .run(_, .process(.exited(.signaled(let signal, _), _, _, _))) = $0 { signals.append(signal) }
            }
            let context = try DaemonContext.bare(in: root, loop, list)
            let run = try context.makeRun(RunID(1), of: "photos")
            let process = try startSleep()
            run.setMainProcess(process)
            // EEXIST: epoll(7) watches a descriptor once.
            try context.ends.watch(process, of: RunID(2))
            run.watchExit()
            #expect(!context.ends.isWatching(run.id))
            try process.signal(SIGKILL)
            let limit = loop.now() + .seconds(60)
            while signals.isEmpty, loop.now() < limit { try loop.runOnce(timeout: .seconds(1)) }
            #expect(signals == [SIGKILL])
        }
    }

    @Test("a stop that the daemon itself has caused is no answer of a recovered app (L17)")
    func ownStop() throws {
        try inOwnProcess {
            for isFrozen in [true, false] {
                let root = makeTemporaryFolder("greenroom-adopted")
                defer { removeTree(root) }
                let loop = try EventLoop()
                let list = EventList()
                let context = try DaemonContext.bare(in: root, loop, list)
                let run = try context.makeRun(RunID(1), of: "photos")
                let process = try startSleep()
                run.setMainProcess(process)
                try process.signal(SIGSTOP)
                while try ProcFS().stat(of: process.pid)?.isStopped != true { poll(nil, 0, 1) }
                run.restoreFrozen(isFrozen ? 1 : nil, mayDiffer: false)
                run.watchRecoveredProcess()
                #expect(list.events.contains(.run(RunID(1), .process(.executed))))
                #expect(list.events.contains(.run(RunID(1), .process(.stopped))) == !isFrozen)
                try process.signal(SIGKILL)
                waitForReadable([process.descriptor])
                _ = try process.reap()
            }
        }
    }
}
