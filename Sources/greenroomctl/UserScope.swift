import Glibc
import Linux
import Posix
import Systemd

/// A command that is started in a login session is in a control group that belongs to root, out of which a user's daemon cannot take it.
/// The user's service manager can: it asks the system's (systemd-run(1), `--user --scope`).
package enum UserScope {
    /// After that the command is executed without the daemon.
    private static let longest = Duration.seconds(3)

    /// Whether a process in this group has to ask the service manager: the user's daemon is in another part of the tree.
    ///
    /// - Parameter group: as in /proc/PID/cgroup.
    package static func isNeeded(in group: String, user: UInt32) -> Bool {
        let manager = "/user.slice/user-\(user).slice/user@\(user).service"
        return group.hasPrefix("/user.slice/user-\(user).slice/") && !group.hasPrefix(manager + "/")
    }

    /// Moves this process to a scope of the user's service manager, if it is in a login session. Without one, or without a service manager, it
    /// stays where it is.
    static func enter(user: UInt32) {
        guard let text = try? readFile(at: "/proc/self/cgroup", limit: 1 << 16),
            let group = CgroupMembership(parsing: text).unified, isNeeded(in: group, user: user)
        else { return }
        try? requestScope(user)
    }

    private static func requestScope(_ user: UInt32) throws(BusError) {
        let deadline = EventLoop.now() + longest
        let manager = "org.freedesktop.systemd1"
        let bus = try BusConnection(busAddress: "unix:path=/run/user/\(user)/bus", destination: manager)
        let properties: [(String, Variant)] = [
            ("PIDs", .array("u", [.uint32(UInt32(getpid()))])), ("Description", .string("greenroomctl run")),
            ("CollectMode", .string("inactive-or-failed")),
        ]
        let answer = try bus.call(
            path: "/org/freedesktop/systemd1", interface: manager + ".Manager", member: "StartTransientUnit",
            [
                .string("greenroom-run-\(getpid()).scope"), .string("fail"),
                .array("(sv)", properties.map { .structure([.string($0.0), .variant($0.1)]) }), .array("(sa(sv))", []),
            ], timeout: longest)
        guard let job = answer.first?.stringValue else { return }
        // The process is in the scope once its job is over.
        while let signal = try bus.nextSignal(until: deadline) {
            if signal.member == "JobRemoved", signal.arguments.dropFirst().first?.stringValue == job { return }
        }
    }
}
