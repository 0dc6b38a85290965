/// One `Key=value` of a file in systemd's syntax (systemd.syntax(7)).
struct Assignment: Hashable {
    var section: String
    var key: String
    /// Without the white space around it; continued lines joined by a space.
    var value: String
    var keyPlace: Place
    fileprivate var line: LogicalLine
    fileprivate var valueStart: Int

    /// Where a byte of the value stands, though it were on a continuation line.
    func place(at offset: Int = 0) -> Place { line.place(valueStart + offset, keyPlace.file) }
}

/// What a file consists of, in its order.
enum UnitFileItem {
    case section(String, Place)
    case assignment(Assignment)
    case problem(Place, String)
}

/// A line with its continuations.
private struct LogicalLine: Hashable {
    /// Where a line of the file begins in the logical line.
    struct Start: Hashable {
        var offset: Int
        var number: Int
    }

    var bytes: [UInt8] = []
    var starts: [Start] = []

    func place(_ offset: Int, _ file: String) -> Place {
        guard let start = starts.last(where: { $0.offset <= offset }) else { return .whole(file) }
        return Place(file: file, line: start.number, column: offset - start.offset + 1)
    }
}

/// Reads the lines of a file: sections, assignments, comments, continuations. What the keys mean is others' business.
///
/// Linear in the file's size, and it keeps no more than one logical line at a time.
struct UnitFileReader {
    /// A manifest has some dozens; a file of rubbish should not cost more than its reading.
    static let maximumAssignments = 10_000
    /// What editors on other systems write before UTF-8 text. Passed over, as systemd does; it counts in no column.
    private static let byteOrderMark: [UInt8] = [0xef, 0xbb, 0xbf]

    private enum Section { case none, lost, named(String) }

    private let path: String
    private var section = Section.none
    private var assignments = 0
    private var line = LogicalLine()

    /// Hands each item over, in the file's order.
    static func read(_ file: SourceFile, _ take: (UnitFileItem) -> Void) {
        guard file.bytes.count <= SourceFile.maximumSize else {
            let size = file.bytes.count
            return take(.problem(.whole(file.path), "has \(size) bytes; at most \(SourceFile.maximumSize) are read"))
        }
        var reader = UnitFileReader(path: file.path)
        reader.readAll(file.bytes, take)
    }

    private init(path: String) { self.path = path }

    private mutating func readAll(_ bytes: [UInt8], _ take: (UnitFileItem) -> Void) {
        var rest = bytes[...]
        if rest.starts(with: Self.byteOrderMark) { rest = rest.dropFirst(Self.byteOrderMark.count) }
        var number = 0
        while !rest.isEmpty {
            number += 1
            var physical = rest.prefix { $0 != UInt8(ascii: "\n") }
            rest = rest[physical.endIndex...].dropFirst()
            if physical.last == UInt8(ascii: "\r") { physical = physical.dropLast() }
            // Comment lines are passed over within continuations too, and are never continued themselves
            // (systemd.syntax(7)).
            if let first = physical.first(where: { !isBlank($0) }), isComment(first) { continue }
            line.starts.append(LogicalLine.Start(offset: line.bytes.count, number: number))
            line.bytes += physical
            if endsContinued(physical) {
                line.bytes[line.bytes.count - 1] = UInt8(ascii: " ")
                continue
            }
            guard readLine(take) else { return }
        }
        _ = readLine(take)
    }

    /// A backslash at the end continues a line, unless another one before it makes it a plain backslash.
    private func endsContinued(_ physical: ArraySlice<UInt8>) -> Bool {
        var count = 0
        for byte in physical.reversed() {
            guard byte == UInt8(ascii: "\\") else { break }
            count += 1
        }
        return count % 2 == 1
    }

    /// - Returns: whether to read on.
    private mutating func readLine(_ take: (UnitFileItem) -> Void) -> Bool {
        let line = self.line
        self.line = LogicalLine()
        guard let first = line.bytes.firstIndex(where: { !isBlank($0) }) else { return true }
        func problem(_ offset: Int, _ message: String) { take(.problem(line.place(offset, path), message)) }
        if let (offset, message) = flaw(line.bytes) {
            problem(offset, message)
        } else if line.bytes[first] == UInt8(ascii: "[") {
            readSection(line, first, take)
        } else if let sign = line.bytes.firstIndex(of: UInt8(ascii: "=")) {
            assignments += 1
            guard assignments <= Self.maximumAssignments else {
                problem(first, "too many assignments: \(Self.maximumAssignments) are read")
                return false
            }
            readAssignment(line, first, sign, take)
        } else {
            let text = String(decoding: trimmed(line.bytes[...]), as: UTF8.self)
            problem(first, "“\(shown(text))”: expected “Key=value”, “[Section]” or a comment")
        }
        return true
    }

    private func readAssignment(_ line: LogicalLine, _ first: Int, _ sign: Int, _ take: (UnitFileItem) -> Void) {
        let key = String(decoding: trimmed(line.bytes[first..<sign]), as: UTF8.self)
        let place = line.place(first, path)
        guard !key.isEmpty else { return take(.problem(place, "there is no key before “=”")) }
        switch section {
        case .lost: break
        case .none:
            let message = "\(shown(key))= stands before the first section; expected [App] or another above it"
            take(.problem(place, message))
        case .named(let section):
            let value = trimmed(line.bytes[(sign + 1)...])
            take(
                .assignment(
                    Assignment(
                        section: section, key: key, value: String(decoding: value, as: UTF8.self), keyPlace: place,
                        line: line, valueStart: value.startIndex)))
        }
    }

    /// What stands below a section that is none is passed over: one mistake, one error.
    private mutating func readSection(_ line: LogicalLine, _ first: Int, _ take: (UnitFileItem) -> Void) {
        let text = trimmed(line.bytes[first...])
        guard text.last == UInt8(ascii: "]"), text.count > 2 else {
            section = .lost
            let written = String(decoding: text, as: UTF8.self)
            let message = "“\(shown(written))”: expected “[Section]”\(commentHint(written))"
            return take(.problem(line.place(first, path), message))
        }
        let name = String(decoding: text.dropFirst().dropLast(), as: UTF8.self)
        section = .named(name)
        take(.section(name, line.place(first, path)))
    }

    /// The first byte that is no text, and what is wrong with it. A carriage return inside a line is a line's end to
    /// systemd and none to most editors: refused, before somebody finds out which it is here.
    private func flaw(_ bytes: [UInt8]) -> (offset: Int, message: String)? {
        if let offset = bytes.firstIndex(of: 0) { return (offset, "has a NUL byte; expected text") }
        if let offset = bytes.firstIndex(of: UInt8(ascii: "\r")) {
            return (offset, "has a carriage return inside the line; expected it at the end, if at all")
        }
        return firstNonUTF8(bytes).map { ($0, "is no UTF-8 text") }
    }
}

private func isComment(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "#") || byte == UInt8(ascii: ";") }
