import LifecycleCore
import Testing

@Suite("Launch")
struct LaunchTests {
    @Test("L3: a foreground launch is told in order: exec, ready, didBecomeActive")
    func foregroundOrder() {
        let house = House("photos")
        let request = house.launch("photos")
        #expect(house.told("photos") == [.didBecomeActive])
        #expect(house.changes("photos") == ["launching: launched", "inactive: ready", "active: ready"])
        #expect(house.answers[request] == .done(.active))
    }
}
