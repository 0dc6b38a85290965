import CSystemd
import LoopPolicy
package import Posix

/// What came of a turn. A source that stays ready although nothing comes of it is switched off (`ProgressCounter`).
package enum TurnResult: Sendable {
    /// Something was read, written, accepted or ended.
    case progress
    case nothing

    package init(_ hasProgress: Bool) { self = hasProgress ? .progress : .nothing }
}

/// A source as its handler's owner and the loop see it.
class HandlerState {
    // In an order without gaps: an app has several sources.
    unowned let loop: EventLoop
    let share: AppShare?
    /// `nil` once the source is cancelled, also by its `deinit`: a weak reference would take 48 bytes of each source.
    unowned(unsafe) var source: EventSource?
    /// The file that created the source, for the measurement of turns.
    let label: StaticString
    let kind: SourceKind
    /// libsystemd disables it before it calls the handler: a timer or a deferred call.
    var isOneShot = false
    var isSignal = false
    var progress = ProgressCounter()

    init(_ loop: EventLoop, _ kind: SourceKind, _ label: StaticString, _ share: AppShare?) {
        self.loop = loop
        self.kind = kind
        self.label = label
        self.share = share
    }
}

/// The closure of a source's callback. The source holds one reference and releases it in its destroy callback, which
/// libsystemd calls only while no handler of the source runs. So a handler may drop its own source.
final class HandlerBox<Input>: HandlerState {
    private let handler: (Input) -> TurnResult

    init(
        _ loop: EventLoop, _ kind: SourceKind, _ label: StaticString, _ share: AppShare? = nil,
        _ handler: @escaping (Input) -> TurnResult
    ) {
        self.handler = handler
        super.init(loop, kind, label, share)
    }

    /// Calls the closure of a callback's userdata, unless the source has to wait.
    static func call(_ userdata: UnsafeMutableRawPointer?, _ input: Input) {
        guard let userdata else { return }
        let box = Unmanaged<HandlerBox<Input>>.fromOpaque(userdata).takeUnretainedValue()
        box.loop.dispatch(box) { box.handler(input) }
    }
}

/// The same for the source of a descriptor, of which an app has several. The closure of a generic class takes 48 bytes more.
final class DescriptorHandler: HandlerState {
    private let handler: (EpollEvents) -> TurnResult

    init(
        _ loop: EventLoop, _ kind: SourceKind, _ label: StaticString, _ share: AppShare?,
        _ handler: @escaping (EpollEvents) -> TurnResult
    ) {
        self.handler = handler
        super.init(loop, kind, label, share)
    }

    static func call(_ userdata: UnsafeMutableRawPointer?, _ events: EpollEvents) {
        guard let userdata else { return }
        let box = Unmanaged<DescriptorHandler>.fromOpaque(userdata).takeUnretainedValue()
        box.loop.dispatch(box) { box.handler(events) }
    }

    func call(_ events: EpollEvents) -> TurnResult { handler(events) }
}

/// Releases the object of `Unmanaged.passRetained(_:)`.
func releaseUserdata(_ userdata: UnsafeMutableRawPointer?) {
    guard let userdata else { return }
    Unmanaged<AnyObject>.fromOpaque(userdata).release()
}

/// The share of one app in the loop's time, and its sources that wait because it is used up.
package final class AppShare {
    var policy = LoopShare()
    fileprivate(set) var paused: [EventSource] = []
    /// Called when the app begins to use more than its share: its sources wait again and again, until it is calm.
    package var onFlood: (() -> Void)?

    package init() {}

    /// How often the app began to use more than its share.
    package var floods: Int { policy.floods }

    func endPause() {
        let sources = paused
        paused = []
        for source in sources { source.endPause() }
    }
}

