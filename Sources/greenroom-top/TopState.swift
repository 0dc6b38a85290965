package import Control

/// A key that was typed.
package enum Key: Equatable, Sendable {
    case character(Unicode.Scalar)
    case up, down, pageUp, pageDown, home, end, left, right
    case enter, escape, backspace, resize
}

/// A request that top sends.
package enum Request: String, Sendable {
    case activate = "Activate"
    case background = "Background"
    case terminate = "Terminate"
}

/// What the program has to do after a key.
package enum Action: Equatable, Sendable {
    case quit
    case request(Request, app: String)
    /// Show what greenroomctl prints.
    case open(Page.Content)
    /// The page was closed.
    case close
    /// Draw everything again, also what other programs have written over.
    case redraw
}

/// Text that is shown instead of the table.
package struct Page: Equatable, Sendable {
    package enum Content: Equatable, Sendable {
        case app(String)
        case log(String)
        case help
    }

    /// The most lines that are kept; the oldest are dropped first.
    package static let maximumLines = 5000

    package var content: Content
    package var title: String
    package var lines: [String] = []
    /// The first line that is shown; `nil`: the last lines, also those that are added.
    var offset: Int?
    package var isLoading = false

    package init(_ content: Content, title: String) {
        self.content = content
        self.title = title
        // A log is read from its end.
        if case .log = content { offset = nil } else { offset = 0 }
    }

    /// The first line of a screen with so many lines.
    package func first(visible: Int) -> Int {
        let last = max(0, lines.count - visible)
        return min(offset ?? last, last)
    }

    package mutating func add(_ text: [String]) {
        lines += text
        let excess = lines.count - Self.maximumLines
        if excess > 0 {
            lines.removeFirst(excess)
            offset = offset.map { max(0, $0 - excess) }
        }
    }

    mutating func scroll(by count: Int, visible: Int) {
        let last = max(0, lines.count - visible)
        let next = max(0, first(visible: visible) + count)
        // At its end, a log follows what is added.
        if case .log = content, next >= last { offset = nil } else { offset = min(next, last) }
    }
}

