import LifecycleCore
import Schedule
import Testing

@testable import Manifest

@Suite("Timers and fetch in section [Wake] (L30)")
struct TimerSettingTests {
    @Test("each setting of timers is stored in its value, and times are collected")
    func values() throws {
        let manifest = try accepted(
            "Wake", "OnCalendar=daily", "OnCalendar=Mon..Fri 08:30 Europe/Berlin", "OnUnitActiveSec=15min",
            "OnBootSec=0", "Persistent=yes", "AccuracySec=1us", "RandomizedDelaySec=1h")
        #expect(manifest.timers.calendar.count == 2)
        #expect(manifest.timers.calendar.last?.zone == .named("Europe/Berlin"))
        #expect(manifest.timers.sinceActive == [900_000_000])
        #expect(manifest.timers.sinceBoot == [0])
        #expect(manifest.timers.isPersistent)
        #expect(manifest.timers.accuracy == 1)
        #expect(manifest.timers.randomizedDelay == 3_600_000_000)
        #expect(manifest.policy.hasTimers)
    }

    @Test("without timers an app has none; AccuracySec= is 1min by default")
    func defaults() throws {
        let manifest = try accepted("Wake", "Traffic=yes")
        #expect(!manifest.policy.hasTimers)
        #expect(manifest.timers == TimerSettings())
        #expect(manifest.timers.accuracy == 60_000_000)
    }

    @Test("an empty value of one of the times removes all, and infinity is never, as in systemd")
    func reset() throws {
        for key in ["OnCalendar", "OnUnitActiveSec", "OnBootSec"] {
            let manifest = try accepted("Wake", "OnCalendar=daily", "OnBootSec=5", "OnUnitActiveSec=5", "\(key)=")
            #expect(!manifest.policy.hasTimers)
        }
        #expect(!(try accepted("Wake", "OnUnitActiveSec=infinity").policy.hasTimers))
    }

    @Test("what is no time is refused with a sentence that says what is expected")
    func refused() throws {
        try expectRefused("Wake", "OnCalendar", "25:00", CalendarEvent.expected)
        try expectRefused("Wake", "OnCalendar", "Mon..", CalendarEvent.expected)
        try expectRefused("Wake", "OnUnitActiveSec", "10ms", "a time span of at least 1s")
        try expectRefused("Wake", "FetchIntervalSec", "0", "a time span of at least 1s")
        try expectRefused("Wake", "AccuracySec", "infinity", "a time span such as 1min")
        let many = Array(repeating: "OnBootSec=1\n", count: 64).joined()
        let reading = try read("[App]\nExecStart=/bin/app\n[Wake]\n\(many)")
        #expect(reading.manifest?.timers.sinceBoot.count == 64)
        let more = try read("[App]\nExecStart=/bin/app\n[Wake]\n\(many)OnCalendar=daily\n")
        #expect(more.lines.count == 1 && more.lines.first?.contains("more than 64 times") == true)
    }

    @Test("FetchIntervalSec= needs BackgroundModes=fetch, and verify says so")
    func fetch() throws {
        let without = try read("[App]\nExecStart=/bin/app\n[Wake]\nFetchIntervalSec=1h\n")
        let messages = without.diagnostics.map(\.message)
        #expect(messages == ["FetchIntervalSec= has no effect: BackgroundModes= does not contain fetch"])
        #expect(without.manifest?.policy.hasTimers == false)
        let text = "[App]\nExecStart=/bin/app\n[Lifecycle]\nBackgroundModes=fetch\n[Wake]\nFetchIntervalSec=1h\n"
        let with = try read(text)
        #expect(with.diagnostics.isEmpty)
        #expect(with.manifest?.timers.fetchInterval == 3_600_000_000)
        #expect(with.manifest?.policy.hasTimers == true)
    }

    @Test("settings of timers without a timer have no effect, and verify says so")
    func noEffect() throws {
        let reading = try read("[App]\nExecStart=/bin/app\n[Wake]\nPersistent=yes\nAccuracySec=1\n")
        #expect(reading.diagnostics.map(\.message).filter { $0.contains("has no effect") }.count == 2)
    }
}
