import Glibc

/// Waits for a descriptor that somebody else may close while it is waited for, as libsystemd does with a connection's when
/// that ends: a copy of it is watched.
///
/// A descriptor that is closed leaves epoll(7) only when it was the last of its open file. As long as a process that is just
/// being made has a copy of it, it stays there, can't be taken out any more, and what comes of it makes libsystemd abort.
final class DescriptorWatch {
    private let copy: Int32
    private let source: EventSource

    init(
        _ descriptor: Int32, in loop: EventLoop, priority: EventPriority, handler: @escaping () -> Void
    ) throws(SystemdError) {
        let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 3)
        guard copy >= 0 else { throw SystemdError("fcntl F_DUPFD_CLOEXEC", errno: errno) }
        do throws(SystemdError) {
            source = try loop.addDescriptor(copy, events: .readable, priority: priority) { _ in handler() }
        } catch {
            close(copy)
            throw error
        }
        self.copy = copy
    }

    func setEvents(_ events: DescriptorEvents) throws(SystemdError) { try source.setEvents(events) }

    deinit {
        source.cancel()
        close(copy)
    }
}
