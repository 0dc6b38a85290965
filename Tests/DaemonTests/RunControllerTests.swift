import Glibc
import LifecycleCore
import Linux
import Manifest
import Systemd
import TestKit
import Testing

@testable import Daemon

@Suite("The end of a run")
struct RunControllerTests {
    @Test("a run whose group is empty when its main process ends is reported as empty once, and removed once (L47)")
    func emptiedOnce() throws {
        try inOwnProcess {
            let root = makeTemporaryFolder("greenroom-emptied")
            defer { removeTree(root) }
            let loop = try EventLoop()
            var events: [Event] = []
            var answer: (Event) -> Void = { _ in }
            let performer = try EffectPerformer.bare(in: root, loop) {
                events.append($0)
                answer($0)
            }
            // As the core does: what is left of a run whose main process ended is killed.
            answer = { [unowned performer] in
                if case .run(let run, .exited) = $0 { performer.perform(.kill(run)) }
            }
            let run = try performer.makeRun(RunID(1), of: "photos")
            var starting = try startProcess(SpawnRequest(executable: "/bin/sleep", arguments: ["1000"]))
            while try starting.outcome() == .pending { waitForReadable([starting.outcomeDescriptor]) }
            performer.noteMainProcess(run, starting.process)
            performer.watchExit(run)
            try starting.process.signal(SIGKILL)
            let limit = loop.now() + .seconds(60)
            while !events.contains(.run(RunID(1), .emptied)), loop.now() < limit {
                try loop.runOnce(timeout: .seconds(1))
            }
            while try loop.runOnce(timeout: .milliseconds(300)) {}
            #expect(events.count { $0 == .run(RunID(1), .emptied) } == 1)
        }
    }
}
