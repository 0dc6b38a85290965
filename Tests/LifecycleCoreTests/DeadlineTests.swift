import LifecycleCore
import Testing

@Suite("Deadlines")
struct DeadlineTests {
    @Test("a deadline that was met is not reported as cancelled when the app is then terminated")
    func metOnce() {
        let house = House("photos") { $0.readiness = .notified }
        house.behave("photos") { $0.launching = .executes }
        house.launch("photos")
        house.terminate("photos")
        house.happens(.ready(house.run("photos")))
        let launch = house.reports().filter { report in
            switch report {
            case .deadlineMet(_, .launch, _), .deadlineCancelled(_, .launch), .deadlineMissed(_, .launch): true
            default: false
            }
        }
        #expect(launch == [.deadlineMet(id("photos"), .launch, used: .zero)])

        house.behave("photos") { $0 = .init(entering: .isSilent, thaws: false) }
        house.launch("photos")
        house.background("photos")
        house.terminate("photos")
        house.happens(.backgroundEntered(house.run("photos")))

        house.behave("photos") { $0 = .init(thaws: false) }
        house.suspend("photos")
        house.activate("photos")
        house.terminate("photos")
        house.happens(.thawed(house.run("photos"), attempt: 1))
        #expect(!house.reports().contains(.deadlineCancelled(id("photos"), .background)))
        #expect(!house.reports().contains(.deadlineCancelled(id("photos"), .resume)))
        #expect(house.state("photos") == .notRunning)
    }
}
