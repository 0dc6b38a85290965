import LifecycleCore
import Testing
import Timeline

@Suite("A replay with another order of jetsam")
struct ReplayTests {
    @Test("the app that was used longest ago would have died instead of the largest (L38)")
    func lru() throws {
        var story = Story()
        story.wakeAndSuspend()
        story.runOutOfMemory()
        let file = story.recorder.file()
        func decisions(_ order: ManagerPolicy.JetsamOrder?) -> [JetsamReplay.Decision] {
            var replay = JetsamReplay(order: order)
            _ = Story.play([file]) { replay.take($0) }
            return replay.decisions
        }
        let lru = try #require(decisions(.lru).first)
        #expect(lru.recorded.first?.app == story.web && lru.other.first?.app == story.feed)
        #expect(lru.recorded.first?.memory == 64 << 20)
        let same = decisions(.largest)
        #expect(!same.isEmpty && same.allSatisfy { $0.recorded == $0.other })
        #expect(decisions(nil).allSatisfy { $0.other.isEmpty && !$0.recorded.isEmpty })
    }
}

extension Story {
    /// The largest app is the one that ran last.
    mutating func wakeAndSuspend() {
        wake(web)
        recorder.wait(.seconds(5))
    }
}
