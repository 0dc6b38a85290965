import LifecycleCore
import Linux
import Testing

@testable import Daemon

@Suite("Callers and their processes")
struct RequesterTests {
    @Test("a process is younger than a connection if it started after it, however long the machine slept (L53)")
    func younger() {
        // The machine has run for 100s and slept for 900s when the connection begins, and sleeps again afterwards. By
        // CLOCK_MONOTONIC the connection begins at 100s.
        let connected = Duration.seconds(1000)
        func isYounger(_ seconds: UInt64) -> Bool {
            Requester.isYounger(start: seconds * 100, ticksPerSecond: 100, than: connected)
        }
        #expect(!isYounger(50) && !isYounger(500) && !isYounger(1000))
        #expect(isYounger(1001) && isYounger(5000))
        // A process that starts and connects within a tick.
        let within = connected + .microseconds(9_999)
        #expect(!Requester.isYounger(start: 100_000, ticksPerSecond: 100, than: within))
    }
}
