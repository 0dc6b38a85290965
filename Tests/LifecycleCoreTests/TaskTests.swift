import LifecycleCore
import Testing

@Suite("Background tasks")
struct TaskTests {
    @Test("L23: tasks that end while their app is looked into, at the end of the budget, save it")
    func endsJustInTime() {
        let house = House("photos")
        house.behave("photos") { $0.isInspected = false }
        house.launch("photos")
        house.task("photos", "upload")
        house.task("photos", "sync")
        house.background("photos")
        let run = house.run("photos")
        house.advance(.seconds(30))
        #expect(house.effects.contains(.inspect(run)))
        house.endTask("photos", "upload")
        house.endTask("photos", "sync")
        house.happens(.inspected(run, Inspection(traced: false, cpu: .zero, memory: 0)))
        #expect(house.killed() == [])
        // The budget is used up: suspended at once, and no task is taken any more.
        house.advance(.zero)
        #expect(house.state("photos") == .suspended)
        house.task("photos", "more")
        #expect(house.reports().last == .taskRefused(id("photos"), name: "more"))
    }

    @Test("L23: one task of two that ends at the end of the budget does not save the app")
    func oneOfTwoEnds() throws {
        let house = House("photos")
        house.behave("photos") { $0.isInspected = false }
        house.launch("photos")
        house.task("photos", "upload")
        house.task("photos", "sync")
        house.background("photos")
        house.advance(.seconds(30))
        house.endTask("photos", "upload")
        house.happens(.inspected(house.run("photos"), Inspection(traced: false, cpu: .seconds(3), memory: 0)))
        let receipt = try house.receipt("photos")
        #expect(receipt.code == 0x2182_bad2)
        #expect(receipt.explanation.contains("“sync”"))
        #expect(!receipt.explanation.contains("upload"))
    }
}
