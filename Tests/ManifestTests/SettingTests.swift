import LifecycleCore
import Testing

@testable import Manifest

@Suite("Settings of sections [Lifecycle], [Signals], [Memory] and [Wake]")
struct SettingTests {
    @Test("each time span is stored in the value of its key")
    func times() throws {
        let policy = try accepted(
            "Lifecycle", "LaunchDeadlineSec=1", "BackgroundDeadlineSec=2s", "TerminateDeadlineSec=3000ms",
            "ExtendedDeadlineMaxSec=4", "BackgroundTimeSec=1min", "ExpirationNoticeSec=6", "SuspendDelaySec=7",
            "WatchdogSec=8", "BackgroundTimePerHourSec=9min", "TaskProgressSec=10"
        ).policy
        #expect(policy.launchDeadline == .seconds(1))
        #expect(policy.backgroundDeadline == .seconds(2))
        #expect(policy.terminateDeadline == .seconds(3))
        #expect(policy.extendedDeadlineMax == .seconds(4))
        #expect(policy.backgroundTime == .seconds(60))
        #expect(policy.expirationNotice == .seconds(6))
        #expect(policy.suspendDelay == .seconds(7))
        #expect(policy.watchdog == .seconds(8))
        #expect(policy.backgroundTimePerHour == .seconds(540))
        #expect(policy.taskProgressTime == .seconds(10))
    }

    @Test("infinity is valid for all time spans but ExpirationNoticeSec=; as SuspendDelaySec= it is the longest one")
    func infinity() throws {
        let policy = try accepted(
            "Lifecycle", "LaunchDeadlineSec=infinity", "BackgroundDeadlineSec=infinity",
            "TerminateDeadlineSec=infinity",
            "ExtendedDeadlineMaxSec=infinity", "BackgroundTimeSec=infinity", "BackgroundTimePerHourSec=infinity",
            "WatchdogSec=1", "WatchdogSec=infinity", "TaskProgressSec=infinity"
        ).policy
        #expect(policy.launchDeadline == nil)
        #expect(policy.backgroundDeadline == nil)
        #expect(policy.terminateDeadline == nil)
        #expect(policy.extendedDeadlineMax == nil)
        #expect(policy.backgroundTime == nil)
        #expect(policy.backgroundTimePerHour == nil)
        #expect(policy.taskProgressTime == nil)
        #expect(policy.watchdog == nil)
        try expectRefused("Lifecycle", "ExpirationNoticeSec", "infinity")
        #expect(try accepted("Lifecycle", "SuspendDelaySec=infinity").policy.suspendDelay == longestTimeSpan)
    }

    @Test(
        "an invalid time span is an error",
        arguments: [
            "LaunchDeadlineSec", "BackgroundDeadlineSec", "TerminateDeadlineSec", "ExtendedDeadlineMaxSec",
            "BackgroundTimeSec", "BackgroundTimePerHourSec", "ExpirationNoticeSec", "SuspendDelaySec", "WatchdogSec",
            "TaskProgressSec",
        ])
    func badTimes(_ key: String) throws {
        for value in ["soon", "-1", "5 parsecs", "1.2.3", "200y"] {
            try expectRefused("Lifecycle", key, value, "a time span such as 5s")
        }
    }

    @Test("0 is a valid time span and disables the watchdog")
    func zero() throws {
        let policy = try accepted("Lifecycle", "BackgroundTimeSec=0", "ExpirationNoticeSec=0", "WatchdogSec=0s").policy
        #expect(policy.backgroundTime == .zero)
        #expect(policy.watchdog == nil)
    }

