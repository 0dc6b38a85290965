import LifecycleCore
import Testing

@testable import Manifest

@Suite("Settings about waking and idleness")
struct WakeSettingTests {
    @Test("Traffic= is yes or no; by default input wakes workers, and no other app (L50)")
    func traffic() throws {
        #expect(try !accepted("Wake", "").policy.wakesOnTraffic)
        #expect(try accepted("Wake", "Traffic=yes").policy.wakesOnTraffic)
        #expect(try !accepted("App", "Role=home").policy.wakesOnTraffic)
        #expect(try accepted("App", "Role=worker").policy.wakesOnTraffic)
        #expect(try !accepted("App", "Role=worker", "[Wake]", "Traffic=no").policy.wakesOnTraffic)
        #expect(try accepted("App", "Role=worker", "[Wake]", "Traffic=no", "Traffic=").policy.wakesOnTraffic)
        for value in ["sometimes", "tcp"] { try expectRefused("Wake", "Traffic", value, "yes or no") }
    }

    @Test("WakeOnLocation= is a number of meters, and an empty value removes it (L30)")
    func location() throws {
        #expect(try accepted("Wake", "").wakeDistance == nil)
        #expect(try accepted("Wake", "WakeOnLocation=1").wakeDistance == 1)
        #expect(try accepted("Wake", "WakeOnLocation=100000").wakeDistance == 100_000)
        #expect(try accepted("Wake", "WakeOnLocation=500", "WakeOnLocation=").wakeDistance == nil)
        for value in ["0", "-1", "100001", "500m", "0.5", "yes", "99999999999999999999"] {
            try expectRefused("Wake", "WakeOnLocation", value, "a distance from 1 to 100000 meters")
        }
    }

