import LifecycleCore
import Testing

@testable import Manifest

@Suite("Settings about processor time in the background")
struct ProcessorSettingTests {
    @Test("BackgroundCPU= is kill, throttle or ignore; by default workers are throttled and other apps killed (L44)")
    func action() throws {
        func action(_ settings: String...) throws -> AppPolicy.BackgroundCPU {
            try accepted("App", settings.joined(separator: "\n")).policy.backgroundCPUAction
        }
        #expect(try action("") == .kill)
        #expect(try action("Role=home") == .kill)
        #expect(try action("Role=worker") == .throttle)
        #expect(try action("Role=worker", "[Lifecycle]", "BackgroundCPU=kill") == .kill)
        #expect(try action("[Lifecycle]", "BackgroundCPU=throttle") == .throttle)
        #expect(try action("[Lifecycle]", "BackgroundCPU=ignore") == .ignore)
        #expect(try action("[Lifecycle]", "BackgroundCPU=ignore", "BackgroundCPU=") == .kill)
        for value in ["no", "Kill", "80%"] {
            try expectRefused("Lifecycle", "BackgroundCPU", value, "kill, throttle or ignore")
        }
    }

    @Test("BackgroundCPULimit= is a percentage of one processor, BackgroundCPUSec= a time span of at least 1s (L44)")
    func limit() throws {
        func policy(_ settings: String) throws -> AppPolicy { try accepted("Lifecycle", settings).policy }
        #expect(try policy("").backgroundCPULimit == 800)
        for (value, share) in [("1%", 10), ("80%", 800), ("100%", 1000), ("250%", 2500), ("100000%", 1_000_000)] {
            #expect(try policy("BackgroundCPULimit=\(value)").backgroundCPULimit == share)
        }
        for value in ["0%", "0.5%", "-1%", "100001%", "80", "%", "most"] {
            try expectRefused("Lifecycle", "BackgroundCPULimit", value, "a percentage of one processor")
        }
        #expect(try policy("").backgroundCPUTime == .seconds(60))
        #expect(try policy("BackgroundCPUSec=1").backgroundCPUTime == .seconds(1))
        #expect(try policy("BackgroundCPUSec=5min").backgroundCPUTime == .seconds(300))
        #expect(try policy("BackgroundCPUSec=infinity").backgroundCPUTime == longestTimeSpan)
        for value in ["0", "999ms", "soon", "-1"] {
            try expectRefused("Lifecycle", "BackgroundCPUSec", value, "a time span of at least 1s")
        }
    }

    @Test("with BackgroundCPU=ignore the limit and its time have no effect, and cause warnings (L44)")
    func noEffect() throws {
        let settings = manifest("Lifecycle", "BackgroundCPU=ignore", "BackgroundCPULimit=50%", "BackgroundCPUSec=5min")
        #expect(
            try read(settings).lines == [
                "a.app:5:1: warning: BackgroundCPULimit= has no effect: BackgroundCPU=ignore",
                "a.app:6:1: warning: BackgroundCPUSec= has no effect: BackgroundCPU=ignore",
            ])
        #expect(try read(manifest("Lifecycle", "BackgroundCPU=kill", "BackgroundCPUSec=5min")).lines == [])
    }
}
