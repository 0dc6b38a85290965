import Glibc
import Manifest

/// `top`: a program of its own shows the screen, so that no other verb loads ncurses.
extension Session {
    private static let program = "greenroom-top"

    func top() throws(Failure) -> Int32 {
        if wantsJSON {
            throw Failure("top prints no JSON; use 'list --json' or 'watch --json'", status: Failure.wrongUsage)
        }
        if !invocation.has(.batch), isatty(STDIN_FILENO) != 1 || isatty(STDOUT_FILENO) != 1 {
            throw Failure(
                "top needs a terminal for its keys and its screen; use --batch", status: Failure.wrongUsage)
        }
        let endpoint = try Endpoint(invocation, environment)
        // This also says what to do if no daemon answers.
        _ = try connect()
        let control = try Self.ownPath()
        var arguments = [Self.program, "--runtime", endpoint.runtime, "--control", control]
        arguments += TopOptions(invocation).arguments
        throw try Self.executing(Self.program, arguments)
    }

    /// Executes a program of this package in this process.
    /// - Parameter arguments: with its name.
    /// - Returns: why it was not executed.
    static func executing(_ program: String, _ arguments: [String]) throws(Failure) -> Failure {
        var pointers = arguments.map { strdup($0) } + [nil]
        defer { for pointer in pointers { free(pointer) } }
        let control = try ownPath()
        let folder = control.lastIndex(of: "/").map { String(control[..<$0]) } ?? ""
        // As `make install` has them, and as the compiler does.
        let paths = ["\(folder)/../libexec/greenroom/\(program)", "\(folder)/\(program)"]
        for path in paths {
            execv(path, &pointers)
            guard errno == ENOENT else {
                return Failure("Cannot execute \(escaped(path)): \(String(cString: strerror(errno)))")
            }
        }
        return Failure("\(program) is not installed: it is neither \(escaped(paths.joined(separator: " nor ")))")
    }

    private static func ownPath() throws(Failure) -> String {
        guard let path = realpath("/proc/self/exe", nil) else {
            throw Failure("Cannot read /proc/self/exe: \(String(cString: strerror(errno)))")
        }
        defer { free(path) }
        return String(cString: path)
    }
}

/// The options of `top`.
package struct TopOptions {
    /// The keys of `--sort`, as greenroom-top has them.
    package static let keys = ["name", "state", "memory", "resident", "swapped", "saved", "cpu", "wakes", "left"]
    /// A list of 1,000 apps takes the daemon some 50 ms.
    private static let shortestInterval = Duration.milliseconds(200)

    private let invocation: Invocation

    init(_ invocation: Invocation) { self.invocation = invocation }

    /// Why the options cannot be used.
    static func problem(_ invocation: Invocation) -> String? {
        let options = invocation.options
        if let text = options[.sort], !keys.contains(text) {
            return "--sort: invalid key '\(escaped(text))'" + Invocation.expectation(text, keys)
        }
        if let text = options[.interval], interval(text) == nil {
            return "--interval: invalid time '\(escaped(text))'; expected a time span of at least 200ms, such as 2s"
        }
        if let text = options[.count] {
            guard let count = UInt32(text), count > 0 else { return "--count: invalid number '\(escaped(text))'" }
            if options[.batch] == nil { return "--count is for --batch" }
        }
        return nil
    }

    /// Milliseconds.
    private static func interval(_ text: String) -> UInt32? {
        // `infinity` is no interval.
        guard let parsed = parseTimeSpan(text), let time = parsed, time >= shortestInterval else { return nil }
        return UInt32(exactly: (time / .milliseconds(1)).rounded())
    }

    /// The arguments of greenroom-top.
    var arguments: [String] {
        let options = invocation.options
        var words: [String] = []
        if let time = options[.interval].flatMap(Self.interval) { words += ["--interval", String(time)] }
        if let key = options[.sort] { words += ["--sort", key] }
        if invocation.has(.batch) { words += ["--batch", options[.count] ?? "1"] }
        return words
    }
}
