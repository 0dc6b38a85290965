import CLinux

/// The events of a descriptor, to wait for or reported (epoll(7)).
package struct EpollEvents: OptionSet, Sendable {
    package let rawValue: UInt32
    package init(rawValue: UInt32) { self.rawValue = rawValue }

    package static let readable = EpollEvents(rawValue: 0x001)
    /// EPOLLPRI: urgent data of TCP, or an exceptional condition, as PSI triggers and cgroup.events report it.
    package static let priority = EpollEvents(rawValue: 0x002)
    package static let writable = EpollEvents(rawValue: 0x004)
    /// Always reported, as is `hangUp`.
    package static let error = EpollEvents(rawValue: 0x008)
    package static let hangUp = EpollEvents(rawValue: 0x010)
    /// EPOLLRDHUP: the peer sends nothing more.
    package static let readHangUp = EpollEvents(rawValue: 0x2000)
    /// EPOLLET: each change once, not as long as the condition lasts.
    package static let edge = EpollEvents(rawValue: 1 << 31)

    /// Nothing more can come.
    package static let ends: EpollEvents = [.error, .hangUp, .readHangUp]
}

/// The readiness of many descriptors, as one descriptor (epoll(7)).
package final class Epoll {
    /// Readable while one of the descriptors is ready.
    package let descriptor: SharedDescriptor

    package struct Ready {
        package let events: EpollEvents
        /// The number that the descriptor was added with.
        package let data: UInt64
    }

    package init() throws(SystemError) {
        descriptor = SharedDescriptor(Descriptor(adopting: try check(clinux_epoll_create(), "epoll_create1")))
    }

    /// - Returns: 0, or a positive errno: EPERM for a descriptor that cannot be polled, ENOSPC beyond
    ///   fs.epoll.max_user_watches.
    package func add(_ number: Int32, _ events: EpollEvents, data: UInt64) -> Int32 {
        -clinux_epoll_set(descriptor.raw, number, events.rawValue, data, true)
    }

    /// A descriptor stays in the set until the last descriptor of its file is closed, in whichever process that is.
    package func remove(_ number: Int32) { _ = clinux_epoll_remove(descriptor.raw, number) }

    /// Returns what is ready now, at most 64 descriptors, or `most` if that is less. The others stay ready.
    package func take(_ most: Int = .max) throws(SystemError) -> [Ready] {
        let capacity = min(most, Int(clinux_most_events))
        var result: Int32 = 0
        let ready = withUnsafeTemporaryAllocation(of: clinux_epoll_event.self, capacity: capacity) { buffer in
            guard let start = buffer.baseAddress else { return [Ready]() }
            result = clinux_epoll_take(descriptor.raw, start, Int32(capacity))
            return (0..<Int(max(result, 0))).map {
                Ready(events: EpollEvents(rawValue: buffer[$0].events), data: buffer[$0].data)
            }
        }
        try check(result, "epoll_wait")
        return ready
    }
}
