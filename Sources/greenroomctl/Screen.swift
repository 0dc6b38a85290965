import Glibc

/// What standard output and standard error are, and what may be done to them.
struct Screen {
    let isTerminal: Bool
    let hasColor: Bool
    /// Of standard output; `nil`: no terminal, nothing is wrapped or clipped.
    let width: Int?
    let errorIsTerminal: Bool
    let errorHasColor: Bool

    init(_ environment: Environment) {
        // A terminal that can't move its cursor can't do colours either (terminfo's “dumb”).
        let term = environment.variable("TERM") ?? ""
        let isSmart = !term.isEmpty && term != "dumb"
        // no-color.org: when present and not empty.
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

/// The width of a terminal; 80 where it does not say.
func columns(_ descriptor: Int32) -> Int {
    var size = winsize()
    guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
    return Int(size.ws_col)
}

/// A look, by its SGR parameters (ECMA-48).
enum Style: String {
    case heading = "4"
    case bold = "1"
    case faint = "2"
    case good = "1;32"
    case lively = "32"
    case calm = "36"
    case moving = "33"
    case bad = "31"
    case worst = "1;31"

    func applied(to text: String) -> String { text.isEmpty ? "" : "\u{1B}[\(rawValue)m\(text)\u{1B}[0m" }

    /// Of an app's state.
    init?(state: String) {
        switch state {
        case "active": self = .good
        case "inactive": self = .lively
        case "launching", "terminating": self = .moving
        case "background": self = .calm
        case "suspended", "notRunning": self = .faint
        default: return nil
        }
    }
}

/// Writes all of it. A reader that has gone ends the program by SIGPIPE, as pipes have it; where that is ignored, quietly.
func write(_ text: String, to descriptor: Int32) throws(Failure) {
    var bytes = Array(text.utf8)[...]
    while !bytes.isEmpty {
        let count = bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
        if count > 0 {
            bytes = bytes.dropFirst(count)
        } else if errno == EAGAIN {
            // Somebody else has made the terminal non-blocking.
            var polled = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
            poll(&polled, 1, -1)
        } else if errno == EPIPE {
            throw Failure("")
        } else if errno != EINTR {
            throw Failure("could not write: \(String(cString: strerror(errno)))")
        }
    }
}

/// A sentence to standard error, with the program's name before it.
func complain(_ failure: Failure) {
    guard !failure.sentence.isEmpty else { return }
    let hint = failure.hint.map { $0 + "\n" } ?? ""
    // Where standard error is of no use, the exit status has to do.
    try? write("greenroomctl: \(failure.sentence)\n\(hint)", to: STDERR_FILENO)
}
