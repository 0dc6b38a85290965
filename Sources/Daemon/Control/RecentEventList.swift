import Control
import LoopPolicy
import Systemd

/// The events of the first seconds of this program, for clients of the previous one: their connections have ended with it, they
/// connect again, and ask for the events that they have missed (`RecentEvents`).
final class RecentEventList {
    /// How long events are kept: longer than clients try to connect again (10 s).
    static let keptTime = Duration.seconds(15)
    /// The most events that are kept, of about 1 KiB each.
    static let mostEvents = 1024

    /// `nil`: no event is kept any more.
    private var events: [LifecycleEvent]? = []
    /// Whether an event of this program is not kept.
    private var isCut = false
    /// The number of the last event. Numbers begin at the time at which the program has started, in microseconds of CLOCK_BOOTTIME, so that
    /// they increase over all programs until the machine is booted again.
    private var last: UInt64
    /// Of the program itself: its events have later ones.
    private let first: UInt64
    private let isReexecuted: Bool
    private var timer: Systemd.Timer?

    /// - Parameter isReexecuted: the previous program has sent all its events. One that was killed may not have.
    init(loop: EventLoop, isReexecuted: Bool) {
        first = UInt64(max(0, EventLoop.bootTime().microseconds))
        last = first
        self.isReexecuted = isReexecuted
        timer = try? loop.makeTimer(kind: .controlTimer) { [weak self] _ in self?.end() }
        timer?.arm(at: loop.now() + Self.keptTime)
        if timer == nil { end() }
    }

    var isRecording: Bool { events != nil }

    private func end() {
        events = nil
        isCut = true
        timer = nil
    }

    /// Numbers an event that no client gets: one that connects later has missed it.
    func skip() {
        last += 1
        isCut = true
    }

    /// Numbers an event that is about to be sent.
    func add(_ event: inout LifecycleEvent) {
        last += 1
        event.serial = last
        guard let count = events?.count else { return }
        if count < Self.mostEvents { events?.append(event) } else { isCut = true }
    }

    /// The events after the one with this number.
    func events(after serial: UInt64) -> RecentEvents {
        var answer = RecentEvents()
        answer.serial = last
        answer.events = events?.filter { $0.serial ?? 0 > serial } ?? []
        answer.isComplete = serial == last || !isCut && (isReexecuted || serial >= first)
        return answer
    }
}
