import CSystemd
package import Posix

/// What a source's callback needs, kept alive by the source itself: libsystemd holds one reference and gives it back in
/// the source's destroy callback, which it calls only when no handler of the source is running. So a handler may drop
/// its own source.
final class HandlerBox<Input> {
    let handler: (Input) -> Void

    init(_ handler: @escaping (Input) -> Void) {
        self.handler = handler
    }

    /// The closure behind a callback's userdata, retained while it runs.
    static func call(_ userdata: UnsafeMutableRawPointer?, _ input: Input) {
        guard let userdata else { return }
        let box = Unmanaged<HandlerBox<Input>>.fromOpaque(userdata).takeUnretainedValue()
        box.handler(input)
    }
}

/// The other half of `Unmanaged.passRetained(box)`: any class will do.
func releaseUserdata(_ userdata: UnsafeMutableRawPointer?) {
    guard let userdata else { return }
    Unmanaged<AnyObject>.fromOpaque(userdata).release()
}

/// Something the loop waits for. It stops and lets its handler go when it is cancelled or dropped, which is allowed
/// inside the handler itself. A handler that mentions its source's owner should do so weakly.
package final class EventSource {
    private var source: OpaquePointer?
    /// Stays open until the source is cancelled: a closed descriptor would stay in epoll(7) if another process has a copy.
    private var descriptor: SharedDescriptor?

    /// Takes over the caller's reference of `source`, whose userdata is a retained `HandlerBox`.
    init(owning source: OpaquePointer, watching descriptor: SharedDescriptor?) {
        self.source = source
        self.descriptor = descriptor
    }

    /// Stops the source for good.
    package func cancel() {
        guard let source else { return }
        self.source = nil
        sd_event_source_disable_unref(source)
        descriptor = nil
    }

    package var isCancelled: Bool { source == nil }

    /// Whether the source is being waited for. A cancelled one stays disabled.
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

    /// Waits for other events of the same descriptor from now on.
    package func setEvents(_ events: DescriptorEvents) throws(SystemError) {
        guard let source else { return }
        try check(sd_event_source_set_io_events(source, events.rawValue), "sd_event_source_set_io_events")
    }

    /// The name of the source in libsystemd's debug messages.
    package func setDescription(_ text: String) {
        guard let source else { return }
        sd_event_source_set_description(source, text)
    }

    deinit {
        cancel()
    }
}

/// What can be waited for on a descriptor, and what came: epoll(7)'s bits.
package struct DescriptorEvents: OptionSet, Sendable {
    package let rawValue: UInt32

    package init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// EPOLLIN
    package static let readable = DescriptorEvents(rawValue: 0x001)
    /// EPOLLPRI: an exceptional condition, as PSI triggers and cgroup.events give.
    package static let priority = DescriptorEvents(rawValue: 0x002)
    /// EPOLLOUT
    package static let writable = DescriptorEvents(rawValue: 0x004)
    /// EPOLLERR: always reported, need not be asked for.
    package static let error = DescriptorEvents(rawValue: 0x008)
    /// EPOLLHUP: always reported, need not be asked for.
    package static let hangUp = DescriptorEvents(rawValue: 0x010)
    /// EPOLLRDHUP: the peer will write no more.
    package static let peerClosed = DescriptorEvents(rawValue: 0x2000)
    /// EPOLLET: reported once per change, not as long as it lasts.
    package static let edge = DescriptorEvents(rawValue: 1 << 31)
}

/// Which of the pending sources is served first: the lowest number (sd_event_source_set_priority(3)).
package struct EventPriority: Equatable, Sendable {
    package let rawValue: Int64

    package init(_ rawValue: Int64) {
        self.rawValue = rawValue
    }

    /// Deadlines, and whether a new process has executed its program.
    package static let important = EventPriority(-100)
    /// Processes, notify sockets, signals.
    package static let normal = EventPriority(0)
    /// Bus peers: served when no app and no process waits.
    package static let peer = EventPriority(50)
}

/// A signal that arrived: signalfd_siginfo's fields (signalfd(2)).
package struct SignalInfo: Equatable, Sendable {
    package let signal: Int32
    /// Who sent it; 0 for the kernel.
    package let pid: Int32
    package let uid: UInt32
    /// si_code: SI_USER, SI_QUEUE, CLD_EXITED …
    package let code: Int32
}
