import Control
import Glibc

/// The program's inputs from its process, as values that tests can set.
package struct Environment: Sendable {
    package var isRoot: Bool
    /// The value of an environment variable.
    package var variable: @Sendable (String) -> String?
    package var userID: UInt32 = 0
    /// Whether a file exists.
    package var exists: @Sendable (String) -> Bool = { _ in false }
    /// Where relative paths start.
    package var workingDirectory = "/"
    /// The standard descriptors that were closed when the program was started.
    package var closedDescriptors: [Int32] = []

    package init(isRoot: Bool, variable: @escaping @Sendable (String) -> String?) {
        self.isRoot = isRoot
        self.variable = variable
    }

    package static let ofProcess: Environment = {
        var environment = Environment(
            isRoot: geteuid() == 0, variable: { name in getenv(name).map { String(cString: $0) } })
        environment.userID = geteuid()
        environment.exists = { access($0, F_OK) == 0 }
        var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
        if getcwd(&buffer, buffer.count) != nil {
            environment.workingDirectory = String(
                decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }
        return environment
    }()

    /// A path without empty parts and `.`; a relative one starts at the working directory, as for greenroomd.
    func absolutePath(_ path: String) -> String {
        let whole = path.hasPrefix("/") ? path : workingDirectory + "/" + path
        return "/" + whole.split(separator: "/").filter { $0 != "." }.joined(separator: "/")
    }

    /// A folder that an environment variable names; `nil` if it is not an absolute path.
    func folder(_ name: String) -> String? {
        variable(name).flatMap { $0.hasPrefix("/") ? $0 : nil }
    }
}

/// The daemon to connect to, and hints for the case that it does not run.
package struct Endpoint: Equatable, Sendable {
    static let systemRuntime = ControlNames.systemRuntime

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
            runtime = environment.absolutePath(given)
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

    /// The daemon with this runtime folder, which this program has started.
    init(runtime: String) {
        self.runtime = runtime
        start = "greenroomd --runtime \(escaped(runtime))"
    }

    /// The same folder as the daemon's (`Folders`). Without a session, XDG_RUNTIME_DIR is not set. Programs that start others with few
    /// variables do not set it within a session either: then the daemon of the session is meant, if there is one.
    private static func userRuntime(_ environment: Environment) -> String? {
        let session = "/run/user/\(environment.userID)/greenroom"
        if environment.folder("XDG_RUNTIME_DIR") == nil, environment.exists(session + "/bus") { return session }
        return (environment.folder("XDG_RUNTIME_DIR") ?? environment.folder("HOME").map { $0 + "/.cache" })
            .map { $0 + "/greenroom" }
    }

    /// What the user can do if no daemon answers.
    var hint: String {
        if let other, access(other.socket, F_OK) == 0 {
            return "Another greenroomd runs at \(escaped(other.socket)); try: greenroomctl \(other.option) …"
        }
        return "To start it: \(start)"
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
    /// The name of the error, as in D-Bus: the one of the daemon's answer, or `Failed` or `InvalidArgument` (wrong usage).
    package var name: String
    /// What the user can do, on lines of their own.
    package var hint: String?
    /// Whether the connection was lost during a call; another daemon may follow.
    package var isLost = false
    /// Whether the daemon refused this user.
    package var isRefusal: Bool
    /// Whether no daemon listens.
    var isOfNoServer: Bool { name == "org.freedesktop.DBus.Error.NoServer" }

    /// The exit status for wrong usage.
    static let wrongUsage: Int32 = 2

    package init(_ sentence: String, status: Int32 = 1, hint: String? = nil, isRefusal: Bool = false) {
        self.isRefusal = isRefusal
        self.sentence = sentence
        self.status = status
        self.hint = hint
        name = (status == Self.wrongUsage ? ControlNames.Failure.invalidArgument : .failed).name
    }
}
