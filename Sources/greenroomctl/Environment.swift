import Glibc

/// The program's inputs from its process, as values that tests can set.
package struct Environment: Sendable {
    package var isRoot: Bool
    /// The value of an environment variable.
    package var variable: @Sendable (String) -> String?

    package init(isRoot: Bool, variable: @escaping @Sendable (String) -> String?) {
        self.isRoot = isRoot
        self.variable = variable
    }

    package static let ofProcess = Environment(
        isRoot: geteuid() == 0, variable: { name in getenv(name).map { String(cString: $0) } })
}

/// The daemon to connect to, and hints for the case that it does not run.
package struct Endpoint: Equatable, Sendable {
    static let systemRuntime = "/run/greenroom"

    package var runtime: String
    /// The command that starts this daemon.
    package var start: String
    /// The socket of the other daemon that the user may mean, and the option that selects it.
    package var other: (socket: String, option: String)?

    package var socket: String { runtime + "/bus" }

    /// With `--runtime` that folder; for root and with `--system` the system daemon; otherwise the user's daemon.
    package init(_ invocation: Invocation, _ environment: Environment) throws(Failure) {
        let user = Self.userRuntime(environment)
        if let given = invocation.options[.runtime] {
            runtime = given.count > 1 && given.hasSuffix("/") ? String(given.dropLast()) : given
            start = "greenroomd --runtime \(escaped(runtime))"
        } else if invocation.has(.system) || (environment.isRoot && !invocation.has(.user)) {
            runtime = Self.systemRuntime
            start = "greenroomd --system"
            other = user.map { ($0 + "/bus", "--user") }
        } else if let user {
            runtime = user
            start = "greenroomd --user"
            other = (Self.systemRuntime + "/bus", "--system")
        } else {
            throw Failure("Neither XDG_RUNTIME_DIR nor HOME is set; use --runtime DIR or --system.")
        }
    }

    /// The same folder as the daemon's (`Folders`). Without a session, XDG_RUNTIME_DIR is not set.
    private static func userRuntime(_ environment: Environment) -> String? {
        func folder(_ name: String) -> String? {
            environment.variable(name).flatMap { $0.hasPrefix("/") ? $0 : nil }
        }
        return (folder("XDG_RUNTIME_DIR") ?? folder("HOME").map { $0 + "/.cache" }).map { $0 + "/greenroom" }
    }

    package static func == (a: Endpoint, b: Endpoint) -> Bool {
        a.runtime == b.runtime && a.start == b.start && a.other?.socket == b.other?.socket
            && a.other?.option == b.other?.option
    }
}

/// Why the command failed: a sentence, and the exit status.
package struct Failure: Error, Equatable, Sendable {
    package var sentence: String
    package var status: Int32
    /// What the user can do, on a line of its own.
    package var hint: String?
    /// Whether the connection was lost during a call; another daemon may follow.
    package var isLost = false
    /// Whether the daemon refused this user.
    package var isRefusal: Bool

    package init(_ sentence: String, status: Int32 = 1, hint: String? = nil, isRefusal: Bool = false) {
        self.isRefusal = isRefusal
        self.sentence = sentence
        self.status = status
        self.hint = hint
    }
}
