import Glibc
import LifecycleCore
import Linux
import Manifest
import Systemd
import TestKit
import Testing

@testable import Daemon

/// The transport with a simulated app, and a daemon that dies at each step.
@Suite("Notices as signals")
struct SignalTransportTests {
    /// An app that catches all signals, and a daemon that dies at a step. Signals that were sent and not taken yet stay
    /// pending in the kernel.
    private final class World: SignalTransportDelegate {
        var transport: SignalTransport!
        /// The recorded queue, which the next daemon reads.
        private(set) var recorded = NoticeQueue()
        /// The signals that the app received, in order.
        private(set) var taken: [Int32] = []
        private(set) var pending: [Int32] = []
        private(set) var reported: [Notice] = []
        private(set) var sentAgain: [Notice] = []
        /// The last step of the first daemon.
        private(set) var diedAfter = ""
        /// Steps until the daemon dies; `nil`: it lives.
        var stepsLeft: Int?
        var takesSignalsAtOnce = true
        /// SigCgt of the app.
        var caught = UInt64.max
        /// What the next looks at its threads find; the last one stays.
        var receptions: [SignalReception] = [.notReceived]
        private(set) var warnings: [String] = []
        private let loop: EventLoop

        static let signals: LifecycleSignals = {
            var signals = AppManifest(id: AppID("photos")!).signals
            signals.resignActive = 40
            signals.enterBackground = 41
            signals.notification = 42
            return signals
        }()

        init(_ loop: EventLoop) {
            self.loop = loop
            start()
        }

        /// Starts a daemon that continues with the recorded queue.
        func start() {
            stepsLeft = nil
            transport = SignalTransport(loop: loop, queue: recorded)
            transport.delegate = self
            transport.findPendingSignal()
        }

        var isDead: Bool { stepsLeft == 0 }

        func takeSignals() {
            taken += pending
            pending = []
        }

        private func step(_ name: String, _ body: () -> Void) {
            if isDead { return }
            body()
            stepsLeft = stepsLeft.map { $0 - 1 }
            if isDead { diedAfter = name }
        }

        // MARK: SignalTransportDelegate

        var signals: LifecycleSignals { Self.signals }

        var mainProcessStatus: ProcessStatus? {
            let mask = String(pending.reduce(UInt64(0)) { $0 | 1 << UInt64($1 - 1) }, radix: 16)
            let text = """
                State:\tS (sleeping)
                TracerPid:\t0
                Uid:\t0\t0\t0\t0
                ShdPnd:\t\(mask)
                SigIgn:\t0
                SigCgt:\t\(String(caught, radix: 16))

                """
            return ProcessStatus(parsing: Array(text.utf8))
        }

        func reception(of number: Int32, _ status: ProcessStatus) -> SignalReception {
            receptions.count > 1 ? receptions.removeFirst() : receptions[0]
        }

        func warn(aboutSignal sentence: String) { warnings.append(sentence) }

        func sendSignal(_ number: Int32) -> Bool {
            step("send \(number)") {
                pending.append(number)
                if takesSignalsAtOnce { takeSignals() }
            }
            return true
        }

        func sendTerminate(_ number: Int32) -> Bool { sendSignal(number) }

        func queueChanged() { step("record") { recorded = transport.queue } }

        func notified(_ notice: Notice, delivered: Bool) {
            step("record sent") {
                recorded = transport.queue
                if notice.isAnswered { reported.append(notice) }
            }
        }

        func sendsAgain(_ notice: Notice) { if !isDead { sentAgain.append(notice) } }
        func logWarning(_ sentence: String) {}
    }

    private static let effects: [(Notice, EffectID)] = [
        (.willResignActive(.background), EffectID(event: 1, index: 1)),
        (.didEnterBackground, EffectID(event: 1, index: 3)),
    ]

    @Test("new files in the inbox are announced by one signal, until the app has taken it (L32)")
    func announced() throws {
        let world = World(try EventLoop())
        world.takesSignalsAtOnce = false
        world.transport.announceFiles()
        world.transport.announceFiles()
        #expect(world.pending == [42])
        world.takeSignals()
        world.transport.announceFiles()
        world.takeSignals()
        #expect(world.taken == [42, 42])
    }

