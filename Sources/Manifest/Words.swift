/// Splits a value into words as systemd does: by white space, with single and double quotes, and C's escapes
/// (systemd.syntax(7), "Quoting").
///
/// - Throws: a sentence.
func splitWords(_ text: String) throws(WordError) -> [String] {
    var splitter = WordSplitter(bytes: Array(text.utf8))
    return try splitter.split()
}

struct WordError: Error {
    var message: String
    /// In bytes, from 0.
    var offset: Int
}

private struct WordSplitter {
    static let maximumWords = 4096
    let bytes: [UInt8]
    var position = 0

    init(bytes: [UInt8]) { self.bytes = bytes }

    mutating func split() throws(WordError) -> [String] {
        var words: [String] = []
        while true {
            while position < bytes.count, isBlank(bytes[position]) { position += 1 }
            guard position < bytes.count else { return words }
            guard words.count < Self.maximumWords else {
                throw WordError(message: "has more than \(Self.maximumWords) words", offset: position)
            }
            words.append(try word())
        }
    }

    private mutating func word() throws(WordError) -> String {
        let start = position
        var word: [UInt8] = []
        var quote: UInt8?
        while position < bytes.count {
            let byte = bytes[position]
            if let open = quote {
                if byte == open {
                    quote = nil
                    position += 1
                    continue
                }
            } else if isBlank(byte) {
                break
            } else if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") {
                quote = byte
                position += 1
                continue
            }
            if byte == UInt8(ascii: "\\") {
                word += try escape()
            } else {
                word.append(byte)
                position += 1
            }
        }
        if let quote {
            throw WordError(message: "the quote \(Character(UnicodeScalar(quote))) is not closed", offset: start)
        }
        guard let text = String(validating: word, as: UTF8.self), !word.contains(0) else {
            throw WordError(message: "an escape makes it no UTF-8 text", offset: start)
        }
        return text
    }

    private mutating func escape() throws(WordError) -> [UInt8] {
        let start = position
        position += 1
        guard position < bytes.count else { throw WordError(message: "ends with a backslash", offset: start) }
        let letter = bytes[position]
        position += 1
        switch letter {
        case UInt8(ascii: "a"): return [7]
        case UInt8(ascii: "b"): return [8]
        case UInt8(ascii: "f"): return [12]
        case UInt8(ascii: "n"): return [10]
        case UInt8(ascii: "r"): return [13]
        case UInt8(ascii: "t"): return [9]
        case UInt8(ascii: "v"): return [11]
        case UInt8(ascii: "s"): return [32]
        case UInt8(ascii: "\\"), UInt8(ascii: "\""), UInt8(ascii: "'"): return [letter]
        case UInt8(ascii: "x"): return [UInt8(truncatingIfNeeded: try digits(2, radix: 16, start))]
        case UInt8(ascii: "u"): return try scalar(try digits(4, radix: 16, start), start)
        case UInt8(ascii: "U"): return try scalar(try digits(8, radix: 16, start), start)
        case UInt8(ascii: "0")...UInt8(ascii: "3"):
            position -= 1
            return [UInt8(truncatingIfNeeded: try digits(3, radix: 8, start))]
        default:
            throw WordError(
                message: "“\\\(Character(UnicodeScalar(letter)))” is no escape; a backslash itself is “\\\\”",
                offset: start)
        }
    }

    private mutating func digits(_ count: Int, radix: Int, _ start: Int) throws(WordError) -> UInt32 {
        guard position + count <= bytes.count,
            let value = UInt32(String(decoding: bytes[position..<(position + count)], as: UTF8.self), radix: radix),
            bytes[position] != UInt8(ascii: "+")
        else { throw WordError(message: "an escape needs \(count) digits", offset: start) }
        position += count
        guard value != 0 else { throw WordError(message: "an escape can't stand for NUL", offset: start) }
        return value
    }

    private func scalar(_ value: UInt32, _ start: Int) throws(WordError) -> [UInt8] {
        guard let scalar = UnicodeScalar(value) else {
            throw WordError(message: "an escape stands for no character", offset: start)
        }
        return Array(String(Character(scalar)).utf8)
    }
}
