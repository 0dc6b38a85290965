import Glibc
import JSON
import Systemd

/// Waits for the answer of one request. On a terminal it shows what for, with the time left; Ctrl-C ends the waiting, not
/// what was asked for.
struct Waiting {
    /// How often the daemon is asked how far it is, on a terminal: as often as one can read it. Answers that come sooner
    /// leave nothing to show, and nothing flickers.
    private static let pace = Duration.milliseconds(250)

    private let client: Client
    private let app: String
    private let isShown: Bool

    init(_ client: Client, app: String, _ screen: Screen) {
        self.client = client
        self.app = app
        // It writes where a password is asked for.
        isShown = screen.errorIsTerminal && client.agent == nil
    }

    func wait(for member: String, _ arguments: [Variant]) throws(Failure) -> JSONValue {
        let erase = isShown ? ProgressLine.erase : ""
        Interruption.answer(with: "\(erase)greenroomctl: no longer waiting; the request for \(escaped(app)) goes on\n")
        let request = try client.begin(member, arguments)
        var line = ProgressLine()
        defer { line.clear() }
        while true {
            let deadline = isShown ? EventLoop.now() + Self.pace : nil
            if let answer = try client.answer(request, until: deadline) { return answer }
            if let status = currentStatus() { line.draw(text(status)) }
        }
    }

    /// Why the daemon won't tell is no matter here: the request itself will be answered.
    private func currentStatus() -> Record? {
        guard let asked = try? client.begin("Status", [.string(app)]),
            let answer = try? client.answer(asked, until: EventLoop.now() + Self.pace)
        else { return nil }
        return Record(answer)
    }

    private func text(_ status: Record) -> String {
        let head = "\(escaped(app)): \(status.state)"
        guard let deadline = status.record("deadline"), let left = deadline.seconds("remainingSeconds") else {
            return head + " …"
        }
        return "\(head), \(timeSpan(left)) left \(purpose(deadline.text("what") ?? "?"))"
    }
}

/// One line at the bottom of standard error, written over and over.
private struct ProgressLine {
    /// To the first column, and nothing behind it.
    static let erase = "\r\u{1B}[K"
    private var isDrawn = false

    mutating func draw(_ text: String) {
        isDrawn = true
        // The terminal may have another width by now; its last column would make some of them begin a new line.
        try? write(Self.erase + text.clipped(to: columns(STDERR_FILENO) - 1), to: STDERR_FILENO)
    }

    mutating func clear() {
        guard isDrawn else { return }
        isDrawn = false
        try? write(Self.erase, to: STDERR_FILENO)
    }
}

/// What is said at Ctrl-C, before the program ends with 130 as shells have it.
private enum Interruption {
    /// Set before the handler is, which may only read it (signal-safety(7)).
    nonisolated(unsafe) private static var text: UnsafeMutableBufferPointer<UInt8>?

    static func answer(with sentence: String) {
        // Ignored from the start: somebody runs us in the background and does not want us interrupted.
        var before = sigaction()
        sigaction(SIGINT, nil, &before)
        guard unsafeBitCast(before.__sigaction_handler.sa_handler, to: Int.self) == unsafeBitCast(SIG_DFL, to: Int.self)
        else { return }
        let bytes = Array(sentence.utf8)
        let buffer = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: bytes.count)
        _ = buffer.initialize(from: bytes)
        text = buffer
        signal(SIGINT) { _ in
            if let text = Interruption.text { Glibc.write(STDERR_FILENO, text.baseAddress, text.count) }
            _exit(130)
        }
    }
}
