import CSystemd
import Glibc
package import Posix

/// What passes between us and the service manager that started us, if one did (sd_notify(3), sd_listen_fds(3)).
package enum ServiceManager {
    /// A word to the service manager.
    package enum Notice: Equatable, Sendable {
        case ready
        case stopping
        /// Reloading begins; `ready` says that it is over. `RELOADING=1` needs the time with it since systemd 253.
        case reloading
        case watchdog
        case status(String)
        case mainPID(Int32)
        case extendTimeout(Duration)

        var text: String {
            switch self {
            case .ready: "READY=1"
            case .stopping: "STOPPING=1"
            case .reloading: "RELOADING=1\nMONOTONIC_USEC=\(EventLoop.now().wholeMicroseconds)"
            case .watchdog: "WATCHDOG=1"
            // A line end would begin an assignment of its own.
            case .status(let text): "STATUS=" + text.split(whereSeparator: \.isNewline).joined(separator: " ")
            case .mainPID(let pid): "MAINPID=\(pid)"
            case .extendTimeout(let time): "EXTEND_TIMEOUT_USEC=\(time.wholeMicroseconds)"
            }
        }
    }

    /// Tells the service manager.
    /// - Returns: whether there was one to tell (`NOTIFY_SOCKET`).
    @discardableResult
    package static func notify(_ notices: Notice...) throws(SystemError) -> Bool {
        try tell(notices.map(\.text).joined(separator: "\n"))
    }

    /// Tells whoever listens on `NOTIFY_SOCKET` in its own words: `KEY=VALUE`, a line each.
    /// - Returns: whether there was one to tell.
    @discardableResult
    package static func tell(_ text: String) throws(SystemError) -> Bool {
        try check(sd_notify(0, text), "sd_notify") > 0
    }

    /// Gives descriptors to the service manager, which hands them to our next start under this name. They stay ours too.
    /// - Returns: whether there was a service manager; it may still have dropped them (`FileDescriptorStoreMax=`).
    @discardableResult
    package static func store(_ descriptors: [SharedDescriptor], name: String) throws(SystemError) -> Bool {
        // FDPOLL=0: else it would close those that hang up, as a pidfd does when its process has ended.
        let text = "FDSTORE=1\nFDPOLL=0\nFDNAME=\(name)"
        let result = descriptors.map(\.raw).withUnsafeBufferPointer {
            sd_pid_notify_with_fds(0, 0, text, $0.baseAddress, UInt32($0.count))
        }
        return try check(result, "sd_pid_notify_with_fds FDSTORE=1", name) > 0
    }

    /// Takes all descriptors of this name back out of the store.
    @discardableResult
    package static func removeStored(name: String) throws(SystemError) -> Bool {
        try check(sd_notify(0, "FDSTOREREMOVE=1\nFDNAME=\(name)"), "sd_notify FDSTOREREMOVE=1", name) > 0
    }

    /// Waits until the service manager has read all that was said to it, at most `timeout`.
    @discardableResult
    package static func barrier(timeout: Duration) throws(SystemError) -> Bool {
        try check(sd_notify_barrier(0, timeout.wholeMicroseconds), "sd_notify_barrier") > 0
    }

    /// A descriptor that was handed over at the start.
    package struct Handed: Equatable, Sendable {
        /// Close-on-exec.
        package let descriptor: SharedDescriptor
        /// From `LISTEN_FDNAMES`: the socket unit's, or the one it was stored under; `unknown` without one.
        package let name: String

        package init(descriptor: SharedDescriptor, name: String) {
            self.descriptor = descriptor
            self.name = name
        }
    }

    /// The descriptors that were handed over (`LISTEN_FDS`), once: the environment is cleared, so that no child takes
    /// them for its own.
    package static func takeHandedDescriptors() throws(SystemError) -> [Handed] {
        var names: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
        let count = try check(sd_listen_fds_with_names(1, &names), "sd_listen_fds_with_names")
        defer {
            if let names {
                for index in 0..<Int(count) { free(names[index]) }
                free(names)
            }
        }
        return (0..<count).map { index in
            let name = names?[Int(index)].map { String(cString: $0) }
            return Handed(
                descriptor: SharedDescriptor(Descriptor(adopting: firstHandedDescriptor + index)),
                name: name ?? "unknown")
        }
    }

    /// SD_LISTEN_FDS_START
    package static let firstHandedDescriptor: Int32 = 3

    /// How often the service manager wants to hear `watchdog`, at least; half of it is the custom. `nil`: not at all.
    package static func watchdogInterval() throws(SystemError) -> Duration? {
        var microseconds: UInt64 = 0
        guard try check(sd_watchdog_enabled(0, &microseconds), "sd_watchdog_enabled") > 0 else { return nil }
        return .microseconds(microseconds)
    }
}
