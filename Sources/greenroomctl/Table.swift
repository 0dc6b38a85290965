/// One cell of a table.
struct Cell {
    var text: String
    var style: Style?

    init(_ text: String?, _ style: Style? = nil) {
        self.text = text ?? ""
        self.style = style
    }

    /// The lines of the last cell of a row may be several.
    var lines: [String] { text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init) }
    var width: Int { lines.map(displayWidth).max() ?? 0 }
}

/// Rows in aligned columns. On a terminal there is a heading, columns that are empty in all rows are left out, and the last column
/// is wrapped. Elsewhere there is no heading and an empty cell is `-`, so that a program can count the columns; a table of a report
/// (`isReport`) has the same form everywhere.
///
/// Where the screen is too narrow, the last column goes below the others, and then columns are left out from the right. The first
/// ones, which name a row, are never cut and never left out.
struct Table {
    var heading: [String]
    /// The columns that are aligned to the right: numbers.
    var right: Set<Int> = []
    /// The columns that may end with an ellipsis where the screen is narrow.
    var flexible: Set<Int> = []
    /// How many columns are never left out on a terminal.
    var kept: Int
    /// Whether nothing is cut, wrapped or left out for the width of the screen.
    var isFull = false
    /// Whether sentences or other tables are printed with this one, so that no program can count its columns: it has its heading
    /// and leaves out its empty columns everywhere.
    var isReport = false
    var rows: [[Cell]] = []

    init(_ heading: [String], right: Set<Int> = [], flexible: Set<Int> = [], kept: Int = 2) {
        self.heading = heading
        self.right = right
        self.flexible = flexible
        self.kept = kept
    }

    /// The width below which a flexible column does not shrink.
    private static let shortest = 8
    /// The indentation of the last column where it is below the others.
    private static let belowIndent = 4

    func text(_ screen: Screen) -> String {
        let head = heading.map { Cell($0, .heading) }
        let isForPeople = screen.isTerminal || isReport
        let filled = rows.map { $0.map { $0.text.isEmpty && !isForPeople ? Cell("-") : $0 } }
        let all = (isForPeople ? [head] : []) + filled
        let widths = heading.indices.map { column in all.map { $0[column].width }.max() ?? 0 }
        var layout = Layout(columns: Array(heading.indices), widths: widths)
        if isForPeople, !rows.isEmpty {
            layout.columns.removeAll { column in column > 0 && filled.allSatisfy { $0[column].text.isEmpty } }
        }
        if let width = screen.width, !isFull { fit(&layout, width, mayLeaveOut: screen.isTerminal) }
        return all.enumerated().map { index, row in
            // The heading of a column that is below the others names nothing.
            let isNameless = layout.isBelow && isForPeople && index == 0
            return line(row, layout, isNameless: isNameless, screen)
        }.joined()
    }

    /// Where the columns stand.
    private struct Layout {
        /// Those that are shown.
        var columns: [Int]
        /// Of all columns, also of those that are not shown.
        var widths: [Int]
        /// Whether the last one is below the others.
        var isBelow = false

        /// The width of all columns but the last, with two spaces after each.
        var usedBeforeLast: Int { columns.dropLast().reduce(0) { $0 + widths[$1] + 2 } }
    }

    /// Shrinks flexible columns until the last column has enough space, or, if that is not possible, until the others fit without it.
    /// Then columns are left out.
    private func fit(_ layout: inout Layout, _ width: Int, mayLeaveOut: Bool) {
        // The last column of the table is text that can be wrapped. If it is empty in all rows, another one is the last.
        let hasText = layout.columns.last == heading.count - 1
        var beside = layout
        let needed = layout.columns.last.map { hasText ? min(layout.widths[$0], Self.narrow) : layout.widths[$0] } ?? 0
        if shrink(&beside, to: width - needed) {
            layout = beside
            return
        }
        // A single column has no others.
        layout.isBelow = hasText && layout.columns.count > 1
        while !shrink(
            &layout, to: layout.isBelow ? width + 2 : width - (layout.columns.last.map { layout.widths[$0] } ?? 0))
        {
            let last = layout.isBelow ? layout.columns.count - 2 : layout.columns.count - 1
            guard mayLeaveOut, last >= kept else { return }
            layout.columns.remove(at: last)
        }
    }

    /// Shrinks flexible columns, the widest first, until all but the last column, with two spaces after each, fit into `limit`.
    /// - Returns: whether they fit.
    private func shrink(_ layout: inout Layout, to limit: Int) -> Bool {
        let shrinkable = layout.columns.dropLast().filter { flexible.contains($0) }
        var used = layout.usedBeforeLast
        while used > limit {
            var widest: Int?
            for column in shrinkable
            where layout.widths[column] > max(Self.shortest, widest.map { layout.widths[$0] } ?? 0) {
                widest = column
            }
            guard let widest else { return false }
            layout.widths[widest] -= 1
            used -= 1
        }
        return true
    }

    private func line(_ row: [Cell], _ layout: Layout, isNameless: Bool, _ screen: Screen) -> String {
        var result = ""
        for column in layout.columns.dropLast() {
            let text = row[column].text.clipped(to: layout.widths[column])
            let gap = String(repeating: " ", count: max(0, layout.widths[column] - displayWidth(text)))
            let painted = screen.paint(text, row[column].style)
            result += (right.contains(column) ? gap + painted : painted + gap) + "  "
        }
        guard let column = layout.columns.last else { return "\n" }
        let last = isNameless ? Cell("") : row[column]
        let indent = layout.isBelow ? Self.belowIndent : layout.usedBeforeLast
        if layout.isBelow {
            while result.last == " " { result.removeLast() }
            // An empty cell needs no line.
            guard !["", "-"].contains(last.text) else { return result + "\n" }
            result += "\n" + String(repeating: " ", count: indent)
        } else if right.contains(column) {
            result += String(repeating: " ", count: max(0, layout.widths[column] - displayWidth(last.text)))
        }
        let lines = last.lines.flatMap { isFull ? [$0] : Self.wrappedLines($0, indent: indent, screen) }
        let margin = "\n" + String(repeating: " ", count: indent)
        result += lines.map { screen.paint($0, last.style) }.joined(separator: margin)
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
    mutating func add(_ label: String, _ values: [String], _ style: Style? = nil) {
        for (index, value) in values.enumerated() { lines.append((index == 0 ? label : "", value, style)) }
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
