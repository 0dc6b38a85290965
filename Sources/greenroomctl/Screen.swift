import Glibc

/// The properties of standard output and standard error: whether they are terminals, their width, and whether they show
/// colours.
struct Screen {
    let isTerminal: Bool
    let hasColor: Bool
    /// The width of standard output in columns; `nil` if it is no terminal, and nothing is wrapped.
    let width: Int?
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
        width = isTerminal ? columns(STDOUT_FILENO) : nil
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
        case "suspended", "notRunning": self = .faint
        default: return nil
        }
    }
}

/// Writes the whole text. If the reader of a pipe has closed it, SIGPIPE ends the program; where SIGPIPE is ignored, the
/// program ends without a message.
func write(_ text: String, to descriptor: Int32) throws(Failure) {
    var bytes = Array(text.utf8)[...]
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

/// Prints an error to standard error, after the program's name.
func printError(_ failure: Failure) {
    guard !failure.sentence.isEmpty else { return }
    let hint = failure.hint.map { $0 + "\n" } ?? ""
    // If standard error cannot be written, the exit status remains.
    try? write("greenroomctl: \(failure.sentence)\n\(hint)", to: STDERR_FILENO)
}
