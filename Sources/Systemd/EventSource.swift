import CSystemd
package import Posix

/// The closure of a source's callback. The source holds one reference and releases it in its destroy callback, which
/// libsystemd calls only while no handler of the source runs. So a handler may drop its own source.
final class HandlerBox<Input> {
    private unowned let loop: EventLoop
    private let label: StaticString
    private let handler: (Input) -> Void

    /// - Parameter label: the file that created the source, for the measurement of turns.
    init(_ loop: EventLoop, _ label: StaticString, _ handler: @escaping (Input) -> Void) {
        self.loop = loop
        self.label = label
        self.handler = handler
    }

    /// Calls the closure of a callback's userdata.
    static func call(_ userdata: UnsafeMutableRawPointer?, _ input: Input) {
        guard let userdata else { return }
        let box = Unmanaged<HandlerBox<Input>>.fromOpaque(userdata).takeUnretainedValue()
        box.loop.serve(box.label) { box.handler(input) }
    }
}

/// Releases the object of `Unmanaged.passRetained(_:)`.
func releaseUserdata(_ userdata: UnsafeMutableRawPointer?) {
    guard let userdata else { return }
    Unmanaged<AnyObject>.fromOpaque(userdata).release()
}

/// A source of the loop. It stops and releases its handler when it is cancelled or dropped, which is allowed in the handler
/// itself. A handler should refer to the owner of its source weakly.
package final class EventSource {
    private var source: OpaquePointer?
    /// Stays open until the source is cancelled: a closed descriptor would stay in epoll(7) if another process has a copy.
    private var descriptor: SharedDescriptor?

    /// Takes over the caller's reference of `source`, whose userdata is a retained `HandlerBox`.
    init(owning source: OpaquePointer, watching descriptor: SharedDescriptor?) {
        self.source = source
        self.descriptor = descriptor
    }

    /// Stops the source permanently.
    package func cancel() {
        guard let source else { return }
        self.source = nil
        sd_event_source_disable_unref(source)
        descriptor = nil
    }

    package var isCancelled: Bool { source == nil }

    /// Whether the loop waits for the source. A cancelled source stays disabled.
    package var isEnabled: Bool {
        get {
            guard let source else { return false }
            var enabled: Int32 = 0
            return sd_event_source_get_enabled(source, &enabled) > 0
        }
        set {
            guard let source else { return }
            let result = sd_event_source_set_enabled(source, Int32(newValue ? SD_EVENT_ON : SD_EVENT_OFF))
            precondition(result >= 0, "sd_event_source_set_enabled: \(SystemError.text(of: -result))")
        }
    }

    /// Sets the events of the descriptor to wait for.
    package func setEvents(_ events: DescriptorEvents) throws(SystemError) {
        guard let source else { return }
        try check(sd_event_source_set_io_events(source, events.rawValue), "sd_event_source_set_io_events")
    }

    deinit {
        cancel()
    }
}

/// The events of a descriptor, to wait for or reported (epoll(7)).
package struct DescriptorEvents: OptionSet, Sendable {
    package let rawValue: UInt32

    package init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// EPOLLIN
    package static let readable = DescriptorEvents(rawValue: 0x001)
    /// EPOLLPRI: an exceptional condition, as PSI triggers and cgroup.events report it.
    package static let priority = DescriptorEvents(rawValue: 0x002)
    /// EPOLLOUT
    package static let writable = DescriptorEvents(rawValue: 0x004)
    /// EPOLLERR: always reported.
    package static let error = DescriptorEvents(rawValue: 0x008)
    /// EPOLLHUP: always reported.
    package static let hangUp = DescriptorEvents(rawValue: 0x010)
    /// EPOLLET: reported once for each change, not as long as the condition lasts.
    package static let edge = DescriptorEvents(rawValue: 1 << 31)
}

/// The order of pending sources: the lowest number is served first (sd_event_source_set_priority(3)).
package struct EventPriority: Equatable, Sendable {
    package let rawValue: Int64

    package init(_ rawValue: Int64) {
        self.rawValue = rawValue
    }

    /// Deadlines, whether a new process has executed its program, and writing to bus peers for which many messages wait.
    package static let important = EventPriority(-100)
    /// Processes, notify sockets, signals.
    package static let normal = EventPriority(0)
    /// Bus peers: served when no app and no process waits.
    package static let peer = EventPriority(50)
    /// Work in small pieces (`WorkQueue`): in turn with the bus peers, so that neither delays the other without end.
    package static let work = peer
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
