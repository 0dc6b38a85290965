import Posix

/// Makes text of apps, manifests and other programs safe to print on a terminal: control characters, and characters that
/// change the direction of writing or start a line, are escaped (`\x1b`, `\u202e`).
package func escaped(_ text: String) -> String { text.escaped() }

/// The width of a text on a terminal in columns: two for East Asian wide characters and most emoji, none for combining
/// marks. Close to wcwidth(3), which Swift's Glibc lacks.
package func displayWidth(_ text: String) -> Int {
    text.unicodeScalars.reduce(0) { $0 + width($1) }
}

private func width(_ scalar: Unicode.Scalar) -> Int {
    if scalar.value < 0x300 { return 1 }
    switch scalar.properties.generalCategory {
    case .nonspacingMark, .enclosingMark, .format: return 0
    default: break
    }
    switch scalar.value {
    // The vowels and final consonants of a Hangul syllable are drawn with its first consonant.
    case 0x1160...0x11FF, 0xD7B0...0xD7FF: return 0
    case 0x1100...0x115F, 0x231A...0x231B, 0x23E9...0x23EC, 0x2614...0x2615, 0x2648...0x2653, 0x26A1, 0x26BD...0x26BE,
        0x2705, 0x270A...0x270B, 0x2728, 0x274C, 0x2753...0x2755, 0x2757, 0x2795...0x2797, 0x2B50, 0x2B55,
        0x2E80...0x303E, 0x3041...0xA4CF, 0xA960...0xA97C, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F,
        0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x16FE0...0x18CFF, 0x1B000...0x1B2FF, 0x1F18E, 0x1F191...0x1F19A,
        0x1F200...0x1F320, 0x1F32D...0x1F64F, 0x1F680...0x1F6FF, 0x1F7E0...0x1F7EB, 0x1F900...0x1FAFF,
        0x20000...0x3FFFD:
        return 2
    default: return 1
    }
}

extension String {
    /// The text followed by spaces, up to a width; a longer text is followed by one space.
    func padded(to width: Int) -> String {
        self + String(repeating: " ", count: max(1, width - displayWidth(self)))
    }

    /// The text cut to a width, with an ellipsis in the last column if it was longer.
    func clipped(to columns: Int) -> String {
        guard displayWidth(self) > columns else { return self }
        var result = ""
        var used = 1
        for character in self {
            let width = displayWidth(String(character))
            guard used + width <= columns else { break }
            result.append(character)
            used += width
        }
        return result + "…"
    }
}

/// Wraps a text at its spaces into lines of at most `columns`; a longer word is not broken.
package func wrapped(_ text: String, to columns: Int) -> [String] {
    var lines: [String] = []
    var line = ""
    for word in text.split(separator: " ", omittingEmptySubsequences: false) {
        if !line.isEmpty, displayWidth(line) + 1 + displayWidth(String(word)) > columns {
            lines.append(line)
            line = String(word)
        } else {
            line += (line.isEmpty ? "" : " ") + word
        }
    }
    return lines + [line]
}
