import LifecycleCore
import Linux
import Manifest
import Systemd
import TestKit
import Testing

@testable import Daemon

@Suite("Observers and answers")
struct ObserverTests {
    /// Collects all that it observes.
    private final class Collector: LifecycleObserver {
        private(set) var reports: [Report] = []
        private(set) var events: [Event] = []
        func observe(_ report: Report, at now: Instant) { reports.append(report) }
        func observe(_ event: Event) { events.append(event) }
    }

    private final class NoSleep: SleepControl {
        private(set) var isAllowed = false
        func allowSleep() { isAllowed = true }
    }

    private let app = AppID("photos")!

    @Test("an observer receives every report, also those that the journal leaves out")
    func unlimited() throws {
        // The context makes the process the subreaper of its orphans.
        try inOwnProcess {
            let root = makeTemporaryFolder("greenroom-observer")
            defer { removeTree(root) }
            let log = try TestLog()
            let collector = Collector()
            let sleep = NoSleep()
            let list = EventList()
            let context = try DaemonContext.bare(in: root, try EventLoop(), list)
            let performer = EffectPerformer(
                context: context, launcher: RunLauncher(context: context, inheritedEnvironment: []),
                answers: AnswerTable(), observers: [JournalObserver(journal: log.journal), collector], sleep: sleep)
            for number in 1...250 {
                performer.perform(.report(.taskBegan(app, name: "\(number)")), EffectID(event: 1, index: number))
            }
            #expect(collector.reports.count == 250)
            #expect(log.lines.count < 250)
            performer.perform(.allowSleep, EffectID(event: 2, index: 1))
            #expect(sleep.isAllowed)
        }
    }

    @Test("the journal's limit is per app and second, and the number of events that were left out is logged")
    func limited() throws {
        let log = try TestLog()
        let observer = JournalObserver(journal: log.journal)
        for number in 1...150 { observer.observe(.taskBegan(app, name: "\(number)"), at: .origin) }
        #expect(log.lines.count == EventRateLimiter.perSecond)
        observer.observe(.taskBegan(app, name: "later"), at: .origin + .seconds(1))
        #expect(log.text.contains("photos: 50 events were not logged: more than 100 in 1s"))
        #expect(log.lines.count == EventRateLimiter.perSecond + 2)
    }

    @Test("an answer goes to the requester once, and not to one that has disconnected")
    func answers() {
        let table = AnswerTable()
        var received: [String] = []
        let first = table.expect { received.append("first \($0)") }
        let second = table.expect { received.append("second \($0)") }
        #expect(first != second)
        #expect(table.withdraw(second))
        table.answer(second, .done(.active))
        table.answer(first, .done(.active))
        table.answer(first, .done(.active))
        #expect(received.count == 1 && received[0].hasPrefix("first"))
        #expect(!table.withdraw(first))
    }

    @Test("the answer to a push has its number, and no other answer has one (L31)")
    func identified() {
        let table = AnswerTable()
        var numbers: [UInt64?] = []
        let push = table.expect { _ in numbers.append(table.answeredEvent) }
        let other = table.expect { _ in numbers.append(table.answeredEvent) }
        table.identify(push, event: 17)
        table.answer(other, .done(.active))
        table.answer(push, .done(.background))
        #expect(numbers == [nil, 17])
        #expect(table.answeredEvent == nil)
    }

    @Test("events that are sent in a batch are handled after all of them are recorded, and observed in order")
    func batch() throws {
        let loop = try EventLoop()
        let folder = makeTemporaryFolder("greenroom-batch")
        defer { removeTree(folder) }
        let logbook = Logbook(path: folder + "/logbook", journal: .quiet)
        let core = LifecycleCore()
        logbook.create(core, records: [:])
        let driver = try CoreDriver(loop: loop, core: core, logbook: logbook)
        let collector = Collector()
        let performer = NoEffects()
        driver.connect(performer: performer, observers: [collector])
        driver.batch {
            driver.send(.absence(.locked))
            driver.send(.absence(.unlocked))
            #expect(collector.events.isEmpty)
            #expect(logbook.eventNumber == 0)
        }
        #expect(collector.events == [.absence(.locked), .absence(.unlocked)])
        #expect(logbook.eventNumber == 2)
    }

    private final class NoEffects: EffectPerforming {
        func perform(_ effect: Effect, _ id: EffectID) {}
    }
}
