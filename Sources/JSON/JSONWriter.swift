import Posix

extension JSONValue {
    /// The value as JSON text (RFC 8259), without a newline at the end.
    ///
    /// NaN and infinity, which JSON does not have, become `null`. jansson is not used, as it prints 0.1 as
    /// 0.10000000000000001.
    ///
    /// - Parameter pretty: whether the text has one line for each value and indents by two spaces, or is on one line.
    package func serialized(pretty: Bool) -> String {
        var writer = JSONWriter(pretty: pretty)
        writer.write(self)
        return writer.text
    }
}

private struct JSONWriter {
    let pretty: Bool
    var text = ""
    private var depth = 0

    init(pretty: Bool) {
        self.pretty = pretty
    }

    mutating func write(_ value: JSONValue) {
        switch value {
        case .null: text += "null"
        case .bool(let flag): text += flag ? "true" : "false"
        case .integer(let number): text += String(number)
        case .number(let number): text += number.isFinite ? number.description : "null"
        case .string(let string): write(string)
        case .array(let elements): writeList("[", elements, "]") { $0.write($1) }
        case .object(let members):
            writeList("{", members, "}") { writer, member in
                writer.write(member.0)
                writer.text += writer.pretty ? ": " : ":"
                writer.write(member.1)
            }
        }
    }

    private mutating func writeList<Item>(
        _ open: String, _ items: [Item], _ close: String, _ write: (inout JSONWriter, Item) -> Void
    ) {
        text += open
        depth += 1
        for (index, item) in items.enumerated() {
            if index > 0 { text += "," }
            newline()
            write(&self, item)
        }
        depth -= 1
        if !items.isEmpty { newline() }
        text += close
    }

    private mutating func newline() {
        guard pretty else { return }
        text += "\n" + String(repeating: "  ", count: depth)
    }

    private mutating func write(_ string: String) {
        text += "\""
        for character in string.unicodeScalars {
            switch character {
            case "\"": text += "\\\""
            case "\\": text += "\\\\"
            case "\n": text += "\\n"
            case "\r": text += "\\r"
            case "\t": text += "\\t"
            // JSON allows most of them, but they can control a terminal, break a line or change the direction of text.
            case _ where character.isControl: text += escape(character)
            default: text.unicodeScalars.append(character)
            }
        }
        text += "\""
    }

    private func escape(_ character: Unicode.Scalar) -> String {
        let digits = String(character.value, radix: 16)
        return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
    }
}
