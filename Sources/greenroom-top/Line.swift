import CNcurses
import Posix

/// How a part of a line looks. No information is in a style alone: a terminal may have none.
package enum Style: Equatable, Sendable {
    case plain, bold, faint
    case boldGreen, green, yellow, cyan, magenta, red

    /// The style of an app's state, as in `greenroomctl list`.
    package init(state: String) {
        switch state {
        case "active": self = .boldGreen
        case "inactive": self = .green
        case "launching", "terminating": self = .yellow
        case "background": self = .cyan
        case "suspended": self = .magenta
        case "notRunning": self = .faint
        default: self = .plain
        }
    }
}

/// The number of columns that a character takes on a terminal, by wcwidth(3), as ncurses counts: 0 for combining marks, 2 for
/// wide characters. What the character set of the locale cannot show counts as a question mark.
private func columns(of scalar: Unicode.Scalar) -> Int {
    if scalar.isASCII { return 1 }
    let width = cncurses_width(scalar.value)
    return width < 0 ? 1 : Int(width)
}

/// The ellipsis of the locale's character set.
private var ellipsis: Unicode.Scalar { cncurses_width(0x2026) == 1 ? "…" : "~" }

/// The width of a text without control characters in columns.
package func displayWidth(_ text: String) -> Int { text.unicodeScalars.reduce(0) { $0 + columns(of: $1) } }

/// Makes a text safe for a terminal and cuts it to a width: control characters are escaped (`\x1b`), characters that the
/// locale cannot show are question marks, and a longer text ends with an ellipsis.
/// - Returns: the text, and the columns that it takes.
package func fitted(_ text: String, to limit: Int) -> (text: String, width: Int) {
    guard limit > 0 else { return ("", 0) }
    var result: [Unicode.Scalar] = []
    var width = 0
    // What remains if an ellipsis has to follow.
    var cut = (count: 0, width: 0)
    // Most characters have at most four bytes a column; of combining marks a few are enough.
    for scalar in text.escaped(upTo: limit * 8 + 8).unicodeScalars {
        let size = columns(of: scalar)
        guard width + size <= limit else {
            return (string(result.prefix(cut.count) + [ellipsis]), cut.width + 1)
        }
        result.append(!scalar.isASCII && cncurses_width(scalar.value) < 0 ? "?" : scalar)
        width += size
        if width < limit { cut = (result.count, width) }
    }
    return (string(result[...]), width)
}

private func string(_ scalars: ArraySlice<Unicode.Scalar>) -> String {
    var view = String.UnicodeScalarView()
    view.append(contentsOf: scalars)
    return String(view)
}

/// One line of the screen.
package struct Line: Equatable, Sendable {
    package struct Part: Equatable, Sendable {
        package var text: String
        package var style: Style
    }

    package private(set) var parts: [Part] = []
    package private(set) var width = 0
    /// Whether the whole line is shown in reverse video: the selected app, and headings.
    package var isReversed = false
    /// The columns of the screen: nothing is added after them.
    private let limit: Int

    package init(columns: Int) { limit = columns }

    package init(_ text: String, _ style: Style = .plain, columns: Int) {
        limit = columns
        add(text, style)
    }

    /// Adds a text, as far as the screen has columns for it.
    package mutating func add(_ text: String, _ style: Style = .plain) {
        let fitting = fitted(text, to: limit - width)
        guard !fitting.text.isEmpty else { return }
        parts.append(Part(text: fitting.text, style: style))
        width += fitting.width
    }

    /// Adds a cell of a table with exactly these columns.
    package mutating func add(_ text: String, _ style: Style = .plain, columns: Int, isRight: Bool) {
        let fitting = fitted(text, to: min(columns, limit - width))
        let gap = String(repeating: " ", count: max(0, min(columns, limit - width) - fitting.width))
        let cell = isRight ? gap + fitting.text : fitting.text + gap
        guard !cell.isEmpty else { return }
        parts.append(Part(text: cell, style: style))
        width += fitting.width + gap.unicodeScalars.count
    }

    /// Fills the line with spaces.
    package mutating func fill() { add("", columns: limit - width, isRight: false) }

    /// The text without styles and without spaces at its end.
    package var text: String {
        var text = parts.map(\.text).joined()
        while text.last == " " { text.removeLast() }
        return text
    }
}