/// A source of the loop. It stops and releases its handler when it is cancelled or dropped, which is allowed in the handler
/// itself. A handler should refer to the owner of its source weakly.
package final class EventSource {
    private enum Registration {
        case cancelled
        /// An sd_event_source, whose userdata is the retained handler.
        case source(OpaquePointer)
        case part(DescriptorHandler, of: AppDescriptors)
    }
    private var registration: Registration
    /// Stays open until the source is cancelled: a closed descriptor would stay in epoll(7) if another process has a copy.
    private var descriptor: SharedDescriptor?
    /// Of a part of `AppDescriptors`: whether it is enabled, what it waits for, and what the kernel's set has.
    private var isPartEnabled = true
    private var events: EpollEvents
    private var eventsInSet: EpollEvents = []
    /// While it waits for the share of its app: whether it is enabled afterwards.
    private var isEnabledAfterPause: Bool?
    /// Called after the source was switched off because nothing came of its turns.
    package var onSwitchedOff: (() -> Void)?

    /// Takes over the caller's reference of `source`, whose userdata is the retained `box`.
    init(owning source: OpaquePointer, _ box: HandlerState, watching descriptor: SharedDescriptor?) {
        registration = .source(source)
        self.descriptor = descriptor
        events = []
        box.source = self
    }

    /// A part of `AppDescriptors`.
    init(_ handler: DescriptorHandler, watching descriptor: SharedDescriptor, _ events: EpollEvents)
        throws(SystemError)
    {
        let parts = try handler.loop.parts()
        registration = .part(handler, of: parts)
        self.descriptor = descriptor
        self.events = events
        try updatePart(handler, parts)
        handler.source = self
    }

    /// Stops the source permanently.
    package func cancel() {
        switch registration {
        case .cancelled: return
        case .source(let source):
            if let box = sd_event_source_get_userdata(source) {
                Unmanaged<HandlerState>.fromOpaque(box).takeUnretainedValue().source = nil
            }
            sd_event_source_disable_unref(source)
        case .part(let handler, let parts):
            isPartEnabled = false
            try? updatePart(handler, parts)
            handler.source = nil
        }
        registration = .cancelled
        descriptor = nil
    }

    package var isCancelled: Bool { if case .cancelled = registration { true } else { false } }

    /// Whether the loop waits for the source. A cancelled source stays disabled.
    package var isEnabled: Bool {
        get {
            if isCancelled { return false }
            if let isEnabledAfterPause { return isEnabledAfterPause }
            guard case .source(let source) = registration else { return isPartEnabled }
            var enabled: Int32 = 0
            return sd_event_source_get_enabled(source, &enabled) > 0
        }
        set {
            if isEnabledAfterPause != nil { return isEnabledAfterPause = newValue }
            enable(newValue ? SD_EVENT_ON : SD_EVENT_OFF)
        }
    }

    private func enable(_ state: Int) {
        switch registration {
        case .cancelled: break
        case .source(let source):
            let result = sd_event_source_set_enabled(source, Int32(state))
            precondition(result >= 0, "sd_event_source_set_enabled: \(SystemError.text(of: -result))")
        case .part(let handler, let parts):
            isPartEnabled = state != SD_EVENT_OFF
            // Without memory it stays silent until it is enabled again; nothing is lost, since the kernel keeps what arrived.
            try? updatePart(handler, parts)
        }
    }

    /// What waits for nothing is not in the kernel's set: an error or a hang-up would be reported nevertheless.
    private func updatePart(_ handler: DescriptorHandler, _ parts: AppDescriptors) throws(SystemError) {
        let wanted = isPartEnabled ? events : []
        guard wanted != eventsInSet, let descriptor else { return }
        if !eventsInSet.isEmpty { parts.remove(descriptor.raw) }
        eventsInSet = []
        if wanted.isEmpty { return }
        try parts.add(handler, descriptor.raw, wanted)
        eventsInSet = wanted
    }

    /// Sets the events of the descriptor to wait for.
    package func setEvents(_ events: EpollEvents) throws(SystemError) {
        switch registration {
        case .cancelled: break
        case .source(let source):
            try check(sd_event_source_set_io_events(source, events.rawValue), "sd_event_source_set_io_events")
        case .part(let handler, let parts):
            self.events = events
            try updatePart(handler, parts)
        }
    }

    // MARK: Waiting

    /// Lets the source wait until its app is served again.
    func pause(in share: AppShare) {
        guard !isCancelled, isEnabledAfterPause == nil else { return }
        enable(SD_EVENT_OFF)
        isEnabledAfterPause = true
        share.paused.append(self)
    }

    fileprivate func endPause() {
        guard let isEnabled = isEnabledAfterPause else { return }
        isEnabledAfterPause = nil
        if isEnabled { enable(SD_EVENT_ON) }
    }

    /// Lets the source wait for the end of the round: it stays ready, with less urgency than that.
    /// - Parameter isOneShot: libsystemd has disabled it before it called the handler.
    func waitForRound(isOneShot: Bool) {
        guard case .source(let source) = registration else { return }
        sd_event_source_set_priority(source, LoopLevel.afterRound)
        if isOneShot { enable(SD_EVENT_ONESHOT) }
    }

    func endWait(_ level: LoopLevel) {
        if case .source(let source) = registration { sd_event_source_set_priority(source, level.priority) }
    }

    deinit {
        cancel()
    }
}

extension LoopLevel {
    /// For sd_event_source_set_priority(3): the lowest number is served first.
    var priority: Int64 { Int64(rawValue) }

    /// Of sources that wait for the end of a round.
    static let afterRound = Int64(allCases.count)
}

/// A signal that has arrived: fields of signalfd_siginfo (signalfd(2)).
package struct SignalInfo: Equatable, Sendable {
    package let signal: Int32
    /// The pid of the sender; 0 for the kernel.
    package let pid: Int32
    package let uid: UInt32
    /// si_code: SI_USER, SI_QUEUE, CLD_EXITED …
    package let code: Int32
}
