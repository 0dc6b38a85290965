import Control
import Glibc
import Systemd

/// Waits for the answer to one request. On a terminal it shows the app's state and the time left. Ctrl-C ends the wait;
/// the daemon still carries the request out.
struct Waiting {
    /// How often the terminal is updated: four times a second can be read. A faster answer leaves no line behind.
    private static let interval = Duration.milliseconds(250)

    private let client: Client
    private let app: String
    private let isShown: Bool

    init(_ client: Client, app: String, _ screen: Screen) {
        self.client = client
        self.app = app
        // The password agent writes to the same line.
        isShown = screen.errorIsTerminal && client.agent == nil
    }

    func wait(for member: String, _ arguments: [Variant]) throws(Failure) -> RequestResult {
        let erase = isShown ? ProgressLine.erase : ""
        Interruption.print(
            "\(erase)greenroomctl: Stopped waiting; greenroomd still carries out the request for '\(escaped(app))'.\n")
        let request = try client.begin(member, arguments)
        var line = ProgressLine()
        defer { line.clear() }
        while true {
            let deadline = isShown ? EventLoop.now() + Self.interval : nil
            if let answer = try client.answer(request, until: deadline, as: RequestResult.self) { return answer }
            if let status = currentStatus() { line.draw(text(status)) }
        }
    }

    /// Ctrl-C ends the program without a message from now on.
    static func endsAtInterrupt() { Interruption.reset() }

    /// `nil` after an error: it does not matter here, because the request itself is answered.
    private func currentStatus() -> AppStatus? {
        guard let pending = try? client.begin("Status", [.string(app)]) else { return nil }
        return (try? client.answer(pending, until: EventLoop.now() + Self.interval, as: AppStatus.self)) ?? nil
    }

    private func text(_ status: AppStatus) -> String {
        if status.launchWaiting != nil { return "\(escaped(app)): waiting for other launches …" }
        return "\(escaped(app)): \(status.state)" + (status.deadline?.timeLeft.map { ", \($0)" } ?? " …")
    }
}

/// One line at the bottom of standard error, which is overwritten.
private struct ProgressLine {
    /// Moves to the first column and clears the line.
    static let erase = "\r\u{1B}[K"
    private var isDrawn = false

    mutating func draw(_ text: String) {
        isDrawn = true
        // The width may have changed. On some terminals, text in the last column starts a new line.
        try? write(Self.erase + text.clipped(to: columns(STDERR_FILENO) - 1), to: STDERR_FILENO)
    }

    mutating func clear() {
        guard isDrawn else { return }
        isDrawn = false
        try? write(Self.erase, to: STDERR_FILENO)
    }
}

/// The message at Ctrl-C, before the program exits with 130 (128 + SIGINT, as in shells).
private enum Interruption {
    /// Set before the signal handler, which may only read it (signal-safety(7)).
    nonisolated(unsafe) private static var text: UnsafeMutableBufferPointer<UInt8>?

    static func print(_ sentence: String) {
        // A shell without job control starts background programs with SIGINT ignored; it stays ignored.
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

    static func reset() {
        if text != nil { signal(SIGINT, SIG_DFL) }
    }
}
