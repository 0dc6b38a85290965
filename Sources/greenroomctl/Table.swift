/// One cell of a table.
struct Cell {
    var text: String
    var style: Style?

    init(_ text: String?, _ style: Style? = nil) {
        self.text = text ?? ""
        self.style = style
    }
}

/// Rows in aligned columns. On a terminal there is a heading, and the last column is wrapped. Elsewhere an empty cell is
/// `-`, so that the columns can be counted.
struct Table {
    var heading: [String]
    /// The columns that are aligned to the right: numbers.
    var right: Set<Int> = []
    var rows: [[Cell]] = []

    init(_ heading: [String], right: Set<Int> = []) {
        self.heading = heading
        self.right = right
    }

    func text(_ screen: Screen) -> String {
        let head = heading.map { Cell($0, .heading) }
        let filled = rows.map { $0.map { $0.text.isEmpty && !screen.isTerminal ? Cell("-") : $0 } }
        let all = (screen.isTerminal ? [head] : []) + filled
        let widths = heading.indices.map { column in all.map { displayWidth($0[column].text) }.max() ?? 0 }
        return all.map { line($0, widths, screen) }.joined()
    }

    private func line(_ row: [Cell], _ widths: [Int], _ screen: Screen) -> String {
        var result = ""
        for column in row.indices.dropLast() {
            let cell = row[column]
            let gap = String(repeating: " ", count: max(0, widths[column] - displayWidth(cell.text)))
            let painted = screen.paint(cell.text, cell.style)
            result += (right.contains(column) ? gap + painted : painted + gap) + "  "
        }
        guard let last = row.last else { return "\n" }
        let indent = widths.dropLast().reduce(0) { $0 + $1 + 2 }
        let lines = Self.wrappedLines(last.text, indent: indent, screen)
        result += lines.map { screen.paint($0, last.style) }
            .joined(separator: "\n" + String(repeating: " ", count: indent))
        while result.last == " " { result.removeLast() }
        return result + "\n"
    }

    /// The narrowest column, in characters, in which text is wrapped.
    private static let narrow = 24

    static func wrappedLines(_ text: String, indent: Int, _ screen: Screen) -> [String] {
        guard let width = screen.width, width - indent >= narrow else { return [text] }
        return wrapped(text, to: width - indent)
    }
}

/// Lines of the form `Label: value`, the labels aligned to the right.
struct Sheet {
    private var lines: [(label: String, value: String, style: Style?)] = []

    /// Adds a line; none for an absent or empty value.
    mutating func add(_ label: String, _ value: String?, _ style: Style? = nil) {
        if let value, !value.isEmpty { lines.append((label, value, style)) }
    }

    /// Adds several values below each other.
    mutating func add(_ label: String, _ values: [String]) {
        for (index, value) in values.enumerated() { lines.append((index == 0 ? label : "", value, nil)) }
    }

    func text(_ screen: Screen) -> String {
        let width = max(12, lines.map { displayWidth($0.label) + 1 }.max() ?? 0)
        return lines.map { label, value, style in
            let name = label.isEmpty ? "" : label + ":"
            let gap = String(repeating: " ", count: width - displayWidth(name))
            let value = Table.wrappedLines(value, indent: width + 1, screen)
                .map { screen.paint($0, style) }
                .joined(separator: "\n" + String(repeating: " ", count: width + 1))
            return "\(gap)\(screen.paint(name, .faint)) \(value)\n"
        }.joined()
    }
}
