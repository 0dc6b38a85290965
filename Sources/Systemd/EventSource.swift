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

/// What the loop serves, and counts turns of.
protocol ServedSource: AnyObject {
    var kind: SourceKind { get }
    /// Of the app that can make it ready; `nil`: no app can.
    var share: AppShare? { get }
    /// The file that created the source, for the measurement of turns.
    var label: StaticString { get }
    var progress: ProgressCounter { get set }
    /// What is switched off if nothing comes of its turns; `nil`: it is cancelled, or each of its turns has a cause of its own.
    var switchable: EventSource? { get }
}

/// The handler of a source of libsystemd, as the loop sees it.
class HandlerState: ServedSource {
    unowned let loop: EventLoop
    let share: AppShare?
    /// `nil` once the source is cancelled, also by its `deinit`: a weak reference would take 48 bytes of each source.
    unowned(unsafe) var source: LibrarySource?
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

    var switchable: EventSource? { isOneShot ? nil : source }
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

/// The same for the source of a descriptor. The closure of a generic class takes 48 bytes more.
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
/// itself. A handler should refer to the owner of its source weakly, or without ownership if it only calls one method of it.
package class EventSource {
    /// Called after the source was switched off because nothing came of its turns.
    package var onSwitchedOff: (() -> Void)?
    /// While it waits for the share of its app: whether it is enabled afterwards.
    private var isEnabledAfterPause: Bool?

    fileprivate init() {}

    /// Stops the source permanently.
    package func cancel() {}

    package var isCancelled: Bool { true }

    /// Sets the events of the descriptor to wait for.
    package func setEvents(_ events: EpollEvents) throws(SystemError) {}

    /// Whether the loop waits for the source. A cancelled source stays disabled.
    package var isEnabled: Bool {
        get { !isCancelled && (isEnabledAfterPause ?? isEnabledNow) }
        set { if isEnabledAfterPause != nil { isEnabledAfterPause = newValue } else { isEnabledNow = newValue } }
    }

    /// The same, without regard to the share of its app.
    fileprivate var isEnabledNow: Bool {
        get { false }
        set {}
    }

    /// Lets the source wait until its app is served again.
    func pause(in share: AppShare) {
        guard !isCancelled, isEnabledAfterPause == nil else { return }
        isEnabledNow = false
        isEnabledAfterPause = true
        share.paused.append(self)
    }

    fileprivate func endPause() {
        guard let isEnabled = isEnabledAfterPause else { return }
        isEnabledAfterPause = nil
        if isEnabled { isEnabledNow = true }
    }
}

/// A source of libsystemd.
final class LibrarySource: EventSource {
    /// An sd_event_source, whose userdata is the retained handler; `nil`: it is cancelled.
    private var source: OpaquePointer?
    /// Stays open until the source is cancelled: a closed descriptor would stay in epoll(7) if another process has a copy.
    private var descriptor: SharedDescriptor?

    /// Whether the loop waits for it, if the kernel reports it once and libsystemd disables it then (`SourceKind.isReportedOnce`); `nil`:
    /// libsystemd knows.
    private var isWanted: Bool?

    /// Takes over the caller's reference of `source`, whose userdata is the retained `box`.
    init(owning source: OpaquePointer, _ box: HandlerState, watching descriptor: SharedDescriptor?) {
        self.source = source
        self.descriptor = descriptor
        super.init()
        box.source = self
        if box.kind.isReportedOnce {
            isWanted = true
            enable(SD_EVENT_ONESHOT)
        }
    }

    deinit { cancel() }

    package override func cancel() {
        guard let source else { return }
        if let box = sd_event_source_get_userdata(source) {
            Unmanaged<HandlerState>.fromOpaque(box).takeUnretainedValue().source = nil
        }
        sd_event_source_disable_unref(source)
        self.source = nil
        descriptor = nil
    }

    package override var isCancelled: Bool { source == nil }

