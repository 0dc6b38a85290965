import LifecycleCore
import Testing

@testable import Manifest

@Suite("Settings of greenroomctl run (L54)")
struct RunSettingTests {
    private func manifest(_ assignments: String..., command: String = "cat") throws -> Result<
        AppManifest, RunSettingsProblem
    > {
        let id = try #require(AppID("run@cat"))
        return RunSettings(command: command, assignments: assignments)
            .manifest(of: id, memory: memory, specifiers: machineValues)
    }

    private func problem(_ assignments: String...) throws -> String? {
        let id = try #require(AppID("run@cat"))
        let settings = RunSettings(command: "cat", assignments: assignments)
        if case .failure(let problem) = settings.manifest(of: id, memory: memory, specifiers: machineValues) {
            return problem.description
        }
        return nil
    }

    @Test(
        "a command is a worker that is removed at its end, is not limited in the background, and is notified of its end"
    )
    func defaults() throws {
        let policy = try manifest(command: "my\u{7}cat").get()
        #expect(policy.name == "mycat")
        #expect(policy.policy.role == .worker && policy.policy.isTransient && policy.policy.isAttached)
        #expect(policy.policy.wakesOnTraffic && policy.policy.relaunch == .no)
        #expect(policy.policy.backgroundCPUAction == .ignore)
        #expect(policy.policy.terminateSuspended == .notify)
    }

    @Test("-p sets what the caller may choose, each key in its section")
    func values() throws {
        let manifest = try manifest(
            "IdleSec=1min", "MemoryMax=10%", "Terminate=SIGINT", "WakeThreshold=64", "KeepAwake=cpu requests",
            "BackgroundCPU=throttle"
        ).get()
        #expect(manifest.policy.idleTime == .seconds(60))
        #expect(manifest.policy.memoryMax == 1000)
        #expect(manifest.signals.terminate == 2)
        #expect(manifest.policy.wakeThreshold.bytes == 64)
        #expect(manifest.policy.backgroundCPUAction == .throttle)
        for key in RunSettings.allKeys { #expect(try problem("\(key)=") == nil, "\(key)") }
    }

    @Test("what starts programs or is no setting is refused, with what was expected")
    func refused() throws {
        #expect(
            try problem("ExecStart=/bin/sh")?.hasPrefix("-p ExecStart=/bin/sh: unknown key; expected one of") == true)
        #expect(try problem("IdleSecs=1")?.contains("did you mean IdleSec?") == true)
        for line in [
            "IdleSec", "IdleSec=1\nExecStart=/bin/sh", "IdleSec=1\\", "IdleSec=" + String(repeating: "1", count: 1024),
        ] {
            #expect(try problem(line)?.contains("invalid setting; expected KEY=VALUE") == true, "\(line)")
        }
        #expect(try problem("IdleSec=soon")?.hasPrefix("-p IdleSec=: invalid value 'soon'; expected") == true)
        let many = RunSettings(command: "cat", assignments: Array(repeating: "IdleSec=1s", count: 65))
        let id = try #require(AppID("run@cat"))
        #expect(throws: RunSettingsProblem.self) {
            try many.manifest(of: id, memory: memory, specifiers: machineValues).get()
        }
    }
}
