import Testing

@testable import LifecycleCore

@Suite("Background budget and assertions")
struct BackgroundBudgetTests {
    private func budget(_ harness: Harness) -> BackgroundBudget? {
        harness.core.indices[id("photos")].flatMap { harness.core.apps[$0].run?.budget }
    }

    private func remaining(_ harness: Harness) -> Duration? { budget(harness)?.remaining(at: harness.now) }

    @Test("the budget is idle, counts in the background, pauses in suspension and counts on after it (L21)")
    func transitions() throws {
        let harness = Harness("photos")
        harness.launch("photos")
        #expect(budget(harness) == .idle)
        #expect(remaining(harness) == nil)
        harness.background("photos")
        let deadline = try #require(budget(harness)?.deadline)
        #expect(deadline == Deadline(kind: .backgroundTime, start: harness.now, allowed: .seconds(30)))
        harness.advance(.seconds(1))
        #expect(budget(harness) == .paused(.init(left: .seconds(29), isNoticeGiven: false)))
        harness.advance(.seconds(100))
        #expect(remaining(harness) == .seconds(29))
        harness.task("photos", "upload")
        #expect(
            budget(harness)?.deadline == Deadline(kind: .backgroundTime, start: harness.now, allowed: .seconds(29)))
        harness.advance(.seconds(10))
        #expect(remaining(harness) == .seconds(19))
        harness.activate("photos")
        #expect(budget(harness) == .idle)
    }

    @Test("the budget keeps in suspension that the expiration notice was given (L22)")
    func noticeIsKept() {
        let harness = Harness("photos")
        harness.launch("photos")
        harness.task("photos", "upload")
        harness.background("photos")
        harness.advance(.seconds(25))
        harness.endTask("photos", "upload")
        harness.advance(.seconds(1))
        #expect(budget(harness) == .paused(.init(left: .seconds(4), isNoticeGiven: true)))
    }

    @Test("a budget that ends without a task is spent until the foreground (L23)")
    func spent() {
        let harness = Harness("photos") { $0.suspendDelay = .seconds(60) }
        harness.launch("photos")
        harness.background("photos")
        harness.behave("photos") { $0.freezes = false }
        harness.advance(.seconds(30))
        #expect(budget(harness) == .spent)
        #expect(remaining(harness) == .zero)
        harness.task("photos", "upload")
        #expect(harness.reports().contains(.taskRefused(id("photos"), name: "upload")))
        // A spent budget is not paused by the suspension.
        harness.handle(.run(harness.run("photos"), .suspension(.frozen(attempt: 1, memory: mebibyte))))
        #expect(harness.state("photos") == .suspended)
        #expect(budget(harness) == .spent)
        harness.activate("photos")
        #expect(budget(harness) == .idle)
    }

    @Test("a deadline is set only while the budget counts")
    func deadlineOfOtherStates() {
        let deadline = Deadline(kind: .backgroundTime, start: .origin, allowed: .seconds(1))
        for state in [BackgroundBudget.idle, .paused(.init(left: .seconds(1), isNoticeGiven: false)), .spent] {
            var budget = state
            budget.deadline = deadline
            #expect(budget == state)
            #expect(budget.deadline == nil)
        }
        var budget = BackgroundBudget.counting(.init(deadline: deadline, isNoticeGiven: true))
        budget.deadline = nil
        #expect(budget.deadline == deadline)
        let later = Deadline(kind: .backgroundTime, start: .origin, allowed: .seconds(2))
        budget.deadline = later
        #expect(budget == .counting(.init(deadline: later, isNoticeGiven: true)))
    }

    // MARK: Assertions

    private func task(_ name: String, _ second: Int, end: Int? = nil) -> Assertion {
        Assertion(
            kind: .task(name: name), owner: .process(7), began: Instant(sinceOrigin: .seconds(second)),
            end: end.map { Instant(sinceOrigin: .seconds($0)) })
    }

    private func wake(_ reason: LaunchReason, _ second: Int) -> Wake {
        let start = Instant(sinceOrigin: .seconds(second))
        return Wake(
            reason: reason, deadline: Deadline(kind: .wake, start: start, allowed: .seconds(30)), mustComplete: false)
    }

    @Test("of several tasks with one name the oldest is removed first")
    func oldestFirst() {
        var list = AssertionList()
        list.beginWake(wake(.push, 0))
        let counts = [task("upload", 1), task("backup", 2), task("upload", 3)].map { list.beginTask($0, limit: 2) }
        // The wake does not count.
        #expect(counts == [nil, nil, 3])
        let removed = (0..<3).map { _ in list.removeTask { $0.taskName == "upload" } }
        #expect(removed == [task("upload", 1), task("upload", 3), nil])
        #expect(list.taskNames == ["backup"])
        #expect(list.hasTasks)
        // A wake is no task, so a condition that it meets does not remove it.
        let others = (0..<2).map { _ in list.removeTask { _ in true } }
        #expect(others == [task("backup", 2), nil])
        #expect(list.wakes == [wake(.push, 0)])
        #expect(!list.hasTasks && !list.isEmpty)
    }

    @Test("each wake is removed by itself, and the oldest one is among the tasks")
    func wakes() {
        var list = AssertionList()
        #expect(list.isEmpty && !list.hasWakes && list.wakes.isEmpty)
        _ = list.beginTask(task("upload", 1), limit: 10)
        list.beginWake(wake(.push, 2))
        _ = list.beginTask(task("backup", 3), limit: 10)
        list.beginWake(wake(.timer, 4))
        list.beginWake(wake(.socket, 5))
        #expect(list.all.map(\.taskName) == ["upload", nil, "backup"])
        #expect(list.wakes == [wake(.push, 2), wake(.timer, 4), wake(.socket, 5)])
        let timer = list.removeWake { $0.reason == .timer }
        #expect(timer == wake(.timer, 4))
        let push = list.removeWake { _ in true }
        #expect(push == wake(.push, 2))
        #expect(list.wakes == [wake(.socket, 5)])
        #expect(list.all.map(\.taskName) == ["upload", "backup", nil])
        let none = list.removeWake { $0.reason == .push }
        #expect(none == nil)
        // Removing all tasks keeps the wake.
        list.removeTasks()
        #expect(list.all.count == 1)
        _ = list.removeWake { _ in true }
        #expect(list.isEmpty && !list.hasWakes)
    }

    @Test("a deadline is replaced in one wake, also if another one has the same")
    func replacedDeadline() {
        var list = AssertionList()
        for _ in 0..<2 { list.beginWake(wake(.push, 1)) }
        let later = wake(.push, 9).deadline
        list.replaceWakeDeadline(wake(.push, 1).deadline, by: later)
        #expect(list.wakes == [wake(.push, 9), wake(.push, 1)])
        list.replaceWakeDeadline(wake(.push, 1).deadline, by: later)
        #expect(list.wakes == [wake(.push, 9), wake(.push, 9)])
        list.updateWakes { $0.id = 7 }
        #expect(list.wakes.map(\.id) == [7, 7])
    }

    @Test("an extension moves the end of the task that ends by itself, and of no other (L25)")
    func extensionMoves() {
        let end = Instant(sinceOrigin: .seconds(20))
        var list = AssertionList()
        var isMoved = list.moveExtension(to: end, limit: nil)
        #expect(!isMoved)
        _ = list.beginTask(task("upload", 1), limit: 10)
        isMoved = list.moveExtension(to: end, limit: nil)
        #expect(!isMoved)
        #expect(list.all == [task("upload", 1)])
        _ = list.beginTask(task(Assertion.extensionName, 2, end: 10), limit: 10)
        isMoved = list.moveExtension(to: end, limit: nil)
        #expect(isMoved)
        #expect(list.all == [task("upload", 1), task(Assertion.extensionName, 2, end: 20)])
        // An extension may also shorten the time.
        isMoved = list.moveExtension(to: Instant(sinceOrigin: .seconds(5)), limit: nil)
        #expect(isMoved)
        #expect(list.all.last == task(Assertion.extensionName, 2, end: 5))
        // The limit counts from the begin of the task.
        isMoved = list.moveExtension(to: end, limit: .seconds(10))
        #expect(isMoved)
        #expect(list.all.last == task(Assertion.extensionName, 2, end: 12))
    }

    @Test("a change of tasks does not reach the wake")
    func updateTasks() {
        var list = AssertionList()
        list.beginWake(wake(.push, 0))
        _ = list.beginTask(task("upload", 1), limit: 10)
        list.updateTasks { $0.isDoubtful = true }
        #expect(list.all.map(\.isDoubtful) == [false, true])
    }
}
