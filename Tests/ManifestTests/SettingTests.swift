import LifecycleCore
import Testing

@testable import Manifest

@Suite("[Lifecycle], [Signals], [Memory], [Wake]")
struct SettingTests {
    @Test("each time goes where its key says")
    func times() throws {
        let policy = try accepted(
            "Lifecycle", "LaunchDeadlineSec=1", "BackgroundDeadlineSec=2s", "TerminateDeadlineSec=3000ms",
            "ExtendedDeadlineMaxSec=4", "BackgroundTimeSec=1min", "ExpirationNoticeSec=6", "SuspendDelaySec=7",
            "WatchdogSec=8"
        ).policy
        #expect(policy.launchDeadline == .seconds(1))
        #expect(policy.backgroundDeadline == .seconds(2))
        #expect(policy.terminateDeadline == .seconds(3))
        #expect(policy.extendedDeadlineMax == .seconds(4))
        #expect(policy.backgroundTime == .seconds(60))
        #expect(policy.expirationNotice == .seconds(6))
        #expect(policy.suspendDelay == .seconds(7))
        #expect(policy.watchdog == .seconds(8))
    }

    @Test("deadlines and budgets may be infinite; a notice and a delay may not")
    func infinity() throws {
        let policy = try accepted(
            "Lifecycle", "LaunchDeadlineSec=infinity", "BackgroundDeadlineSec=infinity",
            "TerminateDeadlineSec=infinity",
            "ExtendedDeadlineMaxSec=infinity", "BackgroundTimeSec=infinity", "WatchdogSec=1", "WatchdogSec=infinity"
        ).policy
        #expect(policy.launchDeadline == nil)
        #expect(policy.backgroundDeadline == nil)
        #expect(policy.terminateDeadline == nil)
        #expect(policy.extendedDeadlineMax == nil)
        #expect(policy.backgroundTime == nil)
        #expect(policy.watchdog == nil)
        try expectRefused("Lifecycle", "ExpirationNoticeSec", "infinity")
        try expectRefused("Lifecycle", "SuspendDelaySec", "infinity")
    }

    @Test(
        "a bad time is refused",
        arguments: [
            "LaunchDeadlineSec", "BackgroundDeadlineSec", "TerminateDeadlineSec", "ExtendedDeadlineMaxSec",
            "BackgroundTimeSec", "ExpirationNoticeSec", "SuspendDelaySec", "WatchdogSec",
        ])
    func badTimes(_ key: String) throws {
        for value in ["soon", "-1", "5 parsecs", "1.2.3", "200y"] {
            try expectRefused("Lifecycle", key, value, "a time span such as 5s")
        }
    }

    @Test("0 is a time like another, but no watchdog")
    func zero() throws {
        let policy = try accepted("Lifecycle", "BackgroundTimeSec=0", "ExpirationNoticeSec=0", "WatchdogSec=0s").policy
        #expect(policy.backgroundTime == .zero)
        #expect(policy.watchdog == nil)
    }

