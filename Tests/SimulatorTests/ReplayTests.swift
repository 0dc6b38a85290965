import LifecycleSimulator
import Testing

@Suite("Replay")
struct ReplayTests {
    @Test("the same seed gives the same trace, byte by byte")
    func sameTrace() {
        var first: [String] = []
        var second: [String] = []
        let options = SimulationOptions(seed: 11, events: 800)
        let one = simulate(options) { first.append($0) }
        let other = simulate(options) { second.append($0) }
        #expect(first == second)
        #expect(one.digest == other.digest)
        #expect(first.count > 800)
    }
}
