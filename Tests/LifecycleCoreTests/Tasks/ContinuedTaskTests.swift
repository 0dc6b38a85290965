import Testing

@testable import LifecycleCore

@Suite("Continued tasks")
struct ContinuedTaskTests {
    private func progress(_ harness: Harness, _ app: String, _ task: String, _ done: UInt64, _ title: String = "") {
        harness.handle(
            .run(
                harness.run(app),
                .task(.progressed(name: task, TaskProgress(done: done, total: 100, title: title)!))))
    }

    /// An app in the background with a task that the user began, and which has advanced once.
    private func exporting(_ apps: String..., policy: (inout AppPolicy) -> Void = { _ in }) -> Harness {
        let harness = Harness()
        for app in apps {
            harness.register(app, policy: policy)
            harness.launch(app)
            harness.task(app, "export")
            progress(harness, app, "export", 1, "Exporting video")
            harness.background(app)
            harness.advance(.seconds(1))
        }
        return harness
    }

    @Test("a task that began in the foreground runs in the background for as long as it advances (L21)")
    func advances() throws {
        let harness = exporting("photos")
        for done in 2...20 {
            harness.advance(.seconds(28))
            progress(harness, "photos", "export", UInt64(done))
        }
        #expect(harness.state("photos") == .background)
        #expect(!harness.notices("photos").contains(.tasksExpiring))
        let task = try #require(harness.view("photos").tasks.first)
        #expect(task.progress == TaskProgress(done: 20, total: 100, title: "Exporting video"))
        #expect(task.isContinued && !task.isExpiring)
        // Until it stalls, and then the time of the notice.
        #expect(task.remaining == .seconds(35))
        #expect(harness.view("photos").backgroundTimeRemaining == .seconds(35))
        #expect(harness.view("photos").deadline == nil)
        // The user asked for it (L53).
        #expect(harness.view("photos").unrequestedTime == .zero)
        harness.endTask("photos", "export")
        harness.advance(.zero)
        #expect(harness.state("photos") == .suspended)
        #expect(harness.receipts.isEmpty)
    }

    @Test(
        "a continued task that makes no progress for TaskProgressSec= expires, and is killed if it stays open (L21, L23)"
    )
    func stalls() throws {
        let harness = exporting("photos") { $0.taskProgressTime = .seconds(40) }
        progress(harness, "photos", "export", 2)
        // What does not grow is no progress, and a title alone is none.
        harness.advance(.seconds(20))
        progress(harness, "photos", "export", 2, "Still exporting")
        progress(harness, "photos", "export", 1)
        harness.advance(.milliseconds(19_999))
        #expect(!harness.notices("photos").contains(.tasksExpiring))
        harness.advance(.milliseconds(1))
        #expect(harness.reports().contains(.taskExpires(id("photos"), name: "export", .stalled)))
        #expect(harness.notices("photos").last == .tasksExpiring)
        #expect(harness.view("photos").tasks.first?.isExpiring == true)
        // Progress comes too late now.
        progress(harness, "photos", "export", 3)
        harness.advance(.milliseconds(4999))
        #expect(harness.killed() == [])
        harness.advance(.milliseconds(1))
        let receipt = try harness.receipt("photos")
        #expect(receipt.code == 0x2182_bad2)
        #expect(receipt.explanation.contains("'export'"))
    }

    @Test("a task that stalls while there is background time left expires with the others (L21)")
    func stallsEarly() {
        let harness = exporting("photos") { $0.taskProgressTime = .seconds(10) }
        harness.advance(.seconds(23))
        #expect(harness.reports().contains(.taskExpires(id("photos"), name: "export", .stalled)))
        #expect(!harness.notices("photos").contains(.tasksExpiring))
        harness.advance(.seconds(1))
        #expect(harness.notices("photos").last == .tasksExpiring)
        harness.advance(.seconds(5))
        #expect(harness.killed() == ["photos"])
    }

    @Test(
        "a task that began in the background, has no title, or belongs to an app with TaskProgressSec=0 is not continued (L21)",
        arguments: ["begun in the background", "no title", "TaskProgressSec=0"])
    func isNotContinued(reason: String) {
        let harness = Harness("photos") { if reason == "TaskProgressSec=0" { $0.taskProgressTime = .zero } }
        harness.launch("photos", reason == "begun in the background" ? .background : .foreground)
        harness.task("photos", "export")
        if reason != "begun in the background" { harness.background("photos") }
        for done in 1...29 {
            progress(harness, "photos", "export", UInt64(done), reason == "no title" ? "" : "Exporting")
            harness.advance(.seconds(1))
        }
        #expect(harness.view("photos").tasks.first?.progress?.done == 29)
        #expect(harness.notices("photos").last == .tasksExpiring)
        harness.advance(.seconds(1))
        #expect(harness.killed() == ["photos"])
    }

