import LifecycleCore
import Testing

@Suite("Ends")
struct EndingTests {
    static let noProgram = SpawnProblem(sentence: "/nowhere: no such file or directory", exitStatus: 203)

    @Test("a launch that fails is a receipt with systemd's exit status, and no process is killed for it")
    func spawnFails() throws {
        let house = House("photos")
        house.behave("photos") { $0.launching = .fails(Self.noProgram) }
        let request = house.launch("photos")
        let receipt = try house.receipt("photos")
        #expect(receipt.namespace == .exit)
        #expect(receipt.exit == .exited(203))
        #expect(receipt.pid == nil)
        #expect(receipt.state == .launching)
        #expect(receipt.explanation == "could not be launched: /nowhere: no such file or directory")
        #expect(house.answers[request] == .ended(receipt))
        #expect(house.killed() == [])
        #expect(house.state("photos") == .notRunning)
    }

    @Test("a launch that fails after the process came to be names its pid")
    func spawnFailsLate() throws {
        let house = House("photos")
        house.behave("photos") { $0.launching = .spawns }
        house.launch("photos")
        house.happens(.spawnFailed(house.run("photos"), Self.noProgram))
        #expect(try house.receipt("photos").pid == 101)
        #expect(house.state("photos") == .notRunning)
    }

    @Test("a launch that fails while the app is ended says so, and sends no further kill")
    func spawnFailsWhileEnding() throws {
        let house = House("photos")
        house.behave("photos") {
            $0.launching = .hangs; $0.dies = false; $0.terminating = .ignores
        }
        house.launch("photos")
        house.remove("photos")
        house.happens(.spawnFailed(house.run("photos"), Self.noProgram))
        #expect(house.state("photos") == .notRunning)
        #expect(house.receipts.last?.explanation == "could not be launched: /nowhere: no such file or directory")

        house.launch("photos")
        let run = house.run("photos")
        house.happens(.stopping(run))
        #expect(house.state("photos") == .terminating)
        let mark = house.mark
        house.happens(.spawnFailed(run, Self.noProgram))
        #expect(house.killed(since: mark) == [])
        #expect(house.state("photos") == .notRunning)
        #expect(house.receipts.last?.explanation == "could not be launched: /nowhere: no such file or directory")
    }

    @Test("a failed launch ends the run whatever the app was taken to be")
    func spawnFailsAfterReady() {
        let house = House("photos")
        house.behave("photos") { $0.launching = .hangs }
        house.launch("photos")
        let run = house.run("photos")
        house.happens(.ready(run))
        #expect(house.state("photos") == .active)
        house.happens(.spawnFailed(run, Self.noProgram))
        #expect(house.state("photos") == .notRunning)
        #expect(house.receipts.count == 1)
    }

    @Test(
        "L46: an app that can't be told to terminate is killed at once, and not blamed for it",
        arguments: [
            "request", "shutdown", "jetsam",
        ])
    func cannotBeTold(why: String) throws {
        let house = House("photos") { $0.terminateDeadline = nil }
        house.behave("photos") { $0.terminating = .cannotBeTold }
        if why == "request" {
            house.launch("photos")
            let request = house.terminate("photos")
            #expect(house.answers[request] == .ended(try house.receipt("photos")))
        } else if why == "shutdown" {
            house.behave("photos") { $0.launching = .hangs }
            house.launch("photos")
            house.happens(.shutdownRequested(immediately: false))
            #expect(house.core.isFinished)
        } else {
            house.behave("photos") { $0.launching = .hangs }
            house.kernel.others = 13 * gibibyte
            house.launch("photos", .background)
            for _ in 0...3 {
                house.happens(.pressureStalled(.warning))
                house.delay(.seconds(2))
            }
        }
        let receipt = try house.receipt("photos")
        #expect(receipt.namespace == (why == "jetsam" ? .jetsam : .exit))
        #expect(receipt.deadline == nil)
        #expect(house.state("photos") == .notRunning)
    }

    @Test("an app that announced its own end is not killed, as it need not be told")
    func ownEndIsNotTold() {
        let house = House("photos")
        house.launch("photos")
        let run = house.run("photos")
        house.happens(.stopping(run))
        house.happens(.told(run, .willTerminate, delivered: false, cpu: .zero))
        #expect(house.killed() == [])
        #expect(house.told("photos").last == .didBecomeActive)
    }
}
