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
    /// The columns that may end with an ellipsis where the screen is narrow.
    var flexible: Set<Int> = []
    var rows: [[Cell]] = []

    init(_ heading: [String], right: Set<Int> = [], flexible: Set<Int> = []) {
        self.heading = heading
        self.right = right
        self.flexible = flexible
    }

    /// The width below which a flexible column does not shrink.
    private static let shortest = 8
    /// The indentation of the last column where it is below the others.
    private static let belowIndent = 4

    func text(_ screen: Screen) -> String {
        let head = heading.map { Cell($0, .heading) }
        let filled = rows.map { $0.map { $0.text.isEmpty && !screen.isTerminal ? Cell("-") : $0 } }
        var all = (screen.isTerminal ? [head] : []) + filled
        var widths = heading.indices.map { column in all.map { displayWidth($0[column].text) }.max() ?? 0 }
        let isBelow = shrink(&widths, screen)
        // The heading of a column that is below the others names nothing.
        if isBelow, screen.isTerminal { all[0][heading.count - 1] = Cell("") }
        return all.map { line($0, widths, isBelow, screen) }.joined()
    }

    /// Shrinks flexible columns until the last column has enough space, or, if that is not possible, until the others fit
    /// without it.
    /// - Returns: whether the last column is below the others.
    private func shrink(_ widths: inout [Int], _ screen: Screen) -> Bool {
        guard let columns = screen.width, let last = widths.last else { return false }
        var beside = widths
        if fit(&beside, columns - min(last, Self.narrow)) {
            widths = beside
            return false
        }
        // A single column has no others.
        guard widths.count > 1 else { return false }
        _ = fit(&widths, columns)
        return true
    }

    /// Shrinks flexible columns, the widest first, until all but the last column fit into `columns`.
    /// - Returns: whether they fit.
    private func fit(_ widths: inout [Int], _ columns: Int) -> Bool {
        let shrinkable = flexible.sorted().filter { $0 < widths.count - 1 }
        var used = widths.dropLast().reduce(0) { $0 + $1 + 2 }
        while used > columns {
            var widest: Int?
            for column in shrinkable where widths[column] > max(Self.shortest, widest.map { widths[$0] } ?? 0) {
                widest = column
            }
            guard let widest else { return false }
            widths[widest] -= 1
            used -= 1
        }
        return true
    }

    private func line(_ row: [Cell], _ widths: [Int], _ isBelow: Bool, _ screen: Screen) -> String {
        var result = ""
        for column in row.indices.dropLast() {
            let text = row[column].text.clipped(to: widths[column])
            let gap = String(repeating: " ", count: max(0, widths[column] - displayWidth(text)))
            let painted = screen.paint(text, row[column].style)
            result += (right.contains(column) ? gap + painted : painted + gap) + "  "
        }
        guard let last = row.last else { return "\n" }
        let indent = isBelow ? Self.belowIndent : widths.dropLast().reduce(0) { $0 + $1 + 2 }
        let lines = Self.wrappedLines(last.text, indent: indent, screen)
        let margin = "\n" + String(repeating: " ", count: indent)
        if isBelow {
            while result.last == " " { result.removeLast() }
            // An empty cell needs no line.
            if !["", "-"].contains(last.text) { result += margin }
        }
        if !isBelow || last.text != "-" {
            result += lines.map { screen.paint($0, last.style) }.joined(separator: margin)
        }
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
