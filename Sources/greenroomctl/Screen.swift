import Glibc
import JSON

/// The properties of standard output and standard error: whether they are terminals, their width, and whether they show
/// colours.
struct Screen {
    let isTerminal: Bool
    let hasColor: Bool
    /// The width of standard output in columns: COLUMNS, or the terminal's. `nil` if it is no terminal and COLUMNS is not
    /// set: nothing is wrapped.
    let width: Int?
    /// The same for standard error.
    let errorWidth: Int?
    let errorIsTerminal: Bool
    let errorHasColor: Bool

    init(_ environment: Environment) {
        // A terminal that cannot move its cursor shows no colours either (terminfo's "dumb").
        let term = environment.variable("TERM") ?? ""
        let isSmart = !term.isEmpty && term != "dumb"
        // no-color.org: NO_COLOR counts if it is set and not empty.
        let wantsColor = isSmart && (environment.variable("NO_COLOR") ?? "").isEmpty
        isTerminal = isatty(STDOUT_FILENO) == 1
        errorIsTerminal = isatty(STDERR_FILENO) == 1 && isSmart
        hasColor = isTerminal && wantsColor
        errorHasColor = isatty(STDERR_FILENO) == 1 && wantsColor
        let given = environment.variable("COLUMNS").flatMap { UInt16($0) }.flatMap { $0 > 0 ? Int($0) : nil }
        width = given ?? (isTerminal ? columns(STDOUT_FILENO) : nil)
        errorWidth = given ?? (isatty(STDERR_FILENO) == 1 ? columns(STDERR_FILENO) : nil)
    }

    func paint(_ text: String, _ style: Style?) -> String {
        hasColor ? style.map { $0.applied(to: text) } ?? text : text
    }
}

/// The width of a terminal; 80 if it does not report one.
func columns(_ descriptor: Int32) -> Int {
    var size = winsize()
    guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
    return Int(size.ws_col)
}

/// A text style, by its SGR parameters (ECMA-48).
enum Style: String {
    case heading = "4"
    case bold = "1"
    case faint = "2"
    case boldGreen = "1;32"
    case green = "32"
    case cyan = "36"
    case magenta = "35"
    case yellow = "33"
    case red = "31"
    case boldRed = "1;31"

    func applied(to text: String) -> String { text.isEmpty ? "" : "\u{1B}[\(rawValue)m\(text)\u{1B}[0m" }

    /// The style of an app's state.
    init?(state: String) {
        switch state {
        case "active": self = .boldGreen
        case "inactive": self = .green
        case "launching", "terminating": self = .yellow
        case "background": self = .cyan
        case "suspended": self = .magenta
        case "notRunning": self = .faint
        default: return nil
        }
    }
}

/// Writes the whole text. If the reader of a pipe has closed it, SIGPIPE ends the program; where SIGPIPE is ignored, the
/// program ends without a message.
func write(_ text: String, to descriptor: Int32) throws(Failure) { try write(Array(text.utf8)[...], to: descriptor) }

func write(_ bytes: ArraySlice<UInt8>, to descriptor: Int32) throws(Failure) {
    var bytes = bytes
    while !bytes.isEmpty {
        let count = bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
        if count > 0 {
            bytes = bytes.dropFirst(count)
        } else if errno == EAGAIN {
            // Another program made the terminal non-blocking.
            var polled = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
            poll(&polled, 1, -1)
        } else if errno == EPIPE {
            throw Failure("")
        } else if errno != EINTR {
            throw Failure("Cannot write: \(String(cString: strerror(errno)))")
        }
    }
}

/// Prints an error to standard error: after the program's name, or as one JSON object on a line.
func printError(_ failure: Failure, asJSON: Bool, width: Int?) {
    guard !failure.sentence.isEmpty else { return }
    // If standard error cannot be written, the exit status remains.
    if asJSON {
        let document = JSONValue.object([("error", failure.json)])
        try? write(document.serialized(pretty: false) + "\n", to: STDERR_FILENO)
    } else {
        let hints = failure.hint?.split(separator: "\n").map(String.init) ?? []
        let lines = ["greenroomctl: \(failure.sentence)"] + hints
        let text = lines.flatMap { line in width.map { wrapped(line, to: $0) } ?? [line] }
        try? write(text.joined(separator: "\n") + "\n", to: STDERR_FILENO)
    }
}

extension Failure {
    /// `name` and `message`; `hint` if there is one.
    var json: JSONValue {
        var members: [(String, JSONValue)] = [("name", .string(name)), ("message", .string(sentence))]
        if let hint { members.append(("hint", .string(hint))) }
        return .object(members)
    }
}
