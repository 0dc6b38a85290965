extension JSONValue {
    /// The document as text (RFC 8259): on one line, or with two spaces a level. No newline at the end.
    ///
    /// Written here and not by jansson, which prints 0.1 as 0.10000000000000001. A number that JSON cannot say (not a
    /// number, infinite) becomes `null`.
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
            // DEL and the C1 controls are legal in JSON, but what is printed on a terminal should not steer it.
            case "\0"..."\u{1F}", "\u{7F}"..."\u{9F}": text += escape(character)
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