/// The state of the program: the model, what is shown, and what a key changes. It does no I/O.
package struct TopState: Sendable {
    package enum View: Equatable, Sendable {
        case table
        /// The text of the filter is typed.
        case filter
        /// Whether to terminate the app.
        case question(String)
        case page(Page)
    }

    /// A sentence in the last line.
    package struct Notice: Equatable, Sendable {
        package var text: String
        package var isError = false

        package init(_ text: String, isError: Bool = false) {
            self.text = text
            self.isError = isError
        }
    }

    package var model = TopModel()
    package var view = View.table
    package var notice: Notice?
    /// Why the apps are not up to date; shown instead of the notice.
    package var alarm: String?
    package var version = ""
    /// Whether a list of apps has arrived.
    package var isListed = false
    /// The size of the terminal.
    package var rows = 24
    /// The width of the longest name, which the columns depend on.
    package private(set) var longestName = 0
    private var first = 0

    /// A longer filter is not typed.
    private static let maximumFilter = 64

    package init() {}

    /// Takes the list of all apps.
    package mutating func list(_ apps: [AppStatus], at now: Duration, processor: [String: Double] = [:]) {
        isListed = true
        model.replace(apps, at: now, processor: processor)
        longestName = apps.map { fitted($0.id, to: Column.widestName).width }.max() ?? 0
    }

    /// The first app that is shown. It changes only if the selected one would not be shown.
    func top(visible: Int) -> Int {
        let last = model.first(showing: model.shown.count - 1, in: visible)
        return min(max(first, model.first(showing: model.position, in: visible)), model.position, last)
    }

    /// Scrolls so that the selected app is shown. To be called before the screen is drawn.
    package mutating func scroll() { first = top(visible: Picture.appLines(rows)) }

    // MARK: Keys

    package mutating func press(_ key: Key) -> Action? {
        if key == .resize || key == .character("\u{0C}") { return .redraw }
        switch view {
        case .table: return pressInTable(key)
        case .filter: return pressInFilter(key)
        case .question(let app): return pressInQuestion(key, app)
        case .page(let page): return pressInPage(key, page)
        }
    }

    private mutating func pressInTable(_ key: Key) -> Action? {
        notice = nil
        let page = Picture.appLines(rows)
        switch key {
        case .up, .character("k"): model.move(by: -1)
        case .down, .character("j"): model.move(by: 1)
        case .pageUp: model.move(by: -page)
        case .pageDown, .character(" "): model.move(by: page)
        case .home, .character("g"): model.move(by: -model.shown.count)
        case .end, .character("G"): model.move(by: model.shown.count)
        case .character("s"), .character(">"), .right: sort(by: 1)
        case .character("<"), .left: sort(by: -1)
        case .character("r"): model.isReversed.toggle()
        case .character("/"): view = .filter
        case .escape: model.filter = ""
        case .character("q"): return .quit
        case .character("?"), .character("h"):
            var help = Page(.help, title: "Keys")
            help.add(Self.help)
            view = .page(help)
        case .enter, .character("l"), .character("a"), .character("b"), .character("t"): return pressForApp(key)
        case .character, .backspace, .resize: break
        }
        return nil
    }

    private mutating func pressForApp(_ key: Key) -> Action? {
        guard let app = model.selected else { return nil }
        switch key {
        case .enter:
            view = .page(Page(.app(app), title: app))
            return .open(.app(app))
        case .character("l"):
            view = .page(Page(.log(app), title: "Log of \(app)"))
            return .open(.log(app))
        case .character("a"): return .request(.activate, app: app)
        case .character("b"): return .request(.background, app: app)
        default:
            view = .question(app)
            return nil
        }
    }

    private mutating func sort(by step: Int) {
        let keys = SortKey.allCases
        let index = (keys.firstIndex(of: model.sort) ?? 0) + step + keys.count
        model.sort = keys[index % keys.count]
        notice = Notice("Sorted by \(model.sort.rawValue)")
    }

    private mutating func pressInFilter(_ key: Key) -> Action? {
        switch key {
        case .enter: view = .table
        case .escape:
            model.filter = ""
            view = .table
        case .backspace: model.filter = String(model.filter.dropLast())
        case .up: model.move(by: -1)
        case .down: model.move(by: 1)
        case .character(let scalar):
            guard scalar.value >= 0x20, scalar.value != 0x7F, model.filter.count < Self.maximumFilter else { break }
            model.filter.unicodeScalars.append(scalar)
        case .pageUp, .pageDown, .home, .end, .left, .right, .resize: break
        }
        return nil
    }

    private mutating func pressInQuestion(_ key: Key, _ app: String) -> Action? {
        view = .table
        // Every other key means no.
        return key == .character("y") || key == .character("Y") ? .request(.terminate, app: app) : nil
    }

    private mutating func pressInPage(_ key: Key, _ shown: Page) -> Action? {
        var page = shown
        notice = nil
        let visible = Picture.pageLines(rows)
        switch key {
        case .up, .character("k"): page.scroll(by: -1, visible: visible)
        case .down, .character("j"): page.scroll(by: 1, visible: visible)
        case .pageUp: page.scroll(by: -visible, visible: visible)
        case .pageDown, .character(" "): page.scroll(by: visible, visible: visible)
        case .home, .character("g"): page.scroll(by: -page.lines.count, visible: visible)
        case .end, .character("G"): page.scroll(by: page.lines.count, visible: visible)
        case .character("q"), .escape, .enter, .left:
            view = .table
            return .close
        case .character, .backspace, .right, .resize: break
        }
        view = .page(page)
        return nil
    }

    private static let help = [
        "Up Down PgUp PgDn Home End   select an app",
        "Enter                        its status and receipts",
        "l                            its log",
        "a                            activate it: to the foreground, or launch it",
        "b                            move it to the background",
        "t                            terminate it, after a question",
        "s > <                        sort by the next or the previous column",
        "r                            reverse the order",
        "/                            show only apps with a text in their ID,",
        "                             name or state; Esc shows all again",
        "Ctrl-L                       draw the screen again",
        "q                            quit; on a page, back",
        "",
        "MEMORY     what ending the app gives back",
        "SWAP       what of it is in swap",
        "CPU%       percent of one processor since the last look",
        "WAKES      how often input woke the process",
        "LEFT       until the nearest deadline, or until a task or wake expires",
        "WAITS FOR  why the app is awake, or what wakes or launches it",
    ]
}