    @Test("ExitsOnSuspend=, ProtectedData= and BackgroundModes= accept their keywords only")
    func others() throws {
        #expect(try accepted("Lifecycle", "ProtectedData=yes").policy.usesProtectedData)
        try expectRefused("Lifecycle", "ProtectedData", "perhaps")
        #expect(try accepted("Lifecycle", "SnapshotPrivacy=hidden").policy.hidesSnapshot)
        #expect(try !accepted("Lifecycle", "SnapshotPrivacy=none").policy.hidesSnapshot)
        try expectRefused("Lifecycle", "SnapshotPrivacy", "blurred")
        let releases = ["/dev/video0", "/dev/dri/*", "lock:/var/lib/db"]
        #expect(try accepted("Lifecycle", "Releases=" + releases.joined(separator: " ")).releases == releases)
        for wrong in ["video0", "lock:", "lock:db", "/", "/a/../b", "/" + String(repeating: "a", count: 256)] {
            try expectRefused("Lifecycle", "Releases", wrong)
        }
        #expect(try accepted("Lifecycle", "ReleasesAction=wait").policy.waitsForRelease)
        #expect(try !accepted("Lifecycle", "ReleasesAction=wait", "ReleasesAction=kill").policy.waitsForRelease)
        try expectRefused("Lifecycle", "ReleasesAction", "stop", "kill or wait")
        #expect(try accepted("Lifecycle", "BackgroundGPU=no").policy.forbidsBackgroundGPU)
        #expect(try !accepted("Lifecycle", "BackgroundGPU=yes").policy.forbidsBackgroundGPU)
        try expectRefused("Lifecycle", "BackgroundGPU", "perhaps", "yes or no")
        #expect(try accepted("Lifecycle", "SnapshotPersistent=yes").keepsSnapshot)
        for style in NoticeStyle.allCases {
            #expect(try accepted("Lifecycle", "Notices=\(style.rawValue)").notices == style)
        }
        try expectRefused("Lifecycle", "Notices", "popup")
        #expect(try accepted("Lifecycle", "Essential=yes").policy.isEssential)
        try expectRefused("Lifecycle", "Essential", "maybe")
        #expect(try accepted("App", "WindowAppID=org.example.Photos").windowAppID == "org.example.Photos")
        try expectRefused("App", "WindowAppID", String(repeating: "a", count: 257))
        #expect(try accepted("App", "Seat=seat-left").policy.seat == "seat-left")
        #expect(try accepted("App", "Seat=seat0").policy.seat == nil)
        for name in ["seat", "left", "seat 1", "seat/1", "seat\u{e9}", "seat" + String(repeating: "1", count: 252)] {
            try expectRefused("App", "Seat", name)
        }
        #expect(try accepted("Lifecycle", "SceneRoles=panel external").sceneRoles == [.external, .panel])
        try expectRefused("Lifecycle", "SceneRoles", "window")
        #expect(try accepted("Lifecycle", "ExitsOnSuspend=yes").policy.exitsOnSuspend)
        try expectRefused("Lifecycle", "ExitsOnSuspend", "2")
        #expect(
            try accepted("Lifecycle", "BackgroundModes=fetch push", "BackgroundModes=\taudio").policy.backgroundModes
                == [.fetch, .push, .audio])
        #expect(
            try accepted("Lifecycle", "BackgroundModes=location call accessory processing").policy.backgroundModes
                == [.location, .call, .accessory, .processing])
        let former = try read(manifest("Lifecycle", "BackgroundModes=push voip"))
        #expect(former.manifest?.policy.backgroundModes == [.push, .call])
        #expect(
            former.lines == ["a.app:4:1: warning: BackgroundModes=voip is now BackgroundModes=call, and means the same"]
        )
        #expect(try accepted("Lifecycle", "BackgroundModes=voip", "BackgroundModes=").policy.backgroundModes == [])
        try expectRefused(
            "Lifecycle", "BackgroundModes", "fetch  pull", at: 7,
            "invalid value 'pull'; expected one or more of "
                + "audio, recording, call, location, accessory, fetch, push, processing")
        try expectRefused("Lifecycle", "BackgroundModes", "\"fetch\"")
    }

    @Test("ExpirationNoticeSec= above BackgroundTimeSec= is a warning at its location")
    func notice() throws {
        let message =
            "ExpirationNoticeSec= exceeds BackgroundTimeSec=; tasks are notified when the background time starts"
        #expect(try read(manifest("Lifecycle", "BackgroundTimeSec=1")).lines == ["a.app:4:1: warning: \(message)"])
        #expect(
            try read(manifest("Lifecycle", "ExpirationNoticeSec=31", "BackgroundTimeSec=30")).lines == [
                "a.app:4:1: warning: \(message)"
            ])
        #expect(try read(manifest("Lifecycle", "ExpirationNoticeSec=30")).lines == [])
        #expect(try read(manifest("Lifecycle", "ExpirationNoticeSec=1h", "BackgroundTimeSec=infinity")).lines == [])
    }

    @Test("each signal is stored in the value of its key, and the only default is SIGTERM")
    func signals() throws {
        let none = try accepted("Signals").signals
        #expect(none == LifecycleSignals())
        #expect(none.terminate == 15)
        #expect(none.resignActive == nil)
        let signals = try accepted(
            "Signals", "ResignActive=SIGUSR1", "BecomeActive=USR2", "EnterBackground=SIGTSTP", "EnterForeground=18",
            "MemoryWarning=SIGRTMIN+1", "TaskExpiring=RTMAX-1", "Notification=RTMIN+3",
            "Terminate=SIGINT"
        ).signals
        #expect(signals.resignActive == 10)
        #expect(signals.becomeActive == 12)
        #expect(signals.enterBackground == 20)
        #expect(signals.enterForeground == 18)
        #expect(signals.memoryWarning == 35)
        #expect(signals.taskExpiring == 63)
        #expect(signals.notification == 37)
        #expect(signals.terminate == 2)
    }

    @Test(
        "a signal that cannot be caught is an error, and none is valid except for Terminate=",
        arguments: [
            "ResignActive", "BecomeActive", "EnterBackground", "EnterForeground", "MemoryWarning", "TaskExpiring",
            "Terminate",
        ])
    func badSignals(_ key: String) throws {
        for value in ["SIGKILL", "SIGSTOP", "32", "SIGFOO", "0", "65", "sigterm", "SIGUSR1 SIGUSR2"] {
            try expectRefused("Signals", key, value, "a signal that can be caught")
        }
        if key == "Terminate" {
            try expectRefused("Signals", key, "none")
        } else {
            #expect(try accepted("Signals", "\(key)=SIGUSR1", "\(key)=none").signals == LifecycleSignals())
        }
    }

    @Test("JetsamPriority= accepts -1000 to 1000")
    func priority() throws {
        #expect(try accepted("Memory", "JetsamPriority=-1000").policy.jetsamPriority == -1000)
        #expect(try accepted("Memory", "JetsamPriority=1000").policy.jetsamPriority == 1000)
        for value in ["1001", "-1001", "high", "+1", "1.0"] { try expectRefused("Memory", "JetsamPriority", value) }
    }

    @Test("each size is stored in the value of its key, and percentages refer to the machine's memory")
    func sizes() throws {
        let manifest = try accepted(
            "Memory", "MemoryMax=1K", "MemoryHigh=10%", "SuspendedMemoryMax=12.5%", "SuspendedMemoryHigh=infinity")
        #expect(manifest.memoryMax == 1024)
        #expect(manifest.policy.memoryHigh == 1000)
        #expect(manifest.suspendedMemoryMax == 1250)
        #expect(manifest.policy.suspendedMemoryHigh == nil)
        #expect(try accepted("Memory", "SuspendedMemoryHigh=2G").policy.suspendedMemoryHigh == 2 << 30)
    }

    @Test(
        "an invalid size is an error",
        arguments: ["MemoryMax", "MemoryHigh", "SuspendedMemoryMax", "SuspendedMemoryHigh"])
    func badSizes(_ key: String) throws {
        for value in ["0", "0%", "101%", "64MB", "lots", "-1", "512M 1G", "8E", "1.555%"] {
            try expectRefused("Memory", key, value, "a size such as 64M or 10%, or infinity")
        }
        let unknown = try read(manifest("Memory", "\(key)=10%"), memory: nil)
        #expect(unknown.lines.first?.contains("the size of the machine's memory is unknown") == true)
        #expect(unknown.manifest == nil)
        #expect(try read(manifest("Memory", "\(key)=10.5%"), memory: nil).manifest == nil)
    }

    @Test("MemoryMax= and SuspendedMemoryMax= are limits that the core decides by (L41)")
    func hardLimits() throws {
        let limited = try read(manifest("Memory", "MemoryMax=1K", "SuspendedMemoryMax=2K"))
        #expect(limited.lines == [])
        #expect(limited.manifest?.policy.memoryMax == 1024)
        #expect(limited.manifest?.policy.suspendedMemoryMax == 2048)
        #expect(try read(manifest("Memory", "MemoryMax=1K", "MemoryMax=infinity")).lines == [])
    }
}

