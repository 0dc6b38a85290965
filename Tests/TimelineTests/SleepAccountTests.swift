import LifecycleCore
import Testing
import Timeline

@Suite("How long apps slept in a recording")
struct SleepAccountTests {
    private func account(_ files: [[UInt8]]) -> SleepAccount {
        var account = SleepAccount()
        _ = Story.play(files) { account.take($0) }
        account.finish()
        return account
    }

    @Test("time asleep, sleeps, wakes by their cause, and idle memory are counted for each app")
    func counted() throws {
        var story = Story()
        let web = try #require(account([story.recorder.file()]).apps[story.web])
        // It was suspended, woken by a connection, and suspended again.
        #expect(web.sleeps == 2 && web.wakes == ["stream": 1] && web.ends == 0)
        #expect(web.asleep > .seconds(10) && web.asleep < web.running)
        let expected = Double(64 << 20) * (web.asleep / .seconds(1))
        #expect(abs(web.idleMemory - expected) < expected / 100)
    }

    @Test(
        "a dry run that lasts counts with the processor time by its last look, and one that is over with what has ended it (L58)"
    )
    func dryRun() throws {
        var recorder = Recorder(start: .seconds(100))
        let app = try #require(AppID("notes"))
        var policy = AppPolicy()
        policy.suspension = .dryRun
        policy.readiness = .notified
        recorder.send(.configuration(.registered(app, policy, launches: 0)))
        recorder.send(.requested(RequestID(1), app, .launch(.foreground, reason: .user, url: nil)))
        let run = try #require(recorder.core.run(of: app))
        recorder.send(.run(run, .transition(.ready)))
        recorder.send(.requested(RequestID(2), app, .background))
        recorder.wait(.seconds(2))
        recorder.send(.run(run, .traffic(.workMeasured(RunWork(cpu: .seconds(1))))))
        recorder.wait(.seconds(10))
        recorder.send(.run(run, .traffic(.workMeasured(RunWork(cpu: .seconds(3))))))
        let first = recorder.file()
        let lasting = try #require(account([first]).apps[app]?.dryRun)
        #expect(lasting.processorTime == .seconds(2) && lasting.sleeps == 1 && lasting.wakes.isEmpty)
        #expect(lasting.asleep > .seconds(10))
        recorder.send(.requested(RequestID(3), app, .activate))
        let over = try #require(account([recorder.file()]).apps[app]?.dryRun)
        #expect(over.processorTime == .seconds(2) && over.wakes == ["requested": 1])
    }

    @Test("an app that jetsam ends while it sleeps was not woken, and what is asleep at a gap counts until then")
    func ends() throws {
        var story = Story()
        let first = story.recorder.file()
        story.runOutOfMemory()
        _ = story.recorder.file()
        story.recorder.wait(.seconds(1))
        let whole = account([first])
        let gap = account([first, story.recorder.file()])
        #expect(whole.apps[story.web]?.asleep == gap.apps[story.web]?.asleep)
        var killed = Story()
        killed.runOutOfMemory()
        let apps = account([killed.recorder.file()]).apps
        #expect(apps.values.reduce(0) { $0 + $1.ends } > 0)
        #expect(apps[killed.web]?.wakes == ["stream": 1])
    }
}
