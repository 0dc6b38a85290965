/// One `Key=value` of a file in systemd's syntax (systemd.syntax(7)).
struct Assignment: Hashable {
    var section: String
    var key: String
    /// Without the white space around it; continued lines joined by a space.
    var value: String
    var keyPlace: Place
    var valuePlace: Place
}

/// Reads the lines of a file: sections, assignments, comments, continuations. What the keys mean is others' business.
struct UnitFileReader {
    /// The longest line with its continuations, in bytes; systemd's is the same (LONG_LINE_MAX).
    static let maximumLine = 1 << 20
    static let maximumAssignments = 10_000

    private let file: SourceFile
    private var findings: Findings
    private var assignments: [Assignment] = []
    private var section: String?
    /// A section that was no section: what stands in it is passed over.
    private var isLost = false

    static func read(_ file: SourceFile, _ findings: inout Findings) -> [Assignment] {
        var reader = UnitFileReader(file: file, findings: findings)
        reader.readAll()
        findings = reader.findings
        return reader.assignments
    }

    private init(file: SourceFile, findings: Findings) {
        self.file = file
        self.findings = findings
    }

    private mutating func readAll() {
        guard file.bytes.count <= SourceFile.maximumSize else {
            return error(0, 0, "has \(file.bytes.count) bytes; at most \(SourceFile.maximumSize) are read")
        }
        // A logical line: its parts, and where each began.
        var whole: [UInt8] = []
        var start = 0
        var number = 0
        for line in file.bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
            number += 1
            var line = line
            if line.last == UInt8(ascii: "\r") { line = line.dropLast() }
            let isContinued = start > 0
            // Within a continuation comment lines are passed over (systemd.syntax(7)).
            if isContinued, let first = line.first(where: { !isBlank($0) }), isComment(first) { continue }
            if !isContinued {
                start = number
                whole = []
            }
            if line.last == UInt8(ascii: "\\"), !isCommentLine(whole + line) {
                whole += line.dropLast() + [UInt8(ascii: " ")]
                continue
            }
            readLine(whole + line, start)
            start = 0
        }
        if start > 0 { readLine(whole, start) }
    }

    private func isCommentLine(_ line: [UInt8]) -> Bool {
        line.first { !isBlank($0) }.map(isComment) ?? false
    }

    private mutating func readLine(_ line: [UInt8], _ number: Int) {
        guard let first = line.firstIndex(where: { !isBlank($0) }), !isComment(line[first]) else { return }
        guard let text = String(validating: line, as: UTF8.self), !line.contains(0) else {
            return error(number, 1, "is no UTF-8 text")
        }
        if line[first] == UInt8(ascii: "[") { return readSection(trimmed(Substring(text)), number, first + 1) }
        guard let sign = line.firstIndex(of: UInt8(ascii: "=")) else {
            return error(number, first + 1, "“\(shown(text))”: expected “Key=value”, “[Section]” or a comment")
        }
        guard assignments.count < Self.maximumAssignments else {
            if assignments.count == Self.maximumAssignments {
                error(number, 1, "too many lines: \(Self.maximumAssignments) are read")
            }
            return
        }
        let key = String(trimmed(Substring(decoding: line[first..<sign])))
        let value = trimmed(Substring(decoding: line[(sign + 1)...]))
        guard !key.isEmpty else { return error(number, first + 1, "there is no key before “=”") }
        let place = Place(file: file.path, line: number, column: first + 1)
        guard let section else {
            if !isLost {
                error(number, first + 1, "\(key)= stands before the first section; expected [App] or another above it")
            }
            return
        }
        if isLost { return }
        let blanks = line[(sign + 1)...].prefix { isBlank($0) }.count
        let valuePlace = Place(file: file.path, line: number, column: sign + 2 + blanks)
        assignments.append(
            Assignment(section: section, key: key, value: String(value), keyPlace: place, valuePlace: valuePlace))
    }

    private mutating func readSection(_ text: Substring, _ number: Int, _ column: Int) {
        guard text.last == "]", text.count > 2 else {
            isLost = true
            section = nil
            return error(number, column, "“\(shown(String(text)))”: expected “[Section]”")
        }
        section = String(text.dropFirst().dropLast())
        isLost = false
    }

    private mutating func error(_ line: Int, _ column: Int, _ message: String) {
        findings.add(Diagnostic(.error, file.path, line: line, column: column, message))
    }
}

func isBlank(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
private func isComment(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "#") || byte == UInt8(ascii: ";") }

func trimmed(_ text: Substring) -> Substring {
    var text = text
    while let first = text.utf8.first, isBlank(first) { text = text.dropFirst() }
    while let last = text.utf8.last, isBlank(last) { text = text.dropLast() }
    return text
}

/// What somebody else wrote, in a sentence of ours: not longer than helps, and on one line.
func shown(_ text: String) -> String {
    let safe = text.unicodeScalars.prefix(60).map { $0.value < 0x20 || $0.value == 0x7f ? "�" : String($0) }.joined()
    return text.unicodeScalars.count > 60 ? safe + "…" : safe
}

extension Substring {
    fileprivate init(decoding bytes: ArraySlice<UInt8>) { self = Substring(String(decoding: bytes, as: UTF8.self)) }
}