    @Test("ExitsOnSuspend=, BackgroundModes=")
    func others() throws {
        #expect(try accepted("Lifecycle", "ExitsOnSuspend=yes").policy.exitsOnSuspend)
        try expectRefused("Lifecycle", "ExitsOnSuspend", "2")
        #expect(
            try accepted("Lifecycle", "BackgroundModes=fetch push", "BackgroundModes=\taudio").policy.backgroundModes
                == [.fetch, .push, .audio])
        #expect(
            try accepted("Lifecycle", "BackgroundModes=location voip accessory processing").policy.backgroundModes
                == [.location, .voip, .accessory, .processing])
        try expectRefused(
            "Lifecycle", "BackgroundModes", "fetch  pull", at: 7,
            "“pull”; expected some of audio, location, voip, accessory, fetch, push, processing")
        try expectRefused("Lifecycle", "BackgroundModes", "\"fetch\"")
    }

    @Test("a notice that is longer than the time is warned of, where it stands")
    func notice() throws {
        let message =
            "ExpirationNoticeSec= is longer than BackgroundTimeSec=: tasks are warned as soon as they can be"
        #expect(try read(manifest("Lifecycle", "BackgroundTimeSec=1")).lines == ["a.app:4:1: warning: \(message)"])
        #expect(
            try read(manifest("Lifecycle", "ExpirationNoticeSec=31", "BackgroundTimeSec=30")).lines == [
                "a.app:4:1: warning: \(message)"
            ])
        #expect(try read(manifest("Lifecycle", "ExpirationNoticeSec=30")).lines == [])
        #expect(try read(manifest("Lifecycle", "ExpirationNoticeSec=1h", "BackgroundTimeSec=infinity")).lines == [])
    }

    @Test("each signal goes where its key says; by default there is SIGTERM alone")
    func signals() throws {
        let none = try accepted("Signals").signals
        #expect(none == LifecycleSignals())
        #expect(none.terminate == 15)
        #expect(none.resignActive == nil)
        let signals = try accepted(
            "Signals", "ResignActive=SIGUSR1", "BecomeActive=USR2", "EnterBackground=SIGTSTP", "EnterForeground=18",
            "MemoryWarning=SIGRTMIN+1", "TaskExpiring=RTMAX-1", "Terminate=SIGINT"
        ).signals
        #expect(signals.resignActive == 10)
        #expect(signals.becomeActive == 12)
        #expect(signals.enterBackground == 20)
        #expect(signals.enterForeground == 18)
        #expect(signals.memoryWarning == 35)
        #expect(signals.taskExpiring == 63)
        #expect(signals.terminate == 2)
    }

    @Test(
        "signals that can't be caught are refused; none is one that is not sent, but there is always one to end",
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

    @Test("JetsamPriority= from -1000 to 1000")
    func priority() throws {
        #expect(try accepted("Memory", "JetsamPriority=-1000").policy.jetsamPriority == -1000)
        #expect(try accepted("Memory", "JetsamPriority=1000").policy.jetsamPriority == 1000)
        for value in ["1001", "-1001", "high", "+1", "1.0"] { try expectRefused("Memory", "JetsamPriority", value) }
    }

    @Test("each size goes where its key says; percentages are of the machine's memory")
    func sizes() throws {
        let manifest = try accepted(
            "Memory", "MemoryMax=1K", "MemoryHigh=10%", "SuspendedMemoryMax=12.5%", "SuspendedMemoryHigh=infinity")
        #expect(manifest.memoryMax == 1024)
        #expect(manifest.policy.memoryHigh == 1000)
        #expect(manifest.suspendedMemoryMax == 1250)
        #expect(manifest.policy.suspendedMemoryHigh == nil)
        #expect(try accepted("Memory", "SuspendedMemoryHigh=2G").policy.suspendedMemoryHigh == 2 << 30)
    }

    @Test("a bad size is refused", arguments: ["MemoryMax", "MemoryHigh", "SuspendedMemoryMax", "SuspendedMemoryHigh"])
    func badSizes(_ key: String) throws {
        for value in ["0", "0%", "101%", "64MB", "lots", "-1", "512M 1G", "8E", "1.555%"] {
            try expectRefused("Memory", key, value, "a size such as 64M or 10%, or infinity")
        }
        let unknown = try read(manifest("Memory", "\(key)=10%"), memory: nil)
        #expect(unknown.lines.first?.contains("which could not be read") == true)
        #expect(unknown.manifest == nil)
        #expect(try read(manifest("Memory", "\(key)=10.5%"), memory: nil).manifest == nil)
    }

    @Test("hard limits say that nobody holds to them yet")
    func hardLimits() throws {
        #expect(
            try read(manifest("Memory", "MemoryMax=1K", "SuspendedMemoryMax=1K")).diagnostics.map(\.line) == [4, 5])
        #expect(try read(manifest("Memory", "MemoryMax=1K", "MemoryMax=infinity")).lines == [])
    }

    @Test("ListenStream= is one address a line, of any kind that systemd.socket(5) has for streams")
    func sockets() throws {
        let good = [
            "8080", "1", "65535", "127.0.0.1:80", "255.255.255.255:1", "[::1]:80", "[::ffff:1.2.3.4]:80",
            "/run/my app.sock",
            "@abstract", "/" + String(repeating: "a", count: 106),
        ]
        let text = "[App]\nExecStart=/a\n[Wake]\n" + good.map { "ListenStream=\($0)\n" }.joined()
        #expect(try read(text).manifest?.listenStream == good)
        #expect(try accepted("Wake", "ListenStream=/a%%").listenStream == ["/a%"])
        for value in [
            "0", "65536", "-1", "080a", "a:80", "1.2.3:80", "1.2.3.256:80", "1.2.3.4:0", "1.2.3.4:", ":80", "[]:80",
            "[::1]",
            "[::1]80", "[::g]:80", "::1:80", "/", "@", "run/x", "8080 8081", "/" + String(repeating: "a", count: 107),
            "1..2.3:80",
            "1.2.3.4.5:80", "%t/x", "/a%", "[1]:80", "+80", "1.2.3.4:+80",
        ] { try expectRefused("Wake", "ListenStream", value) }
    }

    @Test("64 sockets, no more")
    func manySockets() throws {
        let text = manifest("Wake") + String(repeating: "ListenStream=80\n", count: 64)
        #expect(try read(text).manifest?.listenStream.count == 64)
        #expect(try read(text + "ListenStream=80\n").diagnostics.first?.line == 68)
    }
}

