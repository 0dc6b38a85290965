/// What apps, manifests and other people's programs have written, fit for a terminal: controls, and the characters that
/// turn the direction of writing or begin a line, are spelled out.
package func escaped(_ text: String) -> String {
    guard text.unicodeScalars.contains(where: isUnprintable) else { return text }
    var result = ""
    for scalar in text.unicodeScalars {
        switch scalar {
        case "\n": result += "\\n"
        case "\r": result += "\\r"
        case "\t": result += "\\t"
        case _ where isUnprintable(scalar): result += spelled(scalar)
        default: result.unicodeScalars.append(scalar)
        }
    }
    return result
}

private func spelled(_ scalar: Unicode.Scalar) -> String {
    let digits = String(scalar.value, radix: 16)
    let (prefix, width) = scalar.value < 0x100 ? ("\\x", 2) : ("\\u", 4)
    return prefix + String(repeating: "0", count: max(0, width - digits.count)) + digits
}

private func isUnprintable(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0x20...0x7E: false
    // C0 and C1 controls, DEL.
    case 0...0x9F: true
    // Marks, embeddings, overrides and isolates of direction (Unicode UAX #9), line and paragraph separators.
    case 0x061C, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069: true
    default: false
    }
}

/// How many columns a text takes on a terminal: two for East Asian wide characters and most pictures, none for marks that
/// sit on the one before. Close to wcwidth(3), which Swift's Glibc does not have.
package func displayWidth(_ text: String) -> Int {
    text.unicodeScalars.reduce(0) { $0 + width($1) }
}

private func width(_ scalar: Unicode.Scalar) -> Int {
    switch scalar.value {
    case 0...0x2FF: 1
    case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F,
        0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x1F300...0x1F64F, 0x1F900...0x1F9FF, 0x20000...0x3FFFD:
        2
    default:
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .enclosingMark, .format: 0
        default: 1
        }
    }
}

extension String {
    /// With spaces behind, up to a width; a longer text gets one.
    func padded(to width: Int) -> String {
        self + String(repeating: " ", count: max(1, width - displayWidth(self)))
    }

    /// At most so many columns, the last of them an ellipsis where something was left out.
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

/// Breaks a text at its spaces into lines of at most so many columns; longer words stay whole.
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
