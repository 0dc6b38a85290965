import Glibc

/// What systemd is doing with the service that this process is the main one of. A SIGTERM does not say whether it is to
/// stop or to start again; the job that sent it does (org.freedesktop.systemd1(5)).
package enum ServiceJob: Equatable, Sendable {
    case stop
    /// It will be started again at once, by whatever is there then.
    case restart
    /// Another, or none: SIGTERM came from somebody else.
    case other

    /// How long systemd may take; it has just sent a signal, so it is awake.
    private static let patience = Duration.seconds(2)

    /// Asks systemd on its private socket, which needs no D-Bus daemon.
    /// - Parameter runtime: `/run` for the system's, `XDG_RUNTIME_DIR` for a user's.
    /// - Throws: why it could not be asked.
    package static func current(runtime: String) throws(BusError) -> ServiceJob {
        let bus = try BusConnection(path: runtime + "/systemd/private", server: "systemd")
        let unit = try bus.call(
            path: "/org/freedesktop/systemd1", interface: "org.freedesktop.systemd1.Manager", member: "GetUnitByPID",
            [.uint32(UInt32(getpid()))], timeout: patience)
        guard case .objectPath(let path)? = unit.first else { throw .failed("systemd names no unit of ours") }
        let job = try bus.property(
            path: path, interface: "org.freedesktop.systemd1.Unit", "Job", timeout: patience)
        guard case .structure(let parts) = job, parts.count == 2, case .uint32(let number) = parts[0],
            case .objectPath(let jobPath) = parts[1]
        else { throw .failed("systemd names no job") }
        if number == 0 { return .other }
        let type = try bus.property(
            path: jobPath, interface: "org.freedesktop.systemd1.Job", "JobType", timeout: patience)
        guard case .string(let word) = type else { throw .failed("systemd names no kind of job") }
        return ServiceJob(word)
    }

    init(_ word: String) {
        switch word {
        case "stop": self = .stop
        case "restart", "try-restart", "reload-or-start": self = .restart
        default: self = .other
        }
    }
}