@Suite("greenroom.conf")
struct ConfigurationTests {
    @Test("an empty or missing file has the defaults")
    func defaults() {
        #expect(readConfiguration("").configuration == ManagerConfiguration())
        #expect(parseConfiguration(sources: [], memory: nil).0 == ManagerConfiguration())
        let thresholds = ManagerConfiguration().pressureThresholds
        #expect(thresholds.map(\.0) == [.warning, .critical])
        #expect(thresholds.map(\.1) == [PressureThreshold(.some, percent: 7), PressureThreshold(.full, percent: 10)])
    }

    @Test("each setting is stored in the value of its key")
    func settings() throws {
        let (configuration, lines) = readConfiguration(
            "[Manager]\nForegroundLimit=2\nSuspend=dry-run\nDialer=org.example.Phone\nInterruptions=calls notifications\nProtectedDirectory=/srv/vault\nProtectedKeyCommand=/bin/key \"a b\"\n[Memory]\nBudget=50%\nJetsamOrder=lru\nWarningAvailable=20%\n"
                + "CriticalAvailable=1K\nWarningPressure=full 20%\nCriticalPressure=30%\n")
        #expect(lines == [])
        let found = try #require(configuration)
        #expect(found.policy.foregroundLimit == 2)
        #expect(found.policy.budget == 5000)
        #expect(found.policy.isDryRun)
        #expect(found.dialer == AppID("org.example.Phone"))
        #expect(found.interruptions == [.calls, .notifications])
        #expect(found.protectedDirectory == "/srv/vault")
        #expect(found.protectedKeyCommand == ["/bin/key", "a b"])
        #expect(found.policy.jetsamOrder == .lru)
        #expect(found.policy.warningAvailable == .percent(20))
        #expect(found.policy.criticalAvailable == .bytes(1024))
        #expect(found.warningPressure == PressureThreshold(.full, percent: 20))
        #expect(found.criticalPressure == PressureThreshold(.some, percent: 30))
    }

