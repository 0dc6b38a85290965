import Control

/// The lines of a screen, drawn from the state of the program. It does no I/O.
package struct Picture: Equatable, Sendable {
    package private(set) var lines: [Line] = []
    private let rows: Int
    private let columns: Int

    /// A screen with fewer lines than this has only the table and the last line.
    private static let lowest = 10

    /// How many lines a screen has for apps.
    package static func appLines(_ rows: Int) -> Int { max(1, rows - (rows < lowest ? 2 : 4)) }

    /// How many lines a screen has for a page.
    package static func pageLines(_ rows: Int) -> Int { max(1, rows - 2) }

    /// Draws the screen: exactly `rows` lines of at most `columns` columns.
    package init(_ state: TopState, rows: Int, columns: Int, at now: Duration) {
        self.rows = max(0, rows)
        self.columns = max(0, columns)
        switch state.view {
        case .table, .filter, .question:
            addHead(state)
            addTable(state, now)
        case .page(let page): addPage(page)
        }
        while lines.count < self.rows { lines.append(Line(columns: self.columns)) }
        // On the lowest screens the last line is the one with the question, or with the only app.
        if self.rows > 1 { lines = lines.prefix(self.rows - 1) + [lastLine(state)] }
        lines = Array(lines.prefix(self.rows))
    }

    private mutating func addHead(_ state: TopState) {
        guard rows >= Self.lowest else { return }
        let counts = state.model.counts.map { "\($0.count) \($0.state == "notRunning" ? "not running" : $0.state)" }
        let total = state.model.apps.count
        let isFiltered = state.model.shown.count != total
        let apps = total == 1 ? "1 app" : "\(total) apps"
        var first = Line(columns: columns)
        first.add("greenroomd", .bold)
        first.add(state.version.isEmpty ? "" : " \(state.version)")
        first.add(isFiltered ? "  \(state.model.shown.count) of \(apps)" : "  \(apps)")
        first.add(counts.isEmpty ? "" : ": " + counts.joined(separator: ", "))
        lines.append(first)
        lines.append(memoryLine(state.model.memory))
    }

    private func memoryLine(_ memory: MemoryStatus) -> Line {
        var line = Line(columns: columns)
        guard !memory.level.isEmpty else { return line }
        line.add("Memory ")
        line.add(memory.level, memory.level == "normal" ? .green : memory.level == "critical" ? .red : .yellow)
        let budget = memory.budgetBytes.map { " of a budget of \(formattedSize($0))" } ?? ""
        line.add(": apps \(formattedSize(memory.appsBytes))\(budget)")
        let source = memory.source == "limit" ? memory.limit.map { ($0.availableBytes, $0.totalBytes) } : nil
        let (available, whole) = source ?? (memory.availableBytes, memory.totalBytes)
        line.add(", \(formattedSize(available)) of \(formattedSize(whole)) available")
        if let swap = memory.swapTotalBytes, let free = memory.swapFreeBytes, swap >= free {
            line.add(", swap \(formattedSize(swap - free)) of \(formattedSize(swap))")
        }
        return line
    }

    // MARK: The table

    private mutating func addTable(_ state: TopState, _ now: Duration) {
        let model = state.model
        let visible = Self.appLines(rows)
        let top = state.top(visible: visible)
        let ids = model.shown.dropFirst(top).prefix(visible)
        let layout = Column.layout(columns, name: state.longestName)
        if rows > 2 { lines.append(heading(layout, model)) }
        for id in ids {
            guard let app = model.apps[id] else { continue }
            var line = Line(columns: columns)
            for (index, cell) in layout.enumerated() {
                if index > 0 { line.add(" ") }
                let isSelected = id == model.selected
                line.add(
                    cell.column.text(app, at: now), isSelected ? .plain : cell.column.style(app), columns: cell.width,
                    isRight: cell.column.isRight)
            }
            if id == model.selected {
                line.fill()
                line.isReversed = true
            }
            lines.append(line)
            if let scenes = app.scenes { lines.append(Line("  " + scenes, .faint, columns: columns)) }
            if let progress = app.progress { lines.append(Line("  " + progress, .faint, columns: columns)) }
        }
        if ids.isEmpty, let sentence = emptySentence(state) { lines.append(Line(sentence, .faint, columns: columns)) }
    }

    private func emptySentence(_ state: TopState) -> String? {
        guard state.isListed else { return "Waiting for greenroomd …" }
        return state.model.apps.isEmpty ? "No apps." : "No app matches '\(state.model.filter)'."
    }

    private func heading(_ layout: [(column: Column, width: Int)], _ model: TopModel) -> Line {
        var line = Line(columns: columns)
        for (index, cell) in layout.enumerated() {
            if index > 0 { line.add(" ") }
            let isKey = cell.column.key == model.sort
            // The direction: names and states ascend, sizes descend.
            let ascends = [.name, .state, .left].contains(model.sort) != model.isReversed
            let mark = isKey ? (ascends ? "^" : "v") : ""
            line.add(
                cell.column.heading + mark, isKey ? .bold : .plain, columns: cell.width, isRight: cell.column.isRight)
        }
        line.fill()
        line.isReversed = true
        return line
    }

    // MARK: Pages

    private mutating func addPage(_ page: Page) {
        var head = Line(columns: columns)
        head.add(page.title, .bold)
        head.fill()
        head.isReversed = true
        lines.append(head)
        let visible = Self.pageLines(rows)
        for text in page.lines.dropFirst(page.first(visible: visible)).prefix(visible) {
            lines.append(Line(text, columns: columns))
        }
    }

    // MARK: The last line

    private func notice(_ state: TopState) -> Line? {
        if let alarm = state.alarm { return Line(alarm, .red, columns: columns) }
        return state.notice.map { Line($0.text, $0.isError ? .red : .bold, columns: columns) }
    }

    private func lastLine(_ state: TopState) -> Line {
        switch state.view {
        case .question(let app):
            // The keys first: the name of the app may be long.
            return Line("y/N: terminate \(app)?", .bold, columns: columns)
        case .filter:
            return Line("Filter: \(state.model.filter)_", .bold, columns: columns)
        case .table:
            if let notice = notice(state) { return notice }
            return Line(
                "?:help q:quit Enter a:activate b:background t:terminate l:log s:sort /:filter", .faint,
                columns: columns)
        case .page(let page):
            if let notice = notice(state) { return notice }
            let visible = Self.pageLines(rows)
            let last = min(page.lines.count, page.first(visible: visible) + visible)
            let position = page.isLoading ? "reading … " : "line \(last) of \(page.lines.count)"
            return Line("q:back Up Down PgUp PgDn Home End  \(position)", .faint, columns: columns)
        }
    }
}
