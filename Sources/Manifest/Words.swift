/// A word of a value and its offset in the value, in bytes.
struct Word: Hashable {
    var text: String
    var offset: Int
}

/// Splits a value into words at blanks, with single and double quotes and C-style escapes (systemd.syntax(7), "Quoting").
///
/// Takes time linear in the value's size.
func splitWords(_ text: String) throws(ValueError) -> [Word] {
    var splitter = WordSplitter(bytes: Array(text.utf8))
    return try splitter.split()
}

private struct WordSplitter {
    /// Bounds the cost of a value. No command line of a manifest is as long.
    static let maximumWords = 4096
    let bytes: [UInt8]
    var position = 0

    init(bytes: [UInt8]) { self.bytes = bytes }

    mutating func split() throws(ValueError) -> [Word] {
        var words: [Word] = []
        while true {
            while position < bytes.count, isBlank(bytes[position]) { position += 1 }
            guard position < bytes.count else { return words }
            guard words.count < Self.maximumWords else {
                throw ValueError(problem: "more than \(Self.maximumWords) words", offset: position)
            }
            let start = position
            words.append(Word(text: try word(), offset: start))
        }
    }

    private mutating func word() throws(ValueError) -> String {
        let start = position
        var word: [UInt8] = []
        var quote: (byte: UInt8, offset: Int)?
        while position < bytes.count {
            let byte = bytes[position]
            if let open = quote {
                if byte == open.byte {
                    quote = nil
                    position += 1
                    continue
                }
            } else if isBlank(byte) {
                break
            } else if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") {
                quote = (byte, position)
                position += 1
                continue
            }
            if byte == UInt8(ascii: "\\") {
                try escape(into: &word)
            } else {
                word.append(byte)
                position += 1
            }
        }
        if let quote {
            let sign = Character(UnicodeScalar(quote.byte))
            throw ValueError(problem: "missing closing quote \(sign)", offset: quote.offset)
        }
        guard let text = String(validating: word, as: UTF8.self) else {
            throw ValueError(problem: "invalid UTF-8 after unescaping", offset: start)
        }
        return text
    }

    private mutating func escape(into word: inout [UInt8]) throws(ValueError) {
        let start = position
        position += 1
        guard position < bytes.count else { throw ValueError(problem: "trailing backslash", offset: start) }
        let letter = bytes[position]
        position += 1
        switch letter {
        case UInt8(ascii: "a"): word.append(7)
        case UInt8(ascii: "b"): word.append(8)
        case UInt8(ascii: "f"): word.append(12)
        case UInt8(ascii: "n"): word.append(10)
        case UInt8(ascii: "r"): word.append(13)
        case UInt8(ascii: "t"): word.append(9)
        case UInt8(ascii: "v"): word.append(11)
        case UInt8(ascii: "s"): word.append(32)
        case UInt8(ascii: "\\"), UInt8(ascii: "\""), UInt8(ascii: "'"): word.append(letter)
        case UInt8(ascii: "x"): word.append(UInt8(truncatingIfNeeded: try digits(2, radix: 16, start)))
        case UInt8(ascii: "u"): try scalar(try digits(4, radix: 16, start), start, into: &word)
        case UInt8(ascii: "U"): try scalar(try digits(8, radix: 16, start), start, into: &word)
        case UInt8(ascii: "0")...UInt8(ascii: "3"):
            position -= 1
            word.append(UInt8(truncatingIfNeeded: try digits(3, radix: 8, start)))
        // `\;` is a literal semicolon: systemd separates commands by a semicolon (systemd.service(5), "Command lines").
        case UInt8(ascii: ";") where word.isEmpty && (position == bytes.count || isBlank(bytes[position])):
            word.append(letter)
        default:
            let written = String(decoding: bytes[(start + 1)...].prefix(4), as: UTF8.self).unicodeScalars.prefix(1)
            throw ValueError(
                problem: "invalid escape '\\\(sanitized(String(written)))'; a literal backslash is '\\\\'",
                offset: start)
        }
    }

    private mutating func digits(_ count: Int, radix: UInt32, _ start: Int) throws(ValueError) -> UInt32 {
        var value: UInt32 = 0
        for _ in 0..<count {
            guard position < bytes.count, let digit = hexDigit(bytes[position]), digit < radix else {
                throw ValueError(problem: "invalid escape: it needs \(count) digits", offset: start)
            }
            // Eight hexadecimal digits fill the 32 bits.
            value = value * radix + digit
            position += 1
        }
        guard value != 0 else { throw ValueError(problem: "invalid escape: NUL is not allowed", offset: start) }
        return value
    }

    private func scalar(_ value: UInt32, _ start: Int, into word: inout [UInt8]) throws(ValueError) {
        guard let scalar = UnicodeScalar(value), let encoded = UTF8.encode(scalar) else {
            throw ValueError(problem: "invalid escape: not a Unicode character", offset: start)
        }
        word += encoded
    }
}