    @Test(
        "JetsamOrder= is largest, lru or balanced (L38)",
        arguments: [("largest", ManagerPolicy.JetsamOrder.largest), ("lru", .lru), ("balanced", .balanced)])
    func jetsamOrder(text: String, order: ManagerPolicy.JetsamOrder) throws {
        let (configuration, lines) = readConfiguration("[Memory]\nJetsamOrder=\(text)\n")
        #expect(lines == [])
        #expect(try #require(configuration).policy.jetsamOrder == order)
    }

    @Test("LaunchesAtOnce= is a number or infinity; the default is the number of processors (L52)")
    func launchesAtOnce() throws {
        let limits: [(String, Int?)] = [("3", 3), ("infinity", nil), ("", 8)]
        for (value, limit) in limits {
            let found = try #require(readConfiguration("[Manager]\nLaunchesAtOnce=\(value)\n").configuration)
            #expect(found.policy(processors: 8).launchesAtOnce == limit)
        }
        #expect(ManagerConfiguration().policy(processors: 8).launchesAtOnce == 8)
    }

    @Test("ContinuedTasks= is a number or infinity; the default is 4 (L21)")
    func continuedTasks() throws {
        let limits: [(String, Int?)] = [("0", 0), ("9", 9), ("infinity", nil), ("", 4)]
        for (value, limit) in limits {
            let found = try #require(readConfiguration("[Manager]\nContinuedTasks=\(value)\n").configuration)
            #expect(found.policy.continuedTasks == limit)
        }
    }