    fileprivate override var isEnabledNow: Bool {
        get {
            if let isWanted { return isWanted }
            var enabled: Int32 = 0
            return sd_event_source_get_enabled(source, &enabled) > 0
        }
        set {
            let isReportedOnce = isWanted != nil
            if isReportedOnce { isWanted = newValue }
            enable(newValue ? isReportedOnce ? SD_EVENT_ONESHOT : SD_EVENT_ON : SD_EVENT_OFF)
        }
    }

    private func enable(_ state: Int) {
        guard let source else { return }
        let result = sd_event_source_set_enabled(source, Int32(state))
        precondition(result >= 0, "sd_event_source_set_enabled: \(SystemError.text(of: -result))")
    }

    package override func setEvents(_ events: EpollEvents) throws(SystemError) {
        guard let source else { return }
        try check(sd_event_source_set_io_events(source, events.rawValue), "sd_event_source_set_io_events")
    }

    // MARK: Waiting

    /// Lets the source wait for the end of the round: it stays ready, with less urgency than that.
    /// - Parameter isOneShot: libsystemd has disabled it before it called the handler.
    func waitForRound(isOneShot: Bool) {
        guard let source else { return }
        sd_event_source_set_priority(source, LoopLevel.afterRound)
        if isOneShot || isWanted != nil { enable(SD_EVENT_ONESHOT) }
    }

    /// After its turn: what is reported once is asked for again, so that nothing that is ready already is missed.
    func endTurn() {
        if isWanted == true { enable(SD_EVENT_ONESHOT) }
    }

    func endWait(_ level: LoopLevel) {
        if let source { sd_event_source_set_priority(source, level.priority) }
    }
}

/// A part of `AppDescriptors`: a descriptor and its handler, in one object.
final class PartSource: EventSource, ServedSource {
    private var isWanted = true
    /// What it waits for, and what the kernel's set has.
    private var events: EpollEvents
    private var eventsInSet: EpollEvents = []
    let kind: SourceKind
    var progress = ProgressCounter()
    let share: AppShare?
    let label: StaticString
    private let parts: AppDescriptors
    /// Stays open until the source is cancelled; `nil`: it is.
    private var descriptor: SharedDescriptor?
    private var handler: ((EpollEvents) -> TurnResult)?

    init(
        _ parts: AppDescriptors, _ descriptor: SharedDescriptor, _ events: EpollEvents, _ kind: SourceKind,
        _ label: StaticString, _ share: AppShare?, _ handler: @escaping (EpollEvents) -> TurnResult
    ) throws(SystemError) {
        self.parts = parts
        self.descriptor = descriptor
        self.events = events
        self.kind = kind
        self.label = label
        self.share = share
        self.handler = handler
        super.init()
        try update()
    }

    deinit { cancel() }

    var switchable: EventSource? { isCancelled ? nil : self }

    func call(_ events: EpollEvents) -> TurnResult { handler?(events) ?? .nothing }

    package override func cancel() {
        isWanted = false
        try? update()
        descriptor = nil
        handler = nil
    }

    package override var isCancelled: Bool { descriptor == nil }

    fileprivate override var isEnabledNow: Bool {
        get { isWanted }
        set {
            isWanted = newValue
            // Without memory it stays silent until it is enabled again; nothing is lost, since the kernel keeps what arrived.
            try? update()
        }
    }

    package override func setEvents(_ events: EpollEvents) throws(SystemError) {
        self.events = events
        try update()
    }

    /// What waits for nothing is not in the kernel's set: an error or a hang-up would be reported nevertheless.
    private func update() throws(SystemError) {
        let wanted = isWanted ? events : []
        guard wanted != eventsInSet, let descriptor else { return }
        if !eventsInSet.isEmpty { parts.remove(descriptor.raw) }
        eventsInSet = []
        if wanted.isEmpty { return }
        try parts.add(self, descriptor.raw, wanted)
        eventsInSet = wanted
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
