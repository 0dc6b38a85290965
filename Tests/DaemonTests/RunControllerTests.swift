import Glibc
import LifecycleCore
import Linux
import Systemd
import TestKit
import Testing

@testable import Daemon

@Suite("The end of a run")
struct RunControllerTests {
    @Test("a run whose group is empty when its main process ends is reported as empty once, and removed once (L47)")
    func emptiedOnce() throws {
        // The context makes the process the subreaper of its orphans.
        try inOwnProcess {
            let root = makeTemporaryFolder("greenroom-emptied")
            defer { removeTree(root) }
            let loop = try EventLoop()
            var context: DaemonContext?
            // Like the core, kills the remaining processes when the main process has ended.
            let list = EventList {
                if case .run(let run, .process(.exited)) = $0 { context?.runs[run]?.kill() }
            }
            let bare = try DaemonContext.bare(in: root, loop, list)
            context = bare
            let run = try bare.makeRun(RunID(1), of: "photos")
            let process = try startSleep()
            run.setMainProcess(process)
            run.watchExit()
            try process.signal(SIGKILL)
            let isEmptied = { list.events.contains(.run(RunID(1), .process(.emptied))) }
            let limit = loop.now() + .seconds(60)
            while !isEmptied(), loop.now() < limit { try loop.runOnce(timeout: .seconds(1)) }
            // Calls that are still queued in the loop do not affect a later run with the same socket and record.
            let successor = try bare.makeRun(RunID(1), of: "photos")
            while try loop.runOnce(timeout: .zero) {}
            #expect(list.events.count { $0 == .run(RunID(1), .process(.emptied)) } == 1)
            #expect(bare.runs[RunID(1)] === successor)
            withExtendedLifetime(run) {}
        }
    }
}
