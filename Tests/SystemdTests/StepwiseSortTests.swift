import Systemd
import Testing

@Suite("Sorting in steps")
struct StepwiseSortTests {
    @Test("an array is sorted in steps of at most 256 elements", arguments: [0, 1, 255, 256, 257, 1000, 10_000])
    func sorts(count: Int) {
        var random = SystemRandomNumberGenerator()
        // Some are equal.
        let elements = (0..<count).map { _ in Int.random(in: 0...count / 2, using: &random) }
        var sort = StepwiseSort(elements)
        var steps = 1
        while sort.advance() { steps += 1 }
        #expect(sort.elements == elements.sorted())
        // Each round moves every element once.
        var rounds = 1
        while 256 << (rounds - 1) < count { rounds += 1 }
        let blocks = (count + 255) / 256
        #expect(steps >= blocks * rounds || count == 0)
        #expect(steps <= (blocks + 1) * rounds)
    }
}
