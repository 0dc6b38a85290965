import CSystemd
import Glibc
package import Posix

/// The levels of syslog (sd-daemon(3)).
package enum LogLevel: Int32, Comparable, CaseIterable, Sendable {
    case emergency = 0
    case alert = 1
    case critical = 2
    case error = 3
    case warning = 4
    case notice = 5
    case info = 6
    case debug = 7

    /// Parses a name, as systemd accepts it in `SYSTEMD_LOG_LEVEL`, or a number.
    package init?(name: String) {
        let names = ["emerg", "alert", "crit", "err", "warning", "notice", "info", "debug"]
        guard let number = names.firstIndex(of: name) ?? Int(name) else { return nil }
        self.init(rawValue: Int32(clamping: number))
    }

    package static func < (left: LogLevel, right: LogLevel) -> Bool { left.rawValue < right.rawValue }
}

/// The log: entries go to the journal, or without journald to standard error. This is decided once, at start; while no
/// journald listens at its socket any more, entries go to standard error.
///
/// If standard error is a terminal, entries go to both.
package final class Journal {
    /// The kind of standard error.
    package enum ErrorStyle: Equatable, Sendable {
        /// journald reads it (`JOURNAL_STREAM`): each line begins with its level (sd-daemon(3)).
        case prefixed
        /// A terminal: lines are columns, the time, what it is about (`subjectField`), its new state and the sentence (`Change`).
        /// Warnings and errors are coloured, and each subject has a colour of its own, unless `NO_COLOR` is set.
        case terminal(colour: Bool)
        /// A file or a pipe: lines begin with the time and the name of the level.
        case plain
    }

    /// What an entry says in columns on a terminal.
    package struct Change {
        package var state: String
        package var sentence: String

        package init(state: String, sentence: String) { (self.state, self.sentence) = (state, sentence) }
    }

    /// Bytes of a field name. journald accepts `[A-Z0-9_]`, not beginning with `_` or a digit.
    static let maximumFieldName = 64
    /// Bytes of one message or field; the rest is cut off. Text of an app can be part of it.
    static let maximumFieldSize = 16 << 10
    /// Bytes of a line on standard error without its end, so that the line fits into PIPE_BUF (4,096).
    static let maximumLine = 4000

    /// Less important entries are dropped.
    package var level: LogLevel
    package let usesJournald: Bool
    /// `nil`: no entries go to standard error.
    package let errorStyle: ErrorStyle?
    private let errorDescriptor: SharedDescriptor
    /// The field that names what an entry is about: on a terminal its value is a column of its own, and is left out at the
    /// beginning of the sentence.
    package var subjectField: String?
    /// Kept between entries to avoid allocations.
    private var buffer: [UInt8] = []
    /// The end of the last line, if the terminal has not taken it yet.
    private var unwritten: ArraySlice<UInt8> = []
    private let journalPath: String
    private var socket: JournalSocket?
    /// Entries that journald has not accepted since the last one; the next entry reports their number.
    private var lost = 0

    /// Checks for journald and the kind of standard error.
    package convenience init(level: LogLevel = .info) {
        let hasJournald = access(JournalSocket.standardPath, W_OK) == 0
        let style = Self.styleOfStandardError(.standardError)
        let isTerminal = if case .terminal = style { true } else { false }
        self.init(level: level, usesJournald: hasJournald, errorStyle: hasJournald && !isTerminal ? nil : style)
    }

    /// - Parameter journalPath: the socket of journald; `nil`: the machine's.
    package init(
        level: LogLevel, usesJournald: Bool, errorStyle: ErrorStyle?,
        errorDescriptor: SharedDescriptor = .standardError,
        journalPath: String? = nil
    ) {
        self.journalPath = journalPath ?? JournalSocket.standardPath
        self.level = level
        self.usesJournald = usesJournald
        self.errorStyle = errorStyle
        self.errorDescriptor =
            if case .terminal = errorStyle { Self.reopened(errorDescriptor) ?? errorDescriptor } else {
                errorDescriptor
            }
    }

    /// The terminal with a file description of its own, so that O_NONBLOCK concerns no other program. To poll(2) a terminal that is not
    /// read is writable, and then write(2) waits.
    private static func reopened(_ terminal: SharedDescriptor) -> SharedDescriptor? {
        guard isatty(terminal.raw) == 1 else { return nil }
        guard let own = try? Descriptor.open("/proc/self/fd/\(terminal.raw)", O_WRONLY | O_NOCTTY | O_NONBLOCK) else {
            return nil
        }
        return SharedDescriptor(own)
    }

    package static func styleOfStandardError(_ descriptor: SharedDescriptor) -> ErrorStyle {
        if isatty(descriptor.raw) == 1 { return .terminal(colour: getenv("NO_COLOR").map { $0.pointee == 0 } ?? true) }
        var status = stat()
        // DEVICE:INODE of the stream that the journal reads, systemd.exec(5).
        guard let stream = getenv("JOURNAL_STREAM"), fstat(descriptor.raw, &status) == 0,
            String(cString: stream) == "\(status.st_dev):\(status.st_ino)"
        else { return .plain }
        return .prefixed
    }

    /// Writes an entry. Fields with an invalid name are left out. The message is one line, with control characters escaped
    /// (`StringProtocol.escaped`): journalctl prints it on terminals. The fields reach the journal as they are.
    /// - Parameters:
    ///   - fields: further fields, `MESSAGE_ID` among them.
    ///   - change: stands for the message on a terminal.
    package func log(
        _ level: LogLevel, _ message: String, fields: [(String, String)] = [], change: Change? = nil,
        file: StaticString = #fileID, line: UInt = #line
    ) {
        guard level <= self.level else { return }
        let isGone = usesJournald && !send(level, message, fields, file, line)
        if let style = errorStyle ?? (isGone ? Self.styleOfStandardError(errorDescriptor) : nil) {
            guard case .terminal(let colour) = style else {
                write(opening(level, style), message)
                return
            }
            let subject = subjectField.flatMap { name in fields.first { $0.0 == name }?.1 }
            let prefix = subject.map { $0 + ": " } ?? ""
            let short = message.hasPrefix(prefix) ? message.dropFirst(prefix.count) : message[...]
            let emphasis = colour && level <= .warning ? (level <= .error ? "\u{1b}[31m" : "\u{1b}[33m") : ""
            let state = Self.padded(change?.state ?? "", to: Self.stateWidth)
            write(
                columns(subject ?? Self.programName, colour) + state + emphasis, change?.sentence[...] ?? short,
                isColoured: !emphasis.isEmpty)
        }
    }

    /// Whether entries go to a terminal.
    package var isOnTerminal: Bool { if case .terminal = errorStyle { true } else { false } }

    /// Shows a line of a program's output on the terminal, with control characters escaped.
    /// - Parameter subject: the name of the program.
    /// - Returns: whether the terminal takes it now.
    @discardableResult
    package func show(_ line: some StringProtocol, of subject: String) -> Bool {
        guard case .terminal(let colour) = errorStyle else { return false }
        return write(columns(subject, colour) + "│ ", line)
    }

    // MARK: To journald

    /// - Returns: whether journald listens.
    private func send(
        _ level: LogLevel, _ message: String, _ fields: [(String, String)], _ file: StaticString, _ line: UInt
    ) -> Bool {
        if socket == nil { socket = try? JournalSocket(path: journalPath) }
        buffer.removeAll(keepingCapacity: true)
        append("MESSAGE", message.escaped(upTo: Self.maximumFieldSize))
        append("PRIORITY", String(level.rawValue))
        append("SYSLOG_IDENTIFIER", Self.programName)
        append("CODE_FILE", file.description)
        append("CODE_LINE", String(line))
        if lost > 0 { append("GREENROOM_LOST_ENTRIES", String(lost)) }
        for (name, value) in fields where Self.isFieldName(name) { append(name, value) }
        let outcome = socket?.send(buffer) ?? .missed
        lost = outcome == .taken ? 0 : lost + 1
        return outcome != .gone
    }

    private func append(_ name: String, _ value: String) {
        JournalSocket.append(name, value.utf8.prefix(Self.maximumFieldSize), to: &buffer)
    }

    private static let programName: String = {
        let path = CommandLine.arguments.first ?? ""
        return String(path[(path.lastIndex(of: "/").map { path.index(after: $0) } ?? path.startIndex)...])
    }()

    static func isFieldName(_ name: String) -> Bool {
        guard let first = name.utf8.first, name.utf8.count <= maximumFieldName else { return false }
        let isUpper = (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(first)
        return isUpper
            && name.utf8.allSatisfy {
                (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0)
                    || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) || $0 == UInt8(ascii: "_")
            }
    }

    // MARK: To standard error

    /// - Returns: whether it is written, or will be: the rest of a line comes before the next one.
    @discardableResult
    private func write(_ opening: String, _ text: some StringProtocol, isColoured: Bool = false) -> Bool {
        buffer.removeAll(keepingCapacity: true)
        buffer.append(contentsOf: opening.utf8)
        buffer.append(contentsOf: text.escaped(upTo: Self.maximumLine - buffer.count).utf8)
        if isColoured { buffer.append(contentsOf: "\u{1b}[0m".utf8) }
        buffer.append(UInt8(ascii: "\n"))
        // A reader that does not read must not block the daemon: the line is lost then. A pipe that polls as writable accepts
        // PIPE_BUF bytes, and no line is longer.
        var poll = pollfd(fd: errorDescriptor.raw, events: Int16(POLLOUT), revents: 0)
        guard Glibc.poll(&poll, 1, 0) > 0 else { return false }
        // A terminal may take a part of a line.
        if !unwritten.isEmpty { unwritten = writeSome(unwritten) }
        guard unwritten.isEmpty else { return false }
        let rest = writeSome(buffer[...])
        if rest.count == buffer.count { return false }
        unwritten = rest
        return true
    }

    /// - Returns: what is left.
    private func writeSome(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        bytes.dropFirst(max(0, bytes.withUnsafeBytes { Glibc.write(errorDescriptor.raw, $0.baseAddress, $0.count) }))
    }

    private func opening(_ level: LogLevel, _ style: ErrorStyle) -> String {
        if style == .prefixed { return "<\(level.rawValue)>" }
        return Self.timeOfDay() + " " + Self.name(level) + ": "
    }

    /// Cyan, blue, magenta, green, and the bright ones of the first three: neither red nor yellow.
    private static let subjectColours = ["36", "34", "35", "32", "96", "94", "95"]
    /// The least widths of the columns.
    private static let (subjectWidth, stateWidth) = (12, 11)

    private static func padded(_ text: String, to width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count)) + "  "
    }

    /// The columns of the time and the subject.
    private func columns(_ subject: String, _ colour: Bool) -> String {
        let name = subject.escaped(upTo: 256)
        let rest = Self.padded(name, to: Self.subjectWidth).dropFirst(name.count)
        guard colour else { return Self.timeOfDay() + "  " + name + rest }
        let sum = name.utf8.reduce(0) { $0 &* 31 &+ Int($1) }
        let shade = Self.subjectColours[Int(UInt(bitPattern: sum) % UInt(Self.subjectColours.count))]
        return "\u{1b}[2m" + Self.timeOfDay() + "\u{1b}[0m  \u{1b}[\(shade)m" + name + "\u{1b}[0m" + rest
    }

    /// The name of the level for lines without colour.
    private static func name(_ level: LogLevel) -> String {
        switch level {
        case .emergency, .alert, .critical: "critical"
        case .error: "error"
        case .warning: "warning"
        case .notice, .info: "info"
        case .debug: "debug"
        }
    }

    /// Local time, HH:MM:SS.mmm.
    private static func timeOfDay() -> String {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        var parts = tm()
        localtime_r(&now.tv_sec, &parts)
        func digits(_ number: Int, _ count: Int) -> String {
            let text = String(number)
            return String(repeating: "0", count: max(0, count - text.count)) + text
        }
        return "\(digits(Int(parts.tm_hour), 2)):\(digits(Int(parts.tm_min), 2)):\(digits(Int(parts.tm_sec), 2))"
            + ".\(digits(now.tv_nsec / 1_000_000, 3))"
    }
}
