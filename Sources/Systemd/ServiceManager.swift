import CSystemd
import Glibc
package import Posix

/// The service manager that started this process, if one did (sd_notify(3), sd_listen_fds(3)).
package enum ServiceManager {
    /// A notification to the service manager.
    package enum Notice: Equatable, Sendable {
        case ready
        case stopping
        /// Reloading begins; `ready` ends it. Since systemd 253 `RELOADING=1` requires the time.
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
            // A line end would begin another assignment.
            case .status(let text): "STATUS=" + text.split(whereSeparator: \.isNewline).joined(separator: " ")
            case .mainPID(let pid): "MAINPID=\(pid)"
            case .extendTimeout(let time): "EXTEND_TIMEOUT_USEC=\(time.wholeMicroseconds)"
            }
        }
    }

    /// Notifies the service manager.
    /// - Returns: whether there is one (`NOTIFY_SOCKET`).
    @discardableResult
    package static func notify(_ notices: Notice...) throws(SystemError) -> Bool {
        try send(notices.map(\.text).joined(separator: "\n"))
    }

    /// How long the service manager waits for a sign of life (`WatchdogSec=`, sd_watchdog_enabled(3)); `nil`: it waits for none.
    package static func watchdogLimit() throws(SystemError) -> Duration? {
        var microseconds: UInt64 = 0
        let isEnabled = try check(sd_watchdog_enabled(0, &microseconds), "sd_watchdog_enabled") > 0
        return isEnabled && microseconds < 1 << 62 ? .microseconds(Int64(microseconds)) : nil
    }

    /// Sends assignments to the service manager: `KEY=VALUE`, a line each.
    /// - Returns: whether there is one.
    @discardableResult
    package static func send(_ text: String) throws(SystemError) -> Bool {
        try check(sd_notify(0, text), "sd_notify") > 0
    }

    /// Stores duplicates of descriptors in the service manager, which passes them to the next instance under this name.
    /// - Returns: whether there is a service manager. It may still drop them (`FileDescriptorStoreMax=`).
    @discardableResult
    package static func store(_ descriptors: [SharedDescriptor], name: String) throws(SystemError) -> Bool {
        // FDPOLL=0: otherwise it closes descriptors that hang up, such as the pidfd of a process that has ended.
        let text = "FDSTORE=1\nFDPOLL=0\nFDNAME=\(name)"
        let result = descriptors.map(\.raw).withUnsafeBufferPointer {
            sd_pid_notify_with_fds(0, 0, text, $0.baseAddress, UInt32($0.count))
        }
        return try check(result, "sd_pid_notify_with_fds FDSTORE=1", name) > 0
    }

    /// Removes all descriptors of this name from the store.
    @discardableResult
    package static func removeStored(name: String) throws(SystemError) -> Bool {
        try check(sd_notify(0, "FDSTOREREMOVE=1\nFDNAME=\(name)"), "sd_notify FDSTOREREMOVE=1", name) > 0
    }

    /// Waits until the service manager has read all notifications, for at most `timeout`.
    @discardableResult
    package static func barrier(timeout: Duration) throws(SystemError) -> Bool {
        try check(sd_notify_barrier(0, timeout.wholeMicroseconds), "sd_notify_barrier") > 0
    }

    /// A descriptor that the service manager passed at the start.
    package struct PassedDescriptor: Equatable, Sendable {
        /// Close-on-exec. The caller owns it.
        package let number: Int32
        /// From `LISTEN_FDNAMES`: the name of the socket unit or of the stored descriptor; `unknown` without one.
        package let name: String

        package init(number: Int32, name: String) {
            self.number = number
            self.name = name
        }
    }

    /// Returns the descriptors that the service manager passed (`LISTEN_FDS`), once: the variables are removed, so that no
    /// child uses them.
    package static func takePassedDescriptors() throws(SystemError) -> [PassedDescriptor] {
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
            return PassedDescriptor(number: firstPassedDescriptor + index, name: name ?? "unknown")
        }
    }

    /// SD_LISTEN_FDS_START
    package static let firstPassedDescriptor: Int32 = 3
}
