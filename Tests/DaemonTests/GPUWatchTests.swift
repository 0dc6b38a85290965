import Glibc
import LifecycleCore
import Linux
import Posix
import Systemd
import TestKit
import Testing

@testable import Daemon

/// The way from the counters of a GPU to the receipt, with real processes and a /proc that describes their GPUs (L43).
@Suite("The watch of GPUs in the background")
struct GPUWatchTests {
    /// The core, and the parts of the daemon that watch and kill an app.
    private final class Stage {
        let root = makeTemporaryFolder("greenroom-gpu")
        let loop: EventLoop
        let list = EventList()
        private let context: DaemonContext
        private(set) var core = LifecycleCore()
        private var handled = 0
        private(set) var receipts: [Receipt] = []
        private(set) var processes: [AppID: Linux.Process] = [:]

        init() throws {
            loop = try EventLoop()
            context = try DaemonContext.bare(in: root, loop, list)
            context.background.gpuDescriptors = ProcFS(root: root + "/proc")
            try handle(.configuration(.configured(ManagerPolicy())))
            try handle(.configuration(.started))
        }

        /// Handles an event, and all that follow from it at once.
        func handle(_ event: Event) throws {
            list.send(event)
            try settle()
        }

        private func settle() throws {
            while handled < list.events.count {
                handled += 1
                let now = Instant(sinceOrigin: loop.now())
                for effect in core.handle(list.events[handled - 1], at: now) { try perform(effect) }
            }
        }

        private func perform(_ effect: Effect) throws {
            switch effect {
            case .spawn(let app, let run, _):
                let controller = try context.makeRun(run, of: app.name)
                let process = try startSleep()
                processes[app] = process
                try controller.enclosure.started(process)
                controller.setMainProcess(process)
                controller.watchExit()
                list.send(.run(run, .process(.spawned(pid: process.pid))))
                list.send(.run(run, .process(.executed)))
            // The app takes no time to enter the background.
            case .run(let run, .notify(let notice)) where notice.isAnswered:
                list.send(.run(run, .transition(.notified(notice, delivered: true, cpu: .zero))))
                if notice == .didEnterBackground { list.send(.run(run, .transition(.backgroundEntered))) }
            case .run(let run, .processor(.watchGPU(let begins))): context.runs[run]?.watchGPU(begins)
            case .run(let run, .kill): context.runs[run]?.kill()
            case .writeReceipt(let receipt): receipts.append(receipt)
            default: break
            }
        }

        /// Launches an app into the background, where a task keeps it awake. It has used a GPU before.
        func launch(_ name: String, used: UInt64) throws -> AppID {
            let app = try #require(AppID(name))
            var policy = AppPolicy()
            policy.readiness = .notified
            policy.forbidsBackgroundGPU = true
            try handle(.configuration(.registered(app, policy, launches: 0)))
            try handle(
                .requested(RequestID(UInt64(handled)), app, .launch(.background, reason: .user, url: nil)))
            let run = try #require(core.run(of: app))
            try setUse(of: app, used)
            try handle(.run(run, .task(.began(name: "upload", owner: 1))))
            try handle(.run(run, .transition(.ready)))
            return app
        }

        /// Writes what an app has used of a GPU, as the kernel describes it.
        func setUse(of app: AppID, _ nanoseconds: UInt64) throws {
            let pid = try #require(processes[app]?.pid)
            let folder = "\(root)/proc/\(pid)"
            for name in ["fd", "fdinfo"] { try createDirectories(at: "\(folder)/\(name)") }
            if symlink("/dev/dri/renderD128", "\(folder)/fd/4") != 0 { #expect(errno == EEXIST) }
            let info = "drm-driver:\ti915\ndrm-client-id:\t\(pid)\ndrm-engine-render:\t\(nanoseconds) ns\n"
            try replaceFile(at: "\(folder)/fdinfo/4", with: Array(info.utf8))
        }

        func turn() throws {
            try loop.runOnce(timeout: .milliseconds(100))
            try settle()
        }

        func end() {
            for process in processes.values { _ = try? process.signal(SIGKILL) }
            removeTree(root)
        }
    }

    @Test(
        "an app with BackgroundGPU=no whose use of a GPU grows in the background is killed with 0xbad69000, one whose does not lives (L43)"
    )
    func growth() throws {
        // The context makes the process the subreaper of its orphans.
        try inOwnProcess {
            let stage = try Stage()
            defer { stage.end() }
            // It is watched first, so it is looked at no less often than the other.
            let idle = try stage.launch("mail", used: 5_000_000)
            let busy = try stage.launch("photos", used: 1_000_000)
            #expect(stage.core.state(of: idle) == .background && stage.core.state(of: busy) == .background)
            var used: UInt64 = 1_000_000
            let limit = stage.loop.now() + .seconds(60)
            while stage.receipts.isEmpty, stage.loop.now() < limit {
                used += 1_000_000
                try stage.setUse(of: busy, used)
                try stage.turn()
            }
            let receipt = try #require(stage.receipts.first)
            #expect((receipt.app, receipt.code) == (busy, 0xbad6_9000))
            #expect(receipt.explanation.hasPrefix("Killed: used a GPU for "))
            #expect(receipt.explanation.hasSuffix(" in the background (BackgroundGPU=no)."))
            #expect(stage.core.state(of: busy) == .notRunning)
            #expect(stage.core.state(of: idle) == .background)
            #expect(try stage.processes[idle]?.hasEnded() == false)
        }
    }
}
