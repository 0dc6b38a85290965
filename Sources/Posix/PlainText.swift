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
}

extension StringProtocol {
    /// The text with U+FFFD for each control character. One of more than `limit` bytes is cut off, and ends with "…".
    ///
    /// The limit is that of the result: U+FFFD has three bytes, and stands for a character of one to three.
    package func printable(upTo limit: Int = .max) -> String {
        let ellipsis = "…"
        var result = String.UnicodeScalarView()
        var (count, kept) = (0, 0)
        for scalar in unicodeScalars {
            let shown = scalar.isControl ? "\u{fffd}" : scalar
            count += UTF8.width(shown)
            if count > limit {
                result.removeLast(result.count - kept)
                return String(result) + ellipsis
            }
            result.append(shown)
            if count <= limit - ellipsis.utf8.count { kept += 1 }
        }
        return String(result)
    }
}