    @Test("a signal that the app neither catches nor blocks is not sent, with one warning in a run (L3)")
    func notCaught() throws {
        let world = World(try EventLoop())
        world.caught = 0
        for event: UInt64 in 1...2 {
            world.transport.send(.willResignActive(.background), EffectID(event: event, index: 1))
        }
        // The manifest names no signal for this one.
        world.transport.send(.didBecomeActive(.return), EffectID(event: 3, index: 1))
        for _ in 1...2 { world.transport.announceFiles() }
        #expect(world.taken.isEmpty && world.transport.queue.isEmpty)
        #expect(
            world.warnings == [
                "ResignActive=SIGRTMIN+6 was not sent: the main process does not catch it",
                "Notification=SIGRTMIN+8 was not sent: the main process does not catch it",
            ])
        world.transport.send(.willTerminate, EffectID(event: 4, index: 1))
        #expect(world.taken == [SIGTERM] && world.warnings.count == 2)
    }

    @Test("a signal that the app blocks is sent, because it may receive it with sigwait (L3)")
    func blocked() throws {
        let world = World(try EventLoop())
        world.caught = 0
        world.receptions = [.received]
        for (notice, effect) in Self.effects { world.transport.send(notice, effect) }
        world.transport.announceFiles()
        #expect(world.taken == [40, 41, 42] && world.warnings.isEmpty)
    }

    @Test("a notice waits while the C library blocks all signals of the app for a moment (L3)")
    func undecided() throws {
        let world = World(try EventLoop())
        world.caught = 0
        world.receptions = [.undecided]
        for (notice, effect) in Self.effects { world.transport.send(notice, effect) }
        #expect(world.taken.isEmpty && world.transport.queue.waiting.count == 2)
        world.receptions = [.received]
        world.transport.sendAll()
        #expect(world.taken == [40, 41] && world.warnings.isEmpty)
    }

    /// The daemon performs both effects, and dies after `steps`. The next daemon repeats the effect that was being
    /// performed, and performs those after it.
    private func play(dyingAfter steps: Int, takesSignalsAtOnce: Bool) throws -> (World, isOver: Bool) {
        let world = World(try EventLoop())
        world.takesSignalsAtOnce = takesSignalsAtOnce
        world.stepsLeft = steps
        var performed = 0
        for (notice, effect) in Self.effects {
            world.transport.send(notice, effect)
            if world.isDead { break }
            performed += 1
        }
        let isOver = !world.isDead
        world.start()
        for (notice, effect) in Self.effects.dropFirst(performed) { world.transport.send(notice, effect) }
        world.transport.resume()
        world.takeSignals()
        world.transport.sendAll()
        world.takeSignals()
        return (world, isOver)
    }

    @Test(
        "if a daemon dies at any step, the next one delivers each notice once, unless the app took a signal before it was recorded as sent (L3)",
        arguments: [true, false])
    func eachStep(takesSignalsAtOnce: Bool) throws {
        var steps = 1
        var inDoubt = 0
        while true {
            let (world, isOver) = try play(dyingAfter: steps, takesSignalsAtOnce: takesSignalsAtOnce)
            if takesSignalsAtOnce, world.diedAfter == "send 40" {
                inDoubt += 1
                #expect(world.taken == [40, 40, 41] && world.sentAgain == [.willResignActive(.background)])
            } else if takesSignalsAtOnce, world.diedAfter == "send 41" {
                inDoubt += 1
                #expect(world.taken == [40, 41, 41] && world.sentAgain == [.didEnterBackground])
            } else {
                #expect(world.taken == [40, 41], "after \(world.diedAfter), \(steps) steps")
            }
            #expect(world.reported == [.didEnterBackground], "after \(steps) steps")
            #expect(world.transport.queue.isEmpty)
            if isOver { break }
            steps += 1
        }
        // Both notices have one such step, if the app takes its signals while no daemon lives.
        #expect(inDoubt == (takesSignalsAtOnce ? 2 : 0))
        #expect(steps > 5)
    }

    @Test("a notice that was being sent and whose signal is pending is not sent again (L3)")
    func pendingSignal() throws {
        let world = World(try EventLoop())
        world.takesSignalsAtOnce = false
        // accepted, about to be sent, sent.
        world.stepsLeft = 3
        world.transport.send(.willResignActive(.background), EffectID(event: 1, index: 1))
        #expect(world.isDead && world.pending == [40])
        world.start()
        world.transport.resume()
        #expect(world.pending == [40] && world.sentAgain.isEmpty)
        #expect(world.transport.queue.isEmpty)
    }

    @Test("an effect that the next daemon performs again does not send its notice again")
    func performedAgain() throws {
        let world = World(try EventLoop())
        let effect = EffectID(event: 7, index: 2)
        world.transport.send(.willResignActive(.background), effect)
        world.start()
        world.transport.send(.willResignActive(.background), effect)
        #expect(world.taken == [40])
        world.transport.send(.willResignActive(.background), EffectID(event: 8, index: 1))
        #expect(world.taken == [40, 40])
    }
}
