import Glibc

/// systemd's current job for the service of this process. It shows whether a SIGTERM belongs to a stop or to a restart
/// (org.freedesktop.systemd1(5)).
package enum ServiceJob: Equatable, Sendable {
    case stop
    /// The service will be started again at once.
    case restart
    /// Another job or none: another process sent the SIGTERM.
    case other

    /// How long systemd may take to answer. Without an answer a restart counts as a stop, and all apps are terminated.
    private static let timeout = Duration.seconds(10)

    /// Queries systemd on its private socket, which needs no D-Bus daemon.
    /// - Parameter runtime: `/run` for the system's, `XDG_RUNTIME_DIR` for a user's.
    /// - Throws: why systemd could not be queried.
    package static func current(runtime: String) throws(BusError) -> ServiceJob {
        let bus = try BusConnection(path: runtime + "/systemd/private", server: "systemd")
        let unit = try bus.call(
            path: "/org/freedesktop/systemd1", interface: "org.freedesktop.systemd1.Manager", member: "GetUnitByPID",
            [.uint32(UInt32(getpid()))], timeout: timeout)
        guard case .objectPath(let path)? = unit.first else {
            throw .failed("systemd reports no unit for this process")
        }
        let job = try bus.property(
            path: path, interface: "org.freedesktop.systemd1.Unit", "Job", timeout: timeout)
        guard case .structure(let parts) = job, parts.count == 2, case .uint32(let number) = parts[0],
            case .objectPath(let jobPath) = parts[1]
        else { throw .failed("systemd reports no job") }
        if number == 0 { return .other }
        let type = try bus.property(
            path: jobPath, interface: "org.freedesktop.systemd1.Job", "JobType", timeout: timeout)
        guard case .string(let type) = type else { throw .failed("systemd reports no job type") }
        return ServiceJob(type)
    }

    init(_ type: String) {
        switch type {
        case "stop": self = .stop
        case "restart", "try-restart", "reload-or-start": self = .restart
        default: self = .other
        }
    }
}
