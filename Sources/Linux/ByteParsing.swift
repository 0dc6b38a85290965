/// Reads text of the kernel or of an app from front to back. No input makes it trap.
struct ByteScanner {
    private var rest: ArraySlice<UInt8>

    init(_ bytes: [UInt8]) { rest = bytes[...] }
    init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

    var isAtEnd: Bool { rest.isEmpty }

    mutating func skipBlanks() { rest = rest.drop { $0 == 0x20 || $0 == 0x09 } }

    /// Returns the text up to the next blank or line end; `nil` at the end of the line.
    mutating func word() -> ArraySlice<UInt8>? {
        skipBlanks()
        let word = rest.prefix { $0 != 0x20 && $0 != 0x09 && $0 != 0x0a }
        rest = rest[word.endIndex...]
        return word.isEmpty ? nil : word
    }

    mutating func number<Number: FixedWidthInteger>(_: Number.Type = Number.self, radix: Int = 10) -> Number? {
        word().flatMap { parseNumber($0, radix: radix) }
    }

    /// Returns the rest of the line without its end; `nil` at the end of the text.
    mutating func line() -> ArraySlice<UInt8>? {
        if rest.isEmpty { return nil }
        let line = rest.prefix { $0 != 0x0a }
        rest = rest[line.endIndex...].dropFirst()
        return line
    }
}

/// Parses a whole word as a number. A leading "+", blanks and overflow are refused.
func parseNumber<Number: FixedWidthInteger>(_ word: ArraySlice<UInt8>, radix: Int = 10) -> Number? {
    if word.first == UInt8(ascii: "+") { return nil }
    return Number(String(decoding: word, as: UTF8.self), radix: radix)
}

extension Sequence<UInt8> {
    var text: String { String(decoding: Array(self), as: UTF8.self) }
}
