import Glibc

/// What the program finds around it, as values, so that tests can say it.
package struct Environment: Sendable {
    package var isRoot: Bool
    /// Looks up a variable.
    package var variable: @Sendable (String) -> String?

    package init(isRoot: Bool, variable: @escaping @Sendable (String) -> String?) {
        self.isRoot = isRoot
        self.variable = variable
    }

    package static let ofProcess = Environment(
        isRoot: geteuid() == 0, variable: { name in getenv(name).map { String(cString: $0) } })
}

/// Which daemon is meant, and what to say where there is none.
package struct Endpoint: Equatable, Sendable {
    static let systemRuntime = "/run/greenroom"

    package var runtime: String
    /// How to start a daemon there.
    package var start: String
    /// Another one that may be meant, with the option that names it.
    package var other: (socket: String, option: String)?

    package var socket: String { runtime + "/bus" }

    /// `--runtime`, else the system's for root and `--system`, else the user's.
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
            throw Failure("neither XDG_RUNTIME_DIR nor HOME is set: say --runtime DIR or --system")
        }
    }

    /// As the daemon's (`Folders`): without a session there is no XDG_RUNTIME_DIR.
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

/// Why it did not come about: a sentence, and the exit status.
package struct Failure: Error, Equatable, Sendable {
    package var sentence: String
    package var status: Int32
    /// What may help, on a line of its own.
    package var hint: String?
    /// The daemon went away while it was asked; another one may follow.
    package var isLost = false
    /// The daemon does not let this user.
    package var isRefusal: Bool

    package init(_ sentence: String, status: Int32 = 1, hint: String? = nil, isRefusal: Bool = false) {
        self.isRefusal = isRefusal
        self.sentence = sentence
        self.status = status
        self.hint = hint
    }
}
