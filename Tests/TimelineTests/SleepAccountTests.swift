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
