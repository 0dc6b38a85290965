import LifecycleCore
import Reports
import Systemd

/// Receives every report and event, to show them to people and programs. An observer limits the rate of its own
/// output.
protocol LifecycleObserver: AnyObject {
    /// The core reports something.
    func observe(_ report: Report, at now: Instant)
    /// The core has handled an event, and its effects were performed.
    func observe(_ event: Event)
    /// An instance of a template was removed, and nothing is left of it.
    func observeRemoval(of app: AppID)
    /// An invariant of the core did not hold, for the first time at its location.
    func observe(_ broken: BrokenInvariant)
}

extension LifecycleObserver {
    func observeRemoval(of app: AppID) {}
    func observe(_ broken: BrokenInvariant) {}
}

/// Writes reports to the journal, with a limit for those that an app can cause at will.
final class JournalObserver: LifecycleObserver {
    private let journal: Journal
    private var rateLimiter = EventRateLimiter()

    init(journal: Journal) { self.journal = journal }

    func observe(_ report: Report, at now: Instant) {
        // Ten in a second for each task would fill the journal.
        if case .taskProgressed = report { return }
        switch rateLimiter.judge(report, at: now) {
        case .accepted: break
        case .suppressed: return
        case .acceptedAfter(let app, let count):
            journal.logWarning(
                "\(count) events were not logged: more than \(EventRateLimiter.perSecond) in 1s", app: app)
        }
        journal.log(LogEntry(report))
    }

    func observe(_ event: Event) {
        if case .configuration(.unregistered(let app)) = event { rateLimiter.remove(app) }
    }

    func observeRemoval(of app: AppID) { rateLimiter.remove(app) }

    func observe(_ broken: BrokenInvariant) {
        let sentence = "fault of greenroomd, which continues: \(broken.sentence) (\(broken.location))"
        journal.log(.error, MessageID.warning, app: broken.app, sentence)
    }
}

/// Emits reports as D-Bus signals, with the same limit as the journal.
final class BusObserver: LifecycleObserver {
    private let bus: ControlBus
    private var rateLimiter = EventRateLimiter()

    init(bus: ControlBus) { self.bus = bus }

    func observe(_ report: Report, at now: Instant) {
        bus.follow(report)
        if rateLimiter.judge(report, at: now) == .suppressed { return }
        bus.publish(report, LogEntry(report))
    }

    func observe(_ event: Event) {
        bus.announcer.record(event)
        if case .configuration(.unregistered(let app)) = event { rateLimiter.remove(app) }
    }

    func observeRemoval(of app: AppID) {
        rateLimiter.remove(app)
        bus.announcer.recordRemoval(of: app)
    }
}
