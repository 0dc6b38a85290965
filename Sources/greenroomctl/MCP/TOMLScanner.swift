import JSON

/// Why a text is no TOML document, as far as it is read here.
struct TOMLError: Error, Equatable, CustomStringConvertible {
    /// Counted from 1, as the column, which is in bytes.
    var line: Int
    var column: Int
    var message: String

    var description: String { "line \(line), column \(column): \(message)" }
}

/// Where the strings and the lists of strings of a TOML document (version 1.0) stand, with the keys that lead to them. Other values are
/// skipped, and what is in an array of tables (`[[…]]`).
struct TOMLScanner {
    struct Assignment {
        enum Kind {
            case string(String)
            case strings([(text: String, range: Range<Int>)])
        }

        /// The keys of its table, and its own.
        var path: [String]
        var kind: Kind
        var range: Range<Int>
        /// In an inline table, where values are separated by commas.
        var isInline: Bool
    }

    private static let deepest = 64

    private let bytes: [UInt8]
    private var position = 0
    private(set) var assignments: [Assignment] = []

    init(_ bytes: [UInt8]) throws(TOMLError) {
        self.bytes = bytes
        // An array of tables has no path.
        var table: [String]? = []
        while true {
            skipBlank()
            guard position < bytes.count else { return }
            if next == UInt8(ascii: "[") {
                table = try header()
            } else {
                try assignment(in: table, isInline: false, depth: 0)
            }
            skipSpace()
            guard position >= bytes.count || [0x0A, 0x0D, UInt8(ascii: "#")].contains(next) else {
                throw error("expected the end of the line")
            }
        }
    }

    private func error(_ message: String) -> TOMLError {
        let before = bytes[..<min(position, bytes.count)]
        let start = before.lastIndex(of: 0x0A).map { $0 + 1 } ?? 0
        return TOMLError(
            line: before.count { $0 == 0x0A } + 1, column: before.count - start + 1, message: message)
    }

    private var next: UInt8 { position < bytes.count ? bytes[position] : 0 }

    private func follows(_ text: StaticString) -> Bool {
        bytes[min(position, bytes.count)...].starts(with: text.description.utf8)
    }

    private mutating func expect(_ text: StaticString) throws(TOMLError) {
        guard follows(text) else { throw error("expected '\(text)'") }
        position += text.utf8CodeUnitCount
    }

    private mutating func skipSpace() { while next == 0x20 || next == 0x09 { position += 1 } }

    /// Skips lines that are empty, and comments.
    private mutating func skipBlank() {
        while position < bytes.count {
            switch next {
            case 0x20, 0x09, 0x0A, 0x0D: position += 1
            case UInt8(ascii: "#"): while position < bytes.count, next != 0x0A { position += 1 }
            default: return
            }
        }
    }

    // MARK: Keys

    private mutating func header() throws(TOMLError) -> [String]? {
        let isArray = follows("[[")
        position += isArray ? 2 : 1
        let path = try key()
        if isArray { try expect("]]") } else { try expect("]") }
        return isArray ? nil : path
    }

    /// A key with dots.
    private mutating func key() throws(TOMLError) -> [String] {
        var parts: [String] = []
        repeat {
            if !parts.isEmpty { position += 1 }
            skipSpace()
            parts.append(try keyPart())
            skipSpace()
        } while next == UInt8(ascii: ".")
        return parts
    }

    private mutating func keyPart() throws(TOMLError) -> String {
        if next == UInt8(ascii: "\"") || next == UInt8(ascii: "'") { return try string() }
        let start = position
        while Self.isBare(next) { position += 1 }
        guard position > start else { throw error("expected a key") }
        return String(decoding: bytes[start..<position], as: UTF8.self)
    }

    private static func isBare(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"),
            UInt8(ascii: "_"), UInt8(ascii: "-"):
            true
        default: false
        }
    }

    // MARK: Values

    /// - Parameter table: `nil`: the values are skipped.
    private mutating func assignment(in table: [String]?, isInline: Bool, depth: Int) throws(TOMLError) {
        let own = try key()
        try expect("=")
        skipSpace()
        let path = table.map { $0 + own }
        let start = position
        guard let kind = try value(path, depth: depth), let path else { return }
        assignments.append(Assignment(path: path, kind: kind, range: start..<position, isInline: isInline))
    }

    /// - Returns: `nil` for a value of another kind.
    private mutating func value(_ path: [String]?, depth: Int) throws(TOMLError) -> Assignment.Kind? {
        guard depth < Self.deepest else { throw error("more than \(Self.deepest) levels") }
        if follows("\"\"\"") || follows("'''") {
            try skipLongString()
            return nil
        }
        switch next {
        case UInt8(ascii: "\""), UInt8(ascii: "'"): return .string(try string())
        case UInt8(ascii: "["): return try array(depth: depth)
        case UInt8(ascii: "{"):
            try inlineTable(path, depth: depth)
            return nil
        default:
            let start = position
            while position < bytes.count, !Array(",]}#\n".utf8).contains(next) { position += 1 }
            guard position > start else { throw error("expected a value") }
            return nil
        }
    }

    private mutating func array(depth: Int) throws(TOMLError) -> Assignment.Kind? {
        position += 1
        var strings: [(text: String, range: Range<Int>)] = []
        var hasOthers = false
        while true {
            skipBlank()
            if next == UInt8(ascii: "]") { break }
            let start = position
            if case .string(let text)? = try value(nil, depth: depth + 1) {
                strings.append((text, start..<position))
            } else {
                hasOthers = true
            }
            skipBlank()
            if next != UInt8(ascii: "]") { try expect(",") }
        }
        position += 1
        return hasOthers ? nil : .strings(strings)
    }

    private mutating func inlineTable(_ path: [String]?, depth: Int) throws(TOMLError) {
        position += 1
        skipBlank()
        while next != UInt8(ascii: "}") {
            try assignment(in: path, isInline: true, depth: depth + 1)
            skipBlank()
            if next != UInt8(ascii: "}") { try expect(",") }
            skipBlank()
        }
        position += 1
    }

    // MARK: Strings

    /// A string on one line.
    private mutating func string() throws(TOMLError) -> String {
        let start = position
        let quote = next
        let isLiteral = quote == UInt8(ascii: "'")
        position += 1
        while next != quote {
            guard position < bytes.count, next != 0x0A else { throw error("expected the end of a string") }
            position += !isLiteral && next == UInt8(ascii: "\\") ? 2 : 1
        }
        position += 1
        if isLiteral { return String(decoding: bytes[(start + 1)..<(position - 1)], as: UTF8.self) }
        // The escapes of JSON are those of TOML but for \U and \e.
        guard let text = (try? JSONValue.parse(Array(bytes[start..<position])))?.stringValue else {
            position = start
            throw error("expected a string with the escapes \\b \\t \\n \\f \\r \\\" \\\\ \\u")
        }
        return text
    }

    private mutating func skipLongString() throws(TOMLError) {
        let quote = next
        let isLiteral = quote == UInt8(ascii: "'")
        position += 3
        while !(isLiteral ? follows("'''") : follows("\"\"\"")) {
            guard position < bytes.count else { throw error("expected the end of a string") }
            position += !isLiteral && next == UInt8(ascii: "\\") ? 2 : 1
        }
        // It may end with quotation marks of its own.
        while next == quote { position += 1 }
    }
}
