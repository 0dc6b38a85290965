/// One `Key=value` of a file in the syntax of systemd.syntax(7).
struct Assignment: Hashable {
    var section: String
    var key: String
    /// The value without surrounding blanks. Continued lines are joined by a space.
    var value: String
    var keyLocation: Location
    fileprivate var line: LogicalLine
    fileprivate var valueStart: Int

    /// The location of a byte of the value, which may be on a continuation line.
    func location(at offset: Int = 0) -> Location { line.location(valueStart + offset, keyLocation.file) }
}

/// A syntactic element of a file.
enum UnitFileItem {
    case section(String, Location)
    case assignment(Assignment)
    /// A syntax error with its message.
    case problem(Location, String)
}

/// A line joined with its continuation lines.
private struct LogicalLine: Hashable {
    /// The offset in the logical line at which a line of the file starts.
    struct Start: Hashable {
        var offset: Int
        var number: Int
    }

    var bytes: [UInt8] = []
    var starts: [Start] = []

    func location(_ offset: Int, _ file: String) -> Location {
        guard let start = starts.last(where: { $0.offset <= offset }) else { return .whole(file) }
        return Location(file: file, line: start.number, column: offset - start.offset + 1)
    }
}

/// Splits a file into sections and assignments, handling comments and continuation lines. It does not interpret keys.
///
/// Takes time linear in the file's size and keeps one logical line in memory.
struct UnitFileReader {
    /// A manifest has some dozens of assignments. The limit bounds the cost of applying an invalid file.
    static let maximumAssignments = 10_000
    /// A UTF-8 byte order mark at the start of a file. It is ignored, as in systemd, and not counted in columns.
    private static let byteOrderMark: [UInt8] = [0xef, 0xbb, 0xbf]

    /// `invalid`: the section header had a syntax error.
    private enum Section { case none, invalid, named(String) }

    private let path: String
    private let mayBeQuoted: Bool
    private var section = Section.none
    private var assignments = 0
    private var line = LogicalLine()

    /// Calls `handle` with each item, in the order of the file.
    static func read(_ file: SourceFile, _ handle: (UnitFileItem) -> Void) {
        guard file.bytes.count <= SourceFile.maximumSize else {
            let size = file.bytes.count
            return handle(
                .problem(
                    .whole(file.path), "file too large: \(size) bytes; expected at most \(SourceFile.maximumSize)"))
        }
        var reader = UnitFileReader(file)
        reader.readAll(file.bytes, handle)
    }

    private init(_ file: SourceFile) {
        path = file.path
        mayBeQuoted = file.mayBeQuoted
    }

    /// Text of the file for a message, with a blank before it; nothing if it may not be quoted.
    private func quotation(_ text: String) -> String { mayBeQuoted ? " " + quoted(text) : "" }

    private mutating func readAll(_ bytes: [UInt8], _ handle: (UnitFileItem) -> Void) {
        var rest = bytes[...]
        if rest.starts(with: Self.byteOrderMark) { rest = rest.dropFirst(Self.byteOrderMark.count) }
        var number = 0
        while !rest.isEmpty {
            number += 1
            var physical = rest.prefix { $0 != UInt8(ascii: "\n") }
            rest = rest[physical.endIndex...].dropFirst()
            if physical.last == UInt8(ascii: "\r") { physical = physical.dropLast() }
            // Comment lines are ignored, also between continuation lines, and are never continued (systemd.syntax(7)).
            if let first = physical.first(where: { !isBlank($0) }), isComment(first) { continue }
            line.starts.append(LogicalLine.Start(offset: line.bytes.count, number: number))
            line.bytes += physical
            if endsContinued(physical) {
                line.bytes[line.bytes.count - 1] = UInt8(ascii: " ")
                continue
            }
            guard readLine(handle) else { return }
        }
        _ = readLine(handle)
    }

    /// Whether the line ends with an odd number of backslashes: two are a literal backslash.
    private func endsContinued(_ physical: ArraySlice<UInt8>) -> Bool {
        var count = 0
        for byte in physical.reversed() {
            guard byte == UInt8(ascii: "\\") else { break }
            count += 1
        }
        return count % 2 == 1
    }

    /// Reads the collected logical line.
    ///
    /// - Returns: `false` if the limit of assignments is reached.
    private mutating func readLine(_ handle: (UnitFileItem) -> Void) -> Bool {
        let line = self.line
        self.line = LogicalLine()
        guard let first = line.bytes.firstIndex(where: { !isBlank($0) }) else { return true }
        func problem(_ offset: Int, _ message: String) { handle(.problem(line.location(offset, path), message)) }
        if let (offset, message) = invalidByte(line.bytes) {
            problem(offset, message)
        } else if line.bytes[first] == UInt8(ascii: "[") {
            readSection(line, first, handle)
        } else if let sign = line.bytes.firstIndex(of: UInt8(ascii: "=")) {
            assignments += 1
            guard assignments <= Self.maximumAssignments else {
                problem(first, "too many assignments; expected at most \(Self.maximumAssignments)")
                return false
            }
            readAssignment(line, first, sign, handle)
        } else {
            let text = String(decoding: trimmed(line.bytes[...]), as: UTF8.self)
            problem(first, "invalid line\(quotation(text)); expected Key=value, [Section] or a comment")
        }
        return true
    }

    private func readAssignment(_ line: LogicalLine, _ first: Int, _ sign: Int, _ handle: (UnitFileItem) -> Void) {
        let key = String(decoding: trimmed(line.bytes[first..<sign]), as: UTF8.self)
        let location = line.location(first, path)
        guard !key.isEmpty else { return handle(.problem(location, "missing key; expected Key=value")) }
        switch section {
        case .invalid: break
        case .none:
            let message = "key\(quotation(key)) is not in a section; expected a section header such as [App] before it"
            handle(.problem(location, message))
        case .named(let section):
            let value = trimmed(line.bytes[(sign + 1)...])
            handle(
                .assignment(
                    Assignment(
                        section: section, key: key, value: String(decoding: value, as: UTF8.self),
                        keyLocation: location,
                        line: line, valueStart: value.startIndex)))
        }
    }

    /// Assignments below an invalid section header are ignored, so that one mistake causes one error.
    private mutating func readSection(_ line: LogicalLine, _ first: Int, _ handle: (UnitFileItem) -> Void) {
        let text = trimmed(line.bytes[first...])
        guard text.last == UInt8(ascii: "]"), text.count > 2 else {
            section = .invalid
            let written = String(decoding: text, as: UTF8.self)
            let message = "invalid section header\(quotation(written)); expected [Section]\(commentHint(written))"
            return handle(.problem(line.location(first, path), message))
        }
        let name = String(decoding: text.dropFirst().dropLast(), as: UTF8.self)
        section = .named(name)
        handle(.section(name, line.location(first, path)))
    }

    /// Finds the first byte that is not allowed in text.
    ///
    /// systemd ends a line at a carriage return inside the line and most editors do not, so it is an error.
    private func invalidByte(_ bytes: [UInt8]) -> (offset: Int, message: String)? {
        if let offset = bytes.firstIndex(of: 0) { return (offset, "NUL byte; expected UTF-8 text") }
        if let offset = bytes.firstIndex(of: UInt8(ascii: "\r")) {
            return (offset, "carriage return inside a line; expected it only at the end of a line")
        }
        return firstNonUTF8(bytes).map { ($0, "invalid UTF-8; expected UTF-8 text") }
    }
}

private func isComment(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "#") || byte == UInt8(ascii: ";") }