    @Test("the other tasks of the app have its background time, and a continued one continues after them (L21)")
    func otherTasks() throws {
        let harness = exporting("photos")
        harness.task("photos", "sync")
        harness.advance(.seconds(15))
        progress(harness, "photos", "export", 2)
        harness.advance(.seconds(9))
        #expect(harness.reports().contains(.tasksExpiring(id("photos"), names: ["sync"])))
        #expect(harness.view("photos").tasks.map(\.isExpiring) == [false, true])
        harness.endTask("photos", "sync")
        harness.advance(.seconds(15))
        #expect(harness.state("photos") == .background)
        // There is no background time left for another one.
        harness.task("photos", "more")
        #expect(harness.reports().last == .taskRefused(id("photos"), name: "more"))

        let leaking = exporting("photos")
        leaking.task("photos", "sync")
        leaking.advance(.seconds(15))
        progress(leaking, "photos", "export", 2)
        leaking.advance(.seconds(14))
        let receipt = try leaking.receipt("photos")
        #expect(receipt.explanation.contains("'sync'") && !receipt.explanation.contains("export"))
    }

    @Test(
        "the time without progress begins with the stay in the background, which may continue a task that had stalled (L21)"
    )
    func nextStay() {
        let harness = exporting("photos")
        harness.advance(.seconds(29))
        #expect(harness.notices("photos").last == .tasksExpiring)
        harness.activate("photos")
        harness.advance(.seconds(500))
        harness.background("photos")
        #expect(harness.view("photos").tasks.first?.isContinued == true)
        harness.advance(.seconds(29))
        progress(harness, "photos", "export", 2)
        harness.advance(.seconds(29))
        #expect(harness.state("photos") == .background)
        #expect(harness.killed() == [])
    }

    @Test("of more than ContinuedTasks= tasks the one without progress for longest expires first (L21)")
    func limit() {
        let harness = Harness("a", "b", "c")
        harness.configure {
            $0.foregroundLimit = 3
            $0.continuedTasks = 2
        }
        for app in ["a", "b", "c"] {
            harness.launch(app)
            harness.task(app, "export")
            progress(harness, app, "export", 1, "Exporting")
        }
        harness.background("a")
        harness.background("b")
        harness.advance(.seconds(10))
        progress(harness, "a", "export", 2)
        #expect(!harness.reports().contains { if case .taskExpires = $0 { true } else { false } })
        harness.background("c")
        #expect(harness.reports().contains(.taskExpires(id("b"), name: "export", .limit)))
        #expect(["a", "b", "c"].map { harness.view($0).tasks.first?.isContinued } == [true, false, true])
        // It has the rest of the background time.
        harness.advance(.seconds(20))
        #expect(harness.killed() == ["b"])
        #expect(harness.core.continuedTaskCount == 2)
    }

    @Test("while memory is critical one task continues (L21)")
    func pressure() {
        let harness = exporting("a", "b", "c")
        // What jetsam takes.
        harness.register("asleep")
        harness.suspend("asleep")
        harness.advance(.seconds(10))
        for app in ["a", "c", "b"] {
            progress(harness, app, "export", 50)
            harness.advance(.seconds(1))
        }
        harness.simulate(.warning)
        #expect(harness.core.continuedTaskCount == 3)
        harness.simulate(.critical)
        let expired = harness.reports().compactMap { report -> String? in
            if case .taskExpires(let app, _, .limit) = report { app.name } else { nil }
        }
        #expect(expired == ["a", "c"])
        #expect(harness.core.continuedTaskCount == 1)
    }

    @Test("a user cancels a task: it has the time of the notice at least, and its end says so (L21)")
    func cancel() throws {
        let harness = exporting("photos")
        harness.advance(.seconds(20))
        progress(harness, "photos", "export", 2)
        harness.advance(.seconds(20))
        let mark = harness.mark
        let request = harness.request("photos", .cancelTask(name: "export"))
        #expect(harness.answers[request] == .done(.background))
        #expect(harness.notices("photos", since: mark) == [.tasksExpiring])
        #expect(harness.view("photos").tasks.first?.isCancelled == true)
        // Once.
        harness.request("photos", .cancelTask(name: "export"))
        #expect(harness.notices("photos", since: mark) == [.tasksExpiring])
        progress(harness, "photos", "export", 3)
        harness.advance(.milliseconds(4999))
        #expect(harness.killed() == [])
        harness.endTask("photos", "export")
        #expect(harness.reports().contains(.taskEnded(id("photos"), name: "export", isCancelled: true)))
        harness.advance(.milliseconds(1))
        #expect(harness.state("photos") == .suspended)

        let other = exporting("photos")
        other.advance(.seconds(20))
        progress(other, "photos", "export", 2)
        other.advance(.seconds(20))
        other.request("photos", .cancelTask(name: "export"))
        other.advance(.seconds(5))
        #expect(try other.receipt("photos").code == 0x2182_bad2)
    }

    @Test("a cancelled task in the foreground is notified and has no deadline; one that is not open is refused (L21)")
    func cancelInForeground() {
        let harness = Harness("photos")
        let early = harness.request("photos", .cancelTask(name: "export"))
        #expect(harness.answers[early] == .refused(.notRunning))
        harness.launch("photos")
        let unknown = harness.request("photos", .cancelTask(name: "export"))
        #expect(harness.answers[unknown] == .refused(.noTask("export")))
        harness.task("photos", "export")
        progress(harness, "photos", "export", 1, "Exporting")
        harness.request("photos", .cancelTask(name: "export"))
        #expect(harness.notices("photos").last == .tasksExpiring)
        harness.advance(.seconds(100))
        #expect(harness.state("photos") == .active)
        // It is no continued task any more.
        harness.background("photos")
        harness.advance(.seconds(30))
        #expect(harness.killed() == ["photos"])
    }

