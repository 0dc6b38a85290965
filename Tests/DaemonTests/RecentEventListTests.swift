import Control
import Systemd
import Testing

@testable import Daemon

@Suite("Events for clients that connect again")
struct RecentEventListTests {
    private func add(_ list: RecentEventList, _ count: Int) -> [UInt64] {
        (0..<count).map { _ in
            var event = LifecycleEvent(.stateChanged, app: "photos")
            list.add(&event)
            return event.serial ?? 0
        }
    }

    @Test("the events after a number are those that were sent since, oldest first")
    func since() throws {
        let list = RecentEventList(loop: try EventLoop(), isReexecuted: true)
        #expect(list.events(after: 0).events.isEmpty && list.events(after: 0).isComplete)
        let serials = add(list, 4)
        #expect(serials == serials.sorted() && Set(serials).count == 4)
        let answer = list.events(after: serials[1])
        #expect(answer.events.compactMap(\.serial) == Array(serials[2...]))
        #expect(answer.serial == serials[3] && answer.isComplete)
    }

    @Test("numbers increase over programs")
    func programs() throws {
        let loop = try EventLoop()
        let before = add(RecentEventList(loop: loop, isReexecuted: false), 3)
        let next = RecentEventList(loop: loop, isReexecuted: true)
        let after = add(next, 1)
        #expect(after[0] > before[2])
        #expect(next.events(after: before[2]).events.compactMap(\.serial) == after)
        #expect(next.events(after: before[2]).isComplete)
        // A program that was killed may have had more to say.
        let restarted = RecentEventList(loop: loop, isReexecuted: false)
        #expect(!restarted.events(after: after[0]).isComplete)
        #expect(restarted.events(after: add(restarted, 1)[0]).isComplete)
    }

    @Test("an event that no client got is missing for one that connects later")
    func skipped() throws {
        let list = RecentEventList(loop: try EventLoop(), isReexecuted: true)
        let known = add(list, RecentEventList.mostEvents)
        list.skip()
        #expect(!list.events(after: known.last ?? 0).isComplete)
    }

    @Test("a bounded number is kept, and the answer says that there were more")
    func bound() throws {
        let list = RecentEventList(loop: try EventLoop(), isReexecuted: true)
        let serials = add(list, RecentEventList.mostEvents + 1)
        let answer = list.events(after: 0)
        #expect(answer.events.count == RecentEventList.mostEvents && !answer.isComplete)
        #expect(answer.serial == serials.last)
        #expect(list.events(after: answer.serial).isComplete)
    }
}
