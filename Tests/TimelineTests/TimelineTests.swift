import LifecycleCore
import Testing

@testable import Timeline

@Suite("The timeline of a recording")
struct TimelineTests {
    @Test("an app's states are bars without gaps, each with a sentence")
    func states() throws {
        var story = Story()
        let timeline = Story.timeline([story.recorder.file()])
        #expect(timeline.problems.isEmpty && timeline.lanes.map(\.app) == ["feed", "stuck", "web"])
        let web = try #require(timeline.lanes.last)
        #expect(
            web.states.map(\.label) == [
                "launching", "inactive", "active", "inactive", "background", "suspended", "background", "suspended",
            ])
        for (bar, next) in zip(web.states, web.states.dropFirst()) { #expect(bar.end == next.start) }
        #expect(web.states.allSatisfy { $0.sentence.hasPrefix("web: ") && $0.sentence.contains("; for ") })
        #expect(web.memory.contains { $0.value == 64 << 20 })
        // Of an app that has ended there is nothing behind its end.
        let stuck = try #require(timeline.lanes.first { $0.app == "stuck" })
        #expect(stuck.states.map(\.label) == ["launching", "terminating"])
        #expect(stuck.memory.last?.value == 0)
    }

    @Test("deadlines and tasks are bars that end as they ended")
    func deadlines() throws {
        var story = Story()
        let timeline = Story.timeline([story.recorder.file()])
        let web = try #require(timeline.lanes.first { $0.app == "web" })
        #expect(web.deadlines.first.map { "\($0.label) \($0.outcome)" } == "launch met")
        #expect(web.deadlines.contains { $0.label == "background" && $0.outcome == "met" })
        #expect(web.tasks.map(\.label) == ["save"])
        let task = try #require(web.tasks.first)
        #expect(task.end - task.start >= .milliseconds(200) && task.sentence.contains("ended after"))
        let stuck = try #require(timeline.lanes.first { $0.app == "stuck" })
        #expect(stuck.deadlines.map { "\($0.label) \($0.outcome)" } == ["launch missed"])
        #expect(
            stuck.marks.contains { $0.kind == "ended" && $0.sentence.contains("exceeded its launch deadline (5s)") })
    }

    @Test("an arrow leads from a request, from input, from an app and from a shortage of memory to what it caused")
    func arrows() throws {
        var story = Story()
        story.runOutOfMemory()
        let timeline = Story.timeline([story.recorder.file()])
        func arrows(_ from: Timeline.Origin) -> [Timeline.Arrow] { timeline.arrows.filter { $0.from == from } }
        #expect(arrows(.requests).map(\.to) == ["web", "feed", "stuck"])
        let wake = try #require(arrows(.input).first)
        #expect(wake.to == "web" && wake.sentence.contains("192.0.2.7:50123") && wake.fromTime <= wake.toTime)
        #expect(arrows(.app("feed")).map(\.to) == ["web"])
        #expect(arrows(.app("web")).map(\.to) == ["feed"])
        #expect(arrows(.memory).first?.to == "web")
        #expect(timeline.levels.map(\.label) == ["normal", "critical", "normal"])
        #expect(timeline.available.map(\.value) == [10 << 20, 900 << 20])
    }

    @Test("an arrow leads from a timer of a worker to its wake (L51)")
    func timers() throws {
        var recorder = Recorder(start: .seconds(100))
        let feed = try #require(AppID("feed"))
        var worker = AppPolicy()
        (worker.role, worker.readiness, worker.wakesOnTraffic) = (.worker, .notified, true)
        recorder.send(.configuration(.configured(ManagerPolicy())))
        recorder.send(.configuration(.registered(feed, worker, launches: 0)))
        recorder.send(.configuration(.started))
        let due = recorder.now + .seconds(60)
        recorder.work = RunWork(cpu: .zero)
        recorder.work?.due = due
        recorder.send(.requested(RequestID(1), feed, .launch(.background, reason: .user, url: nil)))
        recorder.send(.run(try #require(recorder.core.run(of: feed)), .transition(.ready)))
        recorder.wait(.seconds(59))
        #expect(recorder.core.state(of: feed) == .suspended)
        recorder.work?.due = nil
        recorder.wait(.seconds(30))
        let timeline = Story.timeline([recorder.file()])
        let arrows = timeline.arrows.filter { $0.from == .input }
        #expect(arrows.map(\.sentence) == ["feed: a timer of its own was due, or a pulse (PulseSec=)"])
        let arrow = try #require(arrows.first)
        #expect(arrow.to == "feed" && arrow.fromTime == arrow.toTime && arrow.toTime >= due)
        let states = try #require(timeline.lanes.first).states
        #expect(states.map(\.label) == ["launching", "background", "suspended", "background", "suspended"])
        #expect(states[3].start == arrow.toTime)
    }

    @Test("a change of a scene's state is a mark of its app, with the scene and the state (L34)")
    func scenes() throws {
        var story = Story()
        story.recorder.send(.requested(RequestID(11), story.web, .activate))
        let run = try #require(story.recorder.core.run(of: story.web))
        let scene = try #require(SceneID("doc-1"))
        story.recorder.send(.run(run, .connection(.attached([.scenes]))))
        story.recorder.send(.run(run, .scene(.began(scene, .window))))
        story.recorder.wait(.seconds(1))
        story.recorder.send(.run(run, .scene(.ended(scene))))
        let timeline = Story.timeline([story.recorder.file()])
        let web = try #require(timeline.lanes.first { $0.app == "web" })
        let marks = web.marks.filter { $0.kind == "sceneChanged" }
        #expect(
            marks.map(\.sentence) == [
                "web: scene 'doc-1' is background", "web: scene 'main' is background",
                "web: scene 'doc-1' is foregroundActive", "web: scene 'doc-1' is unattached",
                "web: scene 'main' is foregroundActive",
            ])
        #expect(marks.map(\.at) == marks.map(\.at).sorted())
    }

    @Test("a span over several files is the same as in one, whether they overlap or not, or one is there twice")
    func files() {
        var story = Story()
        var both = story
        both.runOutOfMemory()
        let whole = both.recorder.file()
        let first = story.recorder.file()
        story.runOutOfMemory()
        let second = story.recorder.file()
        let parts = Story.timeline([first, second])
        #expect(parts == Story.timeline([whole]))
        // Replaced while it was read: it is kept, and read as the newest, too.
        #expect(parts == Story.timeline([first, second, second]))
        // What was recorded while the snapshot was made is at the end of the first one, too.
        #expect(parts == Story.timeline([whole, second]))
    }

    @Test("only apps and times that are asked for are shown")
    func selection() throws {
        var story = Story()
        let all = Story.timeline([story.recorder.file()])
        let web = try #require(all.lanes.first { $0.app == "web" })
        let since = try #require(web.states.last).start
        let part = all.selection(since: since, apps: { $0 == "web" })
        #expect(part.lanes.map(\.app) == ["web"] && part.start == since)
        #expect(part.lanes[0].states.last == web.states.last)
        #expect(part.lanes[0].states.allSatisfy { $0.start >= since } && part.arrows.allSatisfy { $0.to == "web" })
    }
}