    @Test("infinity and off disable the budget and the pressure thresholds")
    func off() throws {
        let found = try #require(
            readConfiguration("[Memory]\nBudget=1G\nBudget=infinity\nWarningPressure=off\nCriticalPressure=infinity\n")
                .configuration)
        #expect(found.policy.budget == nil)
        #expect(found.pressureThresholds.isEmpty)
    }

    @Test("fractions of a percent are converted to bytes and need the size of the machine's memory")
    func partsOfPercent() {
        let text = "[Memory]\nWarningAvailable=12.5%\n"
        #expect(readConfiguration(text).configuration?.policy.warningAvailable == .bytes(1250))
        #expect(readConfiguration(text, memory: nil).configuration == nil)
        let whole = "[Memory]\nWarningAvailable=12%\n"
        #expect(readConfiguration(whole, memory: nil).configuration?.policy.warningAvailable == .percent(12))
    }

    @Test(
        "an invalid value is an error at its location",
        arguments: [
            ("Manager", "ForegroundLimit", ["0", "1001", "-1", "none", "1.5"]),
            ("Manager", "ContinuedTasks", ["1001", "-1", "none"]),
            ("Manager", "LaunchesAtOnce", ["0", "1001", "-1", "none", "processors"]),
            ("Manager", "DefaultHandlers", ["mail", "mailto", ":mail", "mailto:", "mailto:a/b", "1:mail"]),
            ("Manager", "Dialer", ["a/b", ".hidden"]), ("Manager", "Interruptions", ["alerts"]),
            ("Manager", "ProtectedDirectory", ["vault", "/", "/a/../b"]), ("Manager", "ProtectedKeyCommand", ["key"]),
            ("Memory", "Budget", ["0", "lots", "101%"]), ("Memory", "JetsamOrder", ["mru", "Largest"]),
            ("Memory", "WarningAvailable", ["lots", "101%", "infinity", "-1"]), ("Memory", "CriticalAvailable", ["x"]),
            ("Memory", "WarningPressure", ["0%", "100%", "some", "some7%", "most 7%", "some 7% 1s", "7", "some 7.5%"]),
            ("Memory", "CriticalPressure", ["full"]),
        ])
    func badValues(_ section: String, _ key: String, _ values: [String]) {
        for value in values {
            let (configuration, lines) = readConfiguration("[\(section)]\n\(key)=\(value)\n")
            #expect(configuration == nil, "\(key)=\(value)")
            #expect(lines.count == 1)
            let start = "greenroom.conf:2:\(key.utf8.count + 2): error: \(key)=: invalid value '\(value)'; expected "
            #expect(lines.first?.hasPrefix(start) == true, "\(lines)")
        }
    }

    @Test("ProtectedDirectory= and ProtectedKeyCommand= require each other (L15)")
    func protectedDirectory() {
        for line in ["ProtectedDirectory=/srv/vault", "ProtectedKeyCommand=/bin/key"] {
            let (configuration, lines) = readConfiguration("[Manager]\n\(line)\n")
            #expect(configuration == nil)
            #expect(
                lines == ["greenroom.conf:2:1: error: ProtectedDirectory= and ProtectedKeyCommand= require each other"])
        }
    }

    @Test("DefaultHandlers= is a list of schemes and apps, which an empty value empties (L8)")
    func defaultHandlers() {
        func handlers(_ text: String) -> [String]? {
            readConfiguration("[Manager]\n" + text).configuration?.defaultHandlers.map { "\($0.scheme) \($0.app)" }
        }
        #expect(
            handlers("DefaultHandlers=MAILTO:org.example.Mail x:web@1\nDefaultHandlers=x:b\n")
                == ["mailto org.example.Mail", "x web@1", "x b"])
        #expect(handlers("DefaultHandlers=a:b\nDefaultHandlers=\nDefaultHandlers=c:d\n") == ["c d"])
        #expect(handlers("DefaultHandlers=" + String(repeating: "a:b ", count: 1000) + "\n")?.count == 1000)
        #expect(handlers("DefaultHandlers=" + String(repeating: "a:b ", count: 1001) + "\n") == nil)
    }

    @Test("MetricsListen= is an address or off")
    func metricsListen() {
        func address(_ text: String) -> String? {
            readConfiguration("[Manager]\nMetricsListen=\(text)\n").configuration
                .map { $0.metricsListen.map { "\($0)" } ?? "-" }
        }
        #expect(address("127.0.0.1:9187") == "127.0.0.1:9187")
        #expect(address("/run/metrics") == "/run/metrics")
        #expect(address("[::1]:9187\nMetricsListen=off") == "-")
        #expect(address("9187\nMetricsListen=") == "-")
        for wrong in ["localhost:9187", "127.0.0.1", "127.0.0.1:0", "on", "/"] {
            #expect(address(wrong) == nil, "\(wrong)")
        }
    }

    @Test("keys and sections of manifests are unknown in greenroom.conf")
    func unknown() {
        let (configuration, lines) = readConfiguration("[Manager]\nForgroundLimit=2\n[App]\nName=a\n")
        #expect(configuration == ManagerConfiguration())
        #expect(
            lines == [
                "greenroom.conf:2:1: warning: unknown key 'ForgroundLimit' in section [Manager]; "
                    + "did you mean 'ForegroundLimit'?",
                "greenroom.conf:3:1: warning: unknown section [App]",
            ])
    }

    @Test("CriticalAvailable= above WarningAvailable= is a warning")
    func wrongOrder() {
        #expect(
            readConfiguration("[Memory]\nCriticalAvailable=20%\n").lines == [
                "greenroom.conf:2:1: warning: CriticalAvailable= exceeds WarningAvailable=; "
                    + "apps are warned when the critical level is reached"
            ])
        #expect(readConfiguration("[Memory]\nWarningAvailable=1\n").lines.count == 1)
        #expect(readConfiguration("[Memory]\nCriticalAvailable=10%\nWarningAvailable=1000\n").lines == [])
    }

    @Test("drop-ins override values, and an empty value resets to the default")
    func dropIns() {
        let (configuration, _) = readConfiguration(
            "[Manager]\nForegroundLimit=2\n[Memory]\nBudget=1G\n", "[Manager]\nForegroundLimit=3\n[Memory]\nBudget=\n")
        #expect(configuration?.policy.foregroundLimit == 3)
        #expect(configuration?.policy.budget == nil)
    }
}
