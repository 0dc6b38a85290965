extension Unicode.Scalar {
    /// Whether the character can control a terminal, break a line or change the direction of text: C0, DEL, C1, U+2028,
    /// U+2029, and the bidirectional controls (Unicode Annex 9). A log line that contains one may show what was not logged.
    package var isControl: Bool {
        switch value {
        case 0..<0x20, 0x7f...0x9f: true
        case 0x61c, 0x200e, 0x200f, 0x2028...0x202e, 0x2066...0x2069: true
        default: false
        }
    }

    /// The character as an escape sequence of C: a letter if there is one, otherwise two or four hexadecimal digits.
    fileprivate var escapeSequence: String {
        switch self {
        case "\n": return "\\n"
        case "\r": return "\\r"
        case "\t": return "\\t"
        default:
            let digits = String(value, radix: 16)
            let (prefix, width) = value < 0x100 ? ("\\x", 2) : ("\\u", 4)
            return prefix + String(repeating: "0", count: width - digits.count) + digits
        }
    }
}

extension StringProtocol {
    /// Whether the text has at most `limit` bytes, all of them printable ASCII characters, as most texts. It costs about a
    /// nanosecond a byte, and no memory.
    private func isPlain(upTo limit: Int) -> Bool {
        let result = utf8.withContiguousStorageIfAvailable { bytes in
            bytes.count <= limit && bytes.allSatisfy { (0x20...0x7e).contains($0) }
        }
        return result ?? false
    }

    /// The text as one line for people, on a terminal or in a log: each control character is written as an escape sequence
    /// (`\n`, `\x1b`, `\u202e`), and all other text is unchanged.
    ///
    /// The result has at most `limit` bytes; the rest is cut off, and no escape sequence is divided.
    package func escaped(upTo limit: Int = .max) -> String {
        if isPlain(upTo: limit) { return String(self) }
        guard utf8.count > limit || unicodeScalars.contains(where: \.isControl) else { return String(self) }
        var result = String.UnicodeScalarView()
        var count = 0
        for scalar in unicodeScalars {
            let shown = scalar.isControl ? scalar.escapeSequence : String(scalar)
            count += shown.utf8.count
            guard count <= limit else { break }
            result.append(contentsOf: shown.unicodeScalars)
        }
        return String(result)
    }

    /// The text, to be stored, with U+FFFD for each control character. One of more than `limit` bytes is cut off, and ends
    /// with "…".
    ///
    /// The limit is that of the result: U+FFFD has three bytes, and stands for a character of one to three.
    package func printable(upTo limit: Int = .max) -> String {
        if isPlain(upTo: limit) { return String(self) }
        let ellipsis = "…"
        var result: [UInt8] = []
        result.reserveCapacity(Swift.min(utf8.count, limit))
        // The bytes that are kept if the text is cut off.
        var kept = 0
        for scalar in unicodeScalars {
            if let bytes = UTF8.encode(scalar.isControl ? "\u{fffd}" : scalar) { result.append(contentsOf: bytes) }
            if result.count > limit { return String(decoding: result[..<kept], as: UTF8.self) + ellipsis }
            if result.count <= limit - ellipsis.utf8.count { kept = result.count }
        }
        return String(decoding: result, as: UTF8.self)
    }
}
