import Control
import Glibc
import Systemd

/// What a waiting command line shows: on a terminal the app's state and the time left, and at Ctrl-C, which ends the wait,
/// that the daemon still carries the requests out.
final class Waiting {
    /// How often the terminal is updated: four times a second can be read. A faster answer leaves no line behind.
    private static let interval = Duration.milliseconds(250)

    private let client: Client
    private let isShown: Bool
    private var line = ProgressLine()

    init(_ apps: [String], _ client: Client, _ screen: Screen) {
        self.client = client
        // The password agent writes to the same line.
        isShown = screen.errorIsTerminal && client.agent == nil
        let erase = isShown ? ProgressLine.erase : ""
        let what = apps.count == 1 ? "the request for '\(escaped(apps[0]))'" : "the requests"
        Interruption.print("\(erase)greenroomctl: Stopped waiting; greenroomd still carries out \(what).\n")
    }

    /// When `update` is to be called; `nil`: never.
    var nextUpdate: Duration? { isShown ? EventLoop.now() + Self.interval : nil }

    /// Shows the state of an app that is waited for.
    func update(_ app: String, others: Int) {
        guard isShown, let status = currentStatus(app) else { return }
        line.draw(text(app, status) + (others > 0 ? " (and \(others) more)" : ""))
    }

    func clear() { line.clear() }

    /// Ctrl-C ends the program without a message from now on.
    static func endsAtInterrupt() { Interruption.reset() }

    /// `nil` after an error: it does not matter here, because the request itself is answered.
    private func currentStatus(_ app: String) -> AppStatus? {
        guard let pending = try? client.begin("Status", [.string(app)]) else { return nil }
        return (try? client.answer(pending, until: EventLoop.now() + Self.interval, as: AppStatus.self)) ?? nil
    }

    private func text(_ app: String, _ status: AppStatus) -> String {
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
