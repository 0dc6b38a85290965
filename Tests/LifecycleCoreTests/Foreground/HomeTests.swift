import LifecycleCore
import Testing

@Suite("The home app")
struct HomeTests {
    /// The home app, in the state that it has while another app is in the foreground.
    private func harness(_ apps: String..., limit: Int = 1, state: AppState = .suspended) -> Harness {
        let harness = Harness()
        harness.configure { $0.foregroundLimit = limit }
        harness.register("home") {
            $0.role = .home
            $0.suspendDelay = .seconds(1)
        }
        for app in apps { harness.register(app) }
        switch state {
        case .notRunning: break
        case .background: harness.launch("home", .background)
        default: harness.suspend("home")
        }
        if let first = apps.first { harness.launch(first) }
        #expect(harness.state("home") == state)
        return harness
    }

    @Test(
        "the home app becomes active when the app in the foreground is gone (L49)",
        arguments: ["exit", "crash", "terminate", "remove", "background", "jetsam", "cannot be executed"],
        [AppState.notRunning, .suspended, .background])
    func frontEnds(how: String, state: AppState) {
        let harness = harness("photos", state: state)
        switch how {
        case "exit": harness.exit("photos")
        case "crash": harness.crash("photos")
        case "terminate": harness.terminate("photos")
        case "remove": harness.remove("photos")
        case "background": harness.background("photos")
        case "jetsam":
            harness.configure { $0.budget = 1 }
            while harness.state("photos") == .active { harness.advance(.milliseconds(10)) }
            harness.configure { $0.budget = nil }
        default:
            harness.exit("photos")
            #expect(harness.state("home") == .active)
            harness.behave("photos") {
                $0.launching = .fails(SpawnProblem(sentence: "cannot execute /srv/photos", exitStatus: 203))
            }
            harness.launch("photos")
        }
        harness.advance(.seconds(1))
        #expect(harness.state("home") == .active)
    }

    @Test("with LaunchAtStart= the home app is launched into the foreground, unless another app is (L49)")
    func atStart() {
        for (others, state) in [([], AppState.active), (["photos"], .background)] as [([String], AppState)] {
            let harness = Harness()
            harness.register("home") {
                $0.role = .home
                $0.launchAtStart = .foreground
            }
            for other in others { harness.register(other) { $0.launchAtStart = .foreground } }
            harness.handle(.configuration(.started))
            #expect(harness.state("home") == state)
        }
    }

    @Test("without LaunchAtStart= the home app is launched when an app has left the foreground (L49)")
    func notAtStart() {
        let harness = harness("photos", state: .notRunning)
        harness.handle(.configuration(.started))
        #expect(harness.launches("home").isEmpty)
        harness.crash("photos")
        #expect(harness.state("home") == .active)
    }

    @Test("after its own end the home app comes back into the foreground, with the delays of L11 (L11, L49)")
    func ownEnd() {
        let harness = harness("photos")
        harness.terminate("photos")
        harness.advance(.seconds(60))
        harness.exit("home")
        #expect(harness.state("home") == .active)
        for wait in [10, 20, 40] {
            harness.exit("home")
            harness.advance(.seconds(wait) - .milliseconds(1))
            #expect(harness.state("home") == .notRunning)
            harness.advance(.milliseconds(1))
            #expect(harness.state("home") == .active)
        }
    }

    @Test("after jetsam the home app comes back into the foreground when there is space (L11, L49)")
    func jetsam() {
        let harness = harness("photos")
        harness.behave("home") { $0.memory = 60 * mebibyte }
        harness.terminate("photos")
        harness.behave("photos") { $0.memory = 80 * mebibyte }
        harness.advance(.seconds(10))
        harness.launch("photos")
        harness.advance(.seconds(2))
        harness.configure { $0.budget = 100 * mebibyte }
        // `photos` runs, and has a second to answer the warning.
        harness.advance(.seconds(1))
        #expect(harness.receipts.filter { $0.namespace == .jetsam }.map(\.app.name) == ["home"])
        harness.background("photos")
        harness.advance(.seconds(60))
        #expect(harness.view("home").memoryAwaited == 60 * mebibyte)
        harness.terminate("photos")
        harness.advance(.seconds(1))
        #expect(harness.state("home") == .active)
    }

    @Test(
        "a home app that a user sends away stays away until another app was in the foreground (L49)",
        arguments: [Request.terminate, .remove, .background])
    func sentAway(request: Request) {
        let harness = harness("photos")
        harness.terminate("photos")
        #expect(harness.state("home") == .active)
        harness.request("home", request)
        harness.advance(.seconds(600))
        #expect(harness.state("home") == (request == .background ? .suspended : .notRunning))
        harness.launch("photos")
        harness.terminate("photos")
        #expect(harness.state("home") == .active)
    }

    @Test("with ForegroundLimit=2 the home app comes when no app is in the foreground any more (L12, L49)")
    func twoInForeground() {
        let harness = harness("photos", "mail", limit: 2)
        harness.launch("mail")
        harness.terminate("photos")
        #expect(harness.state("home") == .suspended)
        harness.terminate("mail")
        #expect(harness.state("home") == .active)
    }

    @Test("the home app comes when no app of its seat is in the foreground (L12, L49)")
    func otherSeat() {
        let harness = harness("photos", "movie")
        harness.register("movie") { $0.seat = "seat1" }
        harness.launch("movie")
        harness.terminate("photos")
        #expect(harness.state("home") == .active)
        #expect(harness.state("movie") == .active)
    }

    @Test("while the screen is locked the home app waits (L15, L49)")
    func locked() {
        let harness = harness("photos")
        harness.handle(.absence(.locked))
        harness.terminate("photos")
        harness.advance(.seconds(10))
        #expect(harness.state("home") == .suspended)
        harness.handle(.absence(.unlocked))
        #expect(harness.state("home") == .active)
    }

    @Test("of several home apps the first by its ID counts, also after its manifest is removed (L49)")
    func several() {
        let harness = harness("photos")
        harness.register("alpha") { $0.role = .home }
        harness.terminate("photos")
        #expect(harness.state("alpha") == .active)
        harness.unregister("alpha")
        harness.exit("alpha")
        #expect(harness.state("home") == .active)
        #expect(harness.state("alpha") == nil)
    }

    @Test("an app that is relaunched does not displace the home app (L49)")
    func relaunch() {
        let harness = harness("photos")
        harness.register("photos") { $0.relaunch = .always }
        harness.advance(.seconds(60))
        harness.crash("photos")
        #expect(harness.state("home") == .active)
        #expect(harness.launches("photos").map(\.state) == [.foreground, .background])
    }
}