    @Test(
        "while a mode keeps the app awake no task expires, and the time without progress begins at its end (L21, L28)")
    func mode() {
        let harness = exporting("photos") { $0.backgroundModes = .audio }
        harness.handle(.run(harness.run("photos"), .mode(.began(.audio))))
        harness.advance(.seconds(500))
        harness.handle(.run(harness.run("photos"), .mode(.ended(.audio))))
        harness.advance(.seconds(29))
        #expect(!harness.notices("photos").contains(.tasksExpiring))
        progress(harness, "photos", "export", 2)
        harness.advance(.seconds(29))
        #expect(harness.state("photos") == .background)
    }

    @Test("the time of continued tasks is not counted as unrequested, and they outlast the end of that time (L53)")
    func unrequestedTime() {
        let harness = exporting("photos") { $0.backgroundTimePerHour = .seconds(5) }
        for done in 2...5 {
            harness.advance(.seconds(20))
            progress(harness, "photos", "export", UInt64(done))
        }
        #expect(harness.view("photos").unrequestedTime == .zero)
        // Other tasks use it up, and those of the user continue.
        harness.endTask("photos", "export")
        harness.activate("photos")
        harness.background("photos")
        harness.task("photos", "sync")
        harness.advance(.seconds(8))
        harness.endTask("photos", "sync")
        harness.activate("photos")
        for task in ["export", "sync"] { harness.task("photos", task) }
        progress(harness, "photos", "export", 1, "Exporting")
        harness.background("photos")
        #expect(harness.view("photos").tasks.map(\.name) == ["export"])
        harness.advance(.seconds(29))
        #expect(harness.state("photos") == .background)
    }

    @Test(
        "observers are notified of the progress of a task ten times in a second at most, and of an unknown one with a warning"
    )
    func reports() {
        let harness = exporting("photos")
        let mark = harness.mark
        for done in 2...41 {
            progress(harness, "photos", "export", UInt64(done))
            harness.advance(.milliseconds(50))
        }
        let reported = harness.reports(since: mark).filter { if case .taskProgressed = $0 { true } else { false } }
        #expect(reported.count == 20)
        #expect(harness.view("photos").tasks.first?.progress?.done == 41)
        let last = harness.mark
        progress(harness, "photos", "import", 1)
        #expect(harness.effects(since: last) == [.run(harness.run("photos"), .warn(.progressNotOpen(name: "import")))])
    }

    @Test("an app has at most 16 continued tasks (L21)")
    func tooMany() {
        let harness = Harness("photos")
        harness.configure { $0.continuedTasks = nil }
        harness.launch("photos")
        for number in 0..<20 {
            harness.task("photos", "\(number)")
            progress(harness, "photos", "\(number)", 1, "Exporting")
        }
        harness.background("photos")
        #expect(harness.view("photos").tasks.map(\.isContinued) == (0..<20).map { $0 < 16 })
        harness.advance(.seconds(25))
        #expect(harness.reports().last == .tasksExpiring(id("photos"), names: (16..<20).map { "\($0)" }))
    }

    @Test("the next daemon knows the progress, and that the app was not to blame for the time without it")
    func recovery() throws {
        let harness = exporting("photos")
        harness.advance(.seconds(20))
        let recovered = LifecycleCore(recovering: try SavedCore(reading: harness.core.saved.bytes))
        #expect(recovered == harness.core)
        harness.delay(.seconds(60))
        harness.handle(.recovered)
        harness.handle(.run(harness.run("photos"), .process(.reattached(messagesKept: false))))
        harness.advance(.seconds(29))
        #expect(harness.view("photos").tasks.first?.isContinued == true)
        progress(harness, "photos", "export", 2)
        harness.advance(.seconds(29))
        #expect(!harness.notices("photos").contains(.tasksExpiring))
        // A daemon that did not run may not have read what the app has sent.
        harness.delay(.seconds(60))
        harness.handle(.deadlineReached)
        #expect(!harness.notices("photos").contains(.tasksExpiring))
    }

    @Test("numbers above 2^53, more than all, and a title that is long or has control characters are no progress")
    func bounds() {
        let largest: UInt64 = 1 << 53
        #expect(TaskProgress(done: largest, total: largest, title: String(repeating: "a", count: 128)) != nil)
        #expect(TaskProgress(done: 7, total: 0) != nil)
        #expect(TaskProgress(done: largest + 1, total: 0) == nil)
        #expect(TaskProgress(done: 1, total: largest + 1) == nil)
        #expect(TaskProgress(done: 2, total: 1) == nil)
        #expect(TaskProgress(done: 0, total: 1, title: String(repeating: "ä", count: 65)) == nil)
        #expect(TaskProgress(done: 0, total: 1, title: "a\u{9b}b") == nil)
    }
}