    @Test("UnifiedPush= is yes or no, needs the mode push, and implies the kind pushEndpoint (L30, L33)")
    func unifiedPush() throws {
        let manifest = try accepted("Wake", "UnifiedPush=yes", "[Lifecycle]", "BackgroundModes=push")
        #expect(manifest.unifiedPush && manifest.policy.notifications.names == ["pushEndpoint"])
        for lines in ["UnifiedPush=no", "UnifiedPush=yes\nUnifiedPush="] {
            let other = try accepted("Lifecycle", "BackgroundModes=push", "[Wake]", lines)
            #expect(!other.unifiedPush && other.policy.notifications == [])
        }
        try expectRefused("Wake", "UnifiedPush", "kde", "yes or no")
        let reading = try read("[App]\nExecStart=/bin/app\n[Wake]\nUnifiedPush=yes\n")
        #expect(
            reading.diagnostics.map(\.message) == [
                "UnifiedPush= has no effect: BackgroundModes= does not contain push"
            ])
        #expect(reading.manifest?.unifiedPush == false)
    }

    @Test("WakeThreshold= is a size, and optionally a time span (L50)")
    func threshold() throws {
        func threshold(_ value: String) throws -> AppPolicy.WakeThreshold {
            try accepted("Wake", "Traffic=yes", "WakeThreshold=\(value)").policy.wakeThreshold
        }
        #expect(try threshold("") == AppPolicy.WakeThreshold(bytes: 1, time: nil))
        #expect(try threshold("64") == AppPolicy.WakeThreshold(bytes: 64))
        #expect(try threshold("1K") == AppPolicy.WakeThreshold(bytes: 1024))
        #expect(try threshold("64K") == AppPolicy.WakeThreshold(bytes: 65_536))
        #expect(try threshold("64 30s") == AppPolicy.WakeThreshold(bytes: 64, time: .seconds(30)))
        #expect(try threshold("64 \t 1min 30s") == AppPolicy.WakeThreshold(bytes: 64, time: .seconds(90)))
        #expect(try threshold("2 5") == AppPolicy.WakeThreshold(bytes: 2, time: .seconds(5)))
        #expect(try threshold("64 infinity") == AppPolicy.WakeThreshold(bytes: 64))
        for value in ["0", "30s", "-1", "65K", "1G 512M", "64 soon", "64 0", "64 -1s", "infinity", "64,30s", "10%"] {
            try expectRefused("Wake", "WakeThreshold", value, "a size from 1 to 64K")
        }
    }

    @Test("IdleSec= is at least 100ms, PulseSec= 1s, RequestSec= any time span; infinity is the longest one (L51)")
    func times() throws {
        func policy(_ settings: String) throws -> AppPolicy { try accepted("Lifecycle", settings).policy }
        #expect(try policy("").idleTime == .seconds(10))
        #expect(try policy("IdleSec=1min").idleTime == .seconds(60))
        #expect(try policy("IdleSec=100ms").idleTime == .milliseconds(100))
        #expect(try policy("IdleSec=infinity").idleTime == longestTimeSpan)
        for value in ["0", "99ms", "soon", "-1"] {
            try expectRefused("Lifecycle", "IdleSec", value, "a time span of at least 100ms")
        }
        #expect(try policy("").requestTime == .seconds(90))
        #expect(try policy("RequestSec=0").requestTime == .zero)
        #expect(try policy("RequestSec=5min").requestTime == .seconds(300))
        #expect(try policy("RequestSec=infinity").requestTime == longestTimeSpan)
        try expectRefused("Lifecycle", "RequestSec", "long")
        #expect(try policy("").pulseTime == .seconds(20))
        #expect(try policy("PulseSec=1").pulseTime == .seconds(1))
        #expect(try policy("PulseSec=infinity").pulseTime == longestTimeSpan)
        for value in ["0", "999ms", "soon", "-1"] {
            try expectRefused("Lifecycle", "PulseSec", value, "a time span of at least 1s")
        }
    }

    @Test("Timers= is yes by default; only workers are thawed for their timers, others are warned of (L51)")
    func timers() throws {
        #expect(try accepted("Lifecycle", "").policy.keepsTimers)
        #expect(try accepted("Lifecycle", "Timers=no").policy.keepsTimers == false)
        try expectRefused("Lifecycle", "Timers", "sometimes", "yes or no")
        #expect(try accepted("Lifecycle", "").policy.suspension == .yes)
        #expect(try accepted("Lifecycle", "Suspend=dry-run").policy.suspension == .dryRun)
        #expect(try accepted("Lifecycle", "Suspend=off").policy.suspension == .no)
        #expect(try accepted("Lifecycle", "").policy.reclaim == .automatic)
        #expect(try accepted("Lifecycle", "ReclaimOnSuspend=yes").policy.reclaim == .yes)
        #expect(try accepted("Lifecycle", "ReclaimOnSuspend=off").policy.reclaim == .no)
        try expectRefused("Lifecycle", "Suspend", "dry", "yes, no or dry-run")
        #expect(try read(manifest("App", "Role=worker", "[Lifecycle]", "Timers=no", "PulseSec=5")).lines == [])
        let cause = "only workers are thawed for their timers"
        #expect(
            try read(manifest("Lifecycle", "Timers=no", "PulseSec=5", "[Wake]", "Traffic=yes")).lines == [
                "a.app:4:1: warning: Timers= has no effect: \(cause)",
                "a.app:5:1: warning: PulseSec= has no effect: \(cause)",
            ])
    }

    @Test("a worker that nothing but a request wakes, whatever its program does, is a warning (L51)")
    func onlyRequestsWake() throws {
        func lines(_ settings: String...) throws -> [String] {
            let all = ["Role=worker", "[Lifecycle]", "Timers=no", "[Wake]", "Traffic=no"] + settings
            return try read(manifest("App", all.joined(separator: "\n"))).lines
        }
        #expect(
            try lines() == [
                "a.app:8:1: warning: once the worker is suspended, nothing but a request wakes it: its input does not "
                    + "(Traffic=no), its timers do not (Timers=no), and the daemon holds no socket for it; Traffic=yes, "
                    + "Timers=yes or ListenStream= can change that, and IdleSec=infinity keeps it awake"
            ])
        for other in [
            "ListenStream=80", "Traffic=yes", "[Lifecycle]\nTimers=yes", "[Lifecycle]\nIdleSec=infinity",
            "[Lifecycle]\nBackgroundModes=push",
        ] {
            #expect(try lines(other) == [], "\(other)")
        }
    }

    @Test("IdleCPU= is a percentage of one processor with at most one decimal (L51)")
    func idleCPU() throws {
        #expect(try accepted("Lifecycle", "").policy.idleProcessorShare == 10)
        for (value, share) in [("1%", 10), ("0.5%", 5), ("0.1%", 1), ("100%", 1000), ("2.50%", 25)] {
            #expect(try accepted("Lifecycle", "IdleCPU=\(value)").policy.idleProcessorShare == share)
        }
        for value in ["0%", "0.05%", "101%", "1", "-1%", "one"] {
            try expectRefused("Lifecycle", "IdleCPU", value, "a percentage of one processor")
        }
    }

    @Test("KeepAwake= replaces its default, collects further assignments, and is reset by an empty one (L51)")
    func keepAwake() throws {
        func reasons(_ settings: String...) throws -> AppPolicy.KeepAwake {
            let lines = settings.joined(separator: "\n")
            return try accepted("Wake", "Traffic=yes", "[Lifecycle]", lines).policy.keepAwake
        }
        #expect(try reasons("") == [.cpu, .requests])
        #expect(try reasons("KeepAwake=cpu") == .cpu)
        #expect(try reasons("KeepAwake=timers  connections", "KeepAwake=cpu") == [.cpu, .timers, .connections])
        #expect(try reasons("KeepAwake=timers", "KeepAwake=", "KeepAwake=connections") == .connections)
        #expect(try reasons("KeepAwake=timers", "KeepAwake=") == [.cpu, .requests])
        #expect(try reasons("KeepAwake=none") == [])
        #expect(try reasons("KeepAwake=timers", "KeepAwake=none", "KeepAwake=cpu") == .cpu)
        let expected = "none, or one or more of cpu, requests, timers, connections"
        try expectRefused("Lifecycle", "KeepAwake", "cpu request", at: 4, "invalid value 'request'")
        for value in ["CPU", "none cpu", "sockets"] { try expectRefused("Lifecycle", "KeepAwake", value, expected) }
    }

    @Test("a setting that has no effect for a worker is a warning, and LaunchAtStart=foreground is background (L49)")
    func worker() throws {
        let reading = try read(
            manifest(
                "App", "Role=worker", "LaunchAtStart=foreground", "[Lifecycle]", "WatchdogSec=5", "BackgroundTimeSec=5",
                "ExpirationNoticeSec=1", "SuspendDelaySec=2", "[Signals]", "BecomeActive=USR1", "EnterBackground=USR2"))
        #expect(reading.manifest?.policy.launchAtStart == .background)
        #expect(
            reading.lines == [
                "a.app:5:1: warning: LaunchAtStart=foreground has the effect of LaunchAtStart=background, because a worker "
                    + "is never in the foreground",
                "a.app:7:1: warning: WatchdogSec= has no effect: a worker is never in the foreground",
                "a.app:12:1: warning: BecomeActive= has no effect: a worker is never in the foreground",
                "a.app:8:1: warning: BackgroundTimeSec= has no effect: the background time of a worker is not limited",
                "a.app:9:1: warning: ExpirationNoticeSec= has no effect: the background time of a worker is not limited",
                "a.app:10:1: warning: SuspendDelaySec= has no effect: a worker is suspended when it was idle for IdleSec=",
            ])
        #expect(try read(manifest("App", "Role=worker", "LaunchAtStart=background")).lines == [])
    }

    @Test("settings of an app that no input wakes have no effect, and cause warnings (L50, L51)")
    func withoutTraffic() throws {
        let unmeasured = "idleness is not measured without Traffic=yes or Role=worker"
        let settings = manifest(
            "Lifecycle", "IdleSec=5", "KeepAwake=cpu", "RequestSec=5", "IdleCPU=2%", "[Wake]", "WakeThreshold=2")
        #expect(
            try read(settings).lines == [
                "a.app:9:1: warning: WakeThreshold= has no effect: input does not wake the app without Traffic=yes",
                "a.app:4:1: warning: IdleSec= has no effect: \(unmeasured)",
                "a.app:5:1: warning: KeepAwake= has no effect: \(unmeasured)",
                "a.app:6:1: warning: RequestSec= has no effect: \(unmeasured)",
                "a.app:7:1: warning: IdleCPU= has no effect: \(unmeasured)",
            ])
        #expect(
            try read(manifest("Lifecycle", "IdleSec=5", "SuspendDelaySec=5", "IdleSec=")).lines == [],
            "a setting that was reset causes no warning")
        #expect(try read(manifest("Lifecycle", "IdleSec=5", "SuspendDelaySec=5", "[Wake]", "Traffic=yes")).lines == [])
    }

    @Test("settings that contradict each other cause warnings (L50, L51)")
    func contradictions() throws {
        let settings = manifest(
            "Lifecycle", "KeepAwake=timers", "RequestSec=5", "IdleCPU=2%", "ExitsOnSuspend=yes", "[Wake]", "Traffic=yes"
        )
        #expect(
            try read(settings).lines == [
                "a.app:6:1: warning: IdleCPU= has no effect: KeepAwake= does not contain cpu",
                "a.app:5:1: warning: RequestSec= has no effect: KeepAwake= does not contain requests",
                "a.app:7:1: warning: input does not wake the app: with ExitsOnSuspend=yes it is terminated instead of "
                    + "suspended",
            ])
    }

    @Test("a misspelled key about waking is named with the nearest one")
    func hints() throws {
        #expect(
            try read(manifest("Wake", "Trafic=yes", "WakeTreshold=2", "IdleSec=5", "ListenStrem=80")).lines == [
                "a.app:4:1: warning: unknown key 'Trafic' in section [Wake]; did you mean 'Traffic'?",
                "a.app:5:1: warning: unknown key 'WakeTreshold' in section [Wake]; did you mean 'WakeThreshold'?",
                "a.app:6:1: warning: key 'IdleSec' belongs in section [Lifecycle]; it is ignored in section [Wake]",
                "a.app:7:1: warning: unknown key 'ListenStrem' in section [Wake]; did you mean 'ListenStream'?",
            ])
    }
}