@Suite("greenroom.conf")
struct ConfigurationTests {
    @Test("an empty one, or none, has the defaults")
    func defaults() {
        #expect(readConfiguration("").configuration == ManagerConfiguration())
        #expect(parseConfiguration(sources: [], memory: nil).0 == ManagerConfiguration())
        let thresholds = ManagerConfiguration().pressureThresholds
        #expect(thresholds.map(\.0) == [.warning, .critical])
        #expect(thresholds.map(\.1) == [PressureThreshold(.some, percent: 7), PressureThreshold(.full, percent: 10)])
    }

    @Test("each setting goes where its key says")
    func settings() throws {
        let (configuration, lines) = readConfiguration(
            "[Manager]\nForegroundLimit=2\n[Memory]\nBudget=50%\nJetsamOrder=lru\nWarningAvailable=20%\n"
                + "CriticalAvailable=1K\nWarningPressure=full 20%\nCriticalPressure=30%\n")
        #expect(lines == [])
        let found = try #require(configuration)
        #expect(found.policy.foregroundLimit == 2)
        #expect(found.policy.budget == 5000)
        #expect(found.policy.jetsamOrder == .lru)
        #expect(found.policy.warningAvailable == .percent(20))
        #expect(found.policy.criticalAvailable == .bytes(1024))
        #expect(found.warningPressure == PressureThreshold(.full, percent: 20))
        #expect(found.criticalPressure == PressureThreshold(.some, percent: 30))
    }

    @Test("what is off is off")
    func off() throws {
        let found = try #require(
            readConfiguration("[Memory]\nBudget=1G\nBudget=infinity\nWarningPressure=off\nCriticalPressure=infinity\n")
                .configuration)
        #expect(found.policy.budget == nil)
        #expect(found.pressureThresholds.isEmpty)
    }

    @Test("parts of a percent are bytes of the machine's memory, where that is known")
    func partsOfPercent() {
        let text = "[Memory]\nWarningAvailable=12.5%\n"
        #expect(readConfiguration(text).configuration?.policy.warningAvailable == .bytes(1250))
        #expect(readConfiguration(text, memory: nil).configuration == nil)
        let whole = "[Memory]\nWarningAvailable=12%\n"
        #expect(readConfiguration(whole, memory: nil).configuration?.policy.warningAvailable == .percent(12))
    }

    @Test(
        "bad values are errors with their places",
        arguments: [
            ("Manager", "ForegroundLimit", ["0", "1001", "-1", "none", "1.5"]),
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
            let start = "greenroom.conf:2:\(key.utf8.count + 2): error: \(key)=: “\(value)”: expected "
            #expect(lines.first?.hasPrefix(start) == true, "\(lines)")
        }
    }

    @Test("keys of manifests are unknown here")
    func unknown() {
        let (configuration, lines) = readConfiguration("[Manager]\nForgroundLimit=2\n[App]\nName=a\n")
        #expect(configuration == ManagerConfiguration())
        #expect(
            lines == [
                "greenroom.conf:2:1: warning: unknown key ForgroundLimit= in [Manager]; did you mean ForegroundLimit=?",
                "greenroom.conf:3:1: warning: unknown section [App]",
            ])
    }

    @Test("levels in the wrong order are warned of")
    func wrongOrder() {
        #expect(
            readConfiguration("[Memory]\nCriticalAvailable=20%\n").lines == [
                "greenroom.conf:2:1: warning: CriticalAvailable= is more than WarningAvailable=: it is critical before "
                    + "it is a warning"
            ])
        #expect(readConfiguration("[Memory]\nWarningAvailable=1\n").lines.count == 1)
        #expect(readConfiguration("[Memory]\nCriticalAvailable=10%\nWarningAvailable=1000\n").lines == [])
    }

    @Test("drop-ins win, and an empty value is the default again")
    func dropIns() {
        let (configuration, _) = readConfiguration(
            "[Manager]\nForegroundLimit=2\n[Memory]\nBudget=1G\n", "[Manager]\nForegroundLimit=3\n[Memory]\nBudget=\n")
        #expect(configuration?.policy.foregroundLimit == 3)
        #expect(configuration?.policy.budget == nil)
    }
}
