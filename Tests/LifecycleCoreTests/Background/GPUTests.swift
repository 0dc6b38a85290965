import Testing

@testable import LifecycleCore

@Suite("GPUs in the background")
struct GPUTests {
    /// An app in the background that a task keeps awake.
    private static func app(_ policy: (inout AppPolicy) -> Void = { _ in }) -> Harness {
        let harness = Harness("photos") {
            $0.forbidsBackgroundGPU = true
            policy(&$0)
        }
        harness.launch("photos")
        harness.task("photos", "upload")
        return harness
    }

    private static func watches(_ harness: Harness, since mark: Int = 0) -> [Bool] {
        harness.effects(since: mark).compactMap {
            if case .run(_, .processor(.watchGPU(let begins))) = $0 { begins } else { nil }
        }
    }

    @Test("an app with BackgroundGPU=no is killed with 0xbad69000 if it uses a GPU in the background (L43)")
    func killed() throws {
        let harness = Self.app()
        #expect(Self.watches(harness) == [])
        harness.background("photos")
        #expect(Self.watches(harness) == [true])
        harness.handle(.run(harness.run("photos"), .processor(.gpuUsed(.milliseconds(12)))))
        #expect(harness.killed() == ["photos"])
        #expect(harness.changes("photos").suffix(2) == ["terminating: gpuUsed", "notRunning: ended"])
        let receipt = try harness.receipt("photos")
        #expect((receipt.namespace, receipt.code, receipt.failure) == (.resource, 0xbad6_9000, .failed))
        #expect(receipt.explanation == "Killed: used a GPU for 12ms in the background (BackgroundGPU=no).")
    }

    @Test("an app is watched only while it runs in the background, and what is reported late counts for nothing (L43)")
    func watch() throws {
        let harness = Self.app()
        harness.background("photos")
        harness.activate("photos")
        #expect(Self.watches(harness) == [true, false])
        harness.handle(.run(harness.run("photos"), .processor(.gpuUsed(.milliseconds(12)))))
        #expect(harness.state("photos") == .active)
        harness.background("photos")
        harness.endTask("photos", "upload")
        harness.advance(.seconds(2))
        #expect(harness.state("photos") == .suspended)
        #expect(Self.watches(harness) == [true, false, true, false])
    }

    @Test("an app that may use a GPU in the background is not watched (L43)")
    func allowed() {
        let harness = Self.app { $0.forbidsBackgroundGPU = false }
        harness.background("photos")
        #expect(Self.watches(harness) == [])
    }

    @Test("the next daemon watches an app again that the previous one has watched (L43)")
    func recovered() {
        let harness = Self.app()
        harness.background("photos")
        let mark = harness.effects.count
        harness.handle(.run(harness.run("photos"), .process(.reattached(messagesKept: true))))
        #expect(Self.watches(harness, since: mark) == [true])
    }
}
