import LifecycleCore
import Testing

@Suite("Memory: pressure")
struct PressureTests {
    /// A trigger at once and one every 2 s, as PSI gives them.
    private func stall(_ house: House, _ level: MemoryLevel, for time: Duration) {
        let end = house.now + time
        while house.now < end {
            house.happens(.pressureStalled(level))
            house.advance(min(.seconds(2), end - house.now))
        }
    }

    @Test("L40: an app that is being frozen is taken without a word, also where there is time")
    func takenWhileFreezing() throws {
        let house = House("photos") { $0.suspendDelay = .milliseconds(4500) }
        house.kernel.others = 13 * gibibyte
        house.behave("photos") { $0.freezes = false }
        house.launch("photos", .background)
        stall(house, .warning, for: .seconds(5))
        #expect(house.effects.contains(.freeze(house.run("photos"), attempt: 1)))
        house.happens(.pressureStalled(.warning))
        #expect(house.told("photos") == [.didEnterBackground, .memoryWarning(.warning)])
        #expect(try house.receipt("photos").namespace == .jetsam)
    }

    @Test("L40: at level warning an app that runs in the background is told, and has its five seconds")
    func endsByItself() throws {
        let house = House("photos") { $0.suspendDelay = .seconds(60) }
        house.kernel.others = 13 * gibibyte
        house.launch("photos", .background)
        stall(house, .warning, for: .seconds(6))
        #expect(house.killed() == [])
        #expect(house.told("photos").last == .memoryWarning(.warning))
        house.happens(.pressureStalled(.warning))
        #expect(house.told("photos").last == .willTerminate)
        let receipt = try house.receipt("photos")
        #expect(receipt.namespace == .jetsam)
        #expect(receipt.exit == .exited(0))
        #expect(receipt.explanation.hasPrefix("terminated to give memory back"))
    }
}
