import CNcurses
import Control
import Systemd
import Testing
import greenroom_top

/// Apps of which top draws screens.
enum Apps {
    static func app(_ id: String, _ state: String, _ change: (inout AppStatus) -> Void = { _ in }) -> AppStatus {
        var app = AppStatus()
        (app.id, app.name, app.state) = (id, id, state)
        change(&app)
        return app
    }

    static func task(_ name: String, _ remaining: Duration?) -> TaskStatus {
        var task = TaskStatus()
        (task.name, task.remaining) = (name, remaining)
        return task
    }

    static let mail = app("mail", "active") {
        ($0.pid, $0.memoryBytes, $0.statusText) = (4711, 64 << 20, "12 messages")
    }
    static let photos = app("photos", "background") {
        ($0.pid, $0.memoryBytes, $0.swappedBytes, $0.trafficWakes) = (4712, 300 << 20, 5 << 20, 12)
        $0.tasks = [task("upload", .seconds(28)), task("sync", nil)]
    }
    static let web = app("web", "suspended") {
        ($0.pid, $0.memoryBytes, $0.swappedBytes, $0.timerIn) = (4713, 20 << 20, 10 << 20, .seconds(90))
        ($0.residentBytes, $0.savedBytes) = (12 << 20, 10 << 20)
        var watch = WatchStatus()
        watch.watched = 3
        $0.watch = watch
    }
    static let clock = app("clock", "launching") {
        $0.pid = 4714
        var deadline = DeadlineStatus()
        (deadline.what, deadline.remaining) = ("launch", .milliseconds(4200))
        $0.deadline = deadline
    }
    static let broken = app("broken", "notRunning") { $0.error = "broken.app:2:6: error: Type=: invalid value 'notfy'" }

    static let all = [broken, clock, mail, photos, web]

    /// The state after a list has arrived at a time.
    static func state(_ apps: [AppStatus] = all, at now: Duration = .zero) -> TopState {
        // By which the widths are counted.
        cncurses_locale("C.UTF-8")
        var state = TopState()
        state.version = "1.2.3"
        state.list(apps, at: now, processor: ["mail": 0.123, "photos": 1.5])
        return state
    }

    static func texts(_ state: TopState, _ rows: Int, _ columns: Int, at now: Duration = .zero) -> [String] {
        Picture(state, rows: rows, columns: columns, at: now).lines.map(\.text)
    }
}

@Suite("The screen of top")
struct PictureTests {
    @Test("80×24: a line for each app, with what it waits for")
    func normal() {
        var state = Apps.state()
        state.model.memory.level = "normal"
        state.model.memory.appsBytes = 384 << 20
        (state.model.memory.availableBytes, state.model.memory.totalBytes) = (3 << 30, 4 << 30)
        let lines = Apps.texts(state, 24, 80)
        #expect(lines.count == 24)
        #expect(
            lines.prefix(8) == [
                "greenroomd 1.2.3  5 apps: 1 active, 1 launching, 1 background, 1 suspended, 1 n…",
                "Memory normal: apps 384.0M, 3.0G of 4.0G available",
                "APP      STATE^       MEMORY    SWAP  CPU% WAKES     LEFT WAITS FOR",
                "mail     active        64.0M          12.3                12 messages",
                "clock    launching        0B                           5s to finish launching",
                "photos   background   300.0M    5.0M   150    12      28s task upload, task sync",
                "web      suspended     20.0M   10.0M                      timer 1min 30s, input",
                "broken   notRunning                                       broken.app:2:6: error…",
            ])
        #expect(lines.last?.hasPrefix("?:help q:quit") == true)
    }

    @Test("140×40: process numbers, tasks, what is resident and saved, too, and the whole text")
    func wide() {
        let lines = Apps.texts(Apps.state(), 40, 140)
        #expect(lines.count == 40)
        #expect(
            lines[2]
                == "APP      STATE^          PID  MEMORY     RES    SWAP   SAVED  CPU% WAKES TASKS     LEFT WAITS FOR")
        #expect(
            lines[5]
                == "photos   background     4712  300.0M            5.0M           150    12     2      28s task upload, task sync"
        )
        #expect(lines[6].hasPrefix("web      suspended      4713   20.0M   12.0M   10.0M   10.0M "))
    }

    @Test("below an app whose tasks report their progress a line has it (L21)")
    func progress() {
        var task = TaskStatus()
        (task.name, task.done, task.total, task.title) = ("export", 2, 5, "Exporting")
        let editor = Apps.app("editor", "background") { $0.tasks = [task] }
        let state = Apps.state([editor, Apps.web])
        #expect(Apps.texts(state, 24, 80).dropFirst(4).first == "  export 40% of 'Exporting'")
    }

    @Test("below an app with several scenes a line has their states, the one activated last first (L34)")
    func scenes() {
        let editor = Apps.app("editor", "active") {
            $0.pid = 4715
            $0.scenes = [
                SceneStatus(id: "old", role: "window", state: "unattached"),
                SceneStatus(id: "tools", role: "panel", state: "foregroundActive"),
                SceneStatus(id: "doc-1", role: "window", state: "background"),
                SceneStatus(id: "doc-2", role: "window", state: "foregroundInactive"),
            ]
        }
        let state = Apps.state([editor, Apps.web])
        #expect(
            Apps.texts(state, 24, 80).dropFirst(3).prefix(3) == [
                "editor   active           0B",
                "  doc-2 inactive, doc-1 background, tools (panel) active, old unattached",
                "web      suspended     20.0M   10.0M                      timer 1min 30s, input",
            ])
        #expect(Apps.texts(state, 24, 40)[4] == "  doc-2 inactive, doc-1 background, too…")
        // The record that follows an event has the states of the scenes.
        var model = state.model
        var event = LifecycleEvent(.stateChanged, app: "editor")
        event.state = "background"
        _ = model.apply(event, at: .zero)
        #expect(model.apps["editor"]?.scenes != nil)
        event.state = "notRunning"
        _ = model.apply(event, at: .zero)
        #expect(model.apps["editor"]?.scenes == nil)
    }

    @Test(
        "each size has exactly its lines, and none is wider",
        arguments: [(1, 1), (2, 3), (5, 20), (3, 80), (9, 40), (10, 40), (24, 79), (200, 500)])
    func sizes(rows: Int, columns: Int) {
        var state = Apps.state()
        for key in [Key.down, .character("t"), .escape, .enter, .character("q"), .character("?"), .escape] {
            state.rows = rows
            _ = state.press(key)
            state.scroll()
            let picture = Picture(state, rows: rows, columns: columns, at: .zero)
            #expect(picture.lines.count == rows)
            #expect(picture.lines.allSatisfy { $0.width <= columns })
            #expect(
                picture.lines.allSatisfy { line in line.parts.map { displayWidth($0.text) }.reduce(0, +) == line.width }
            )
        }
    }

    @Test("20×5: the names and states of three apps, and a line for the keys")
    func small() {
        #expect(
            Apps.texts(Apps.state(), 5, 20) == [
                "APP      STATE^", "mail     active", "clock    launching", "photos   background",
                "?:help q:quit Enter…",
            ])
    }

    @Test("names in wide characters are cut by columns, and control characters are escaped")
    func names() {
        let wide = Apps.app("写真写真写真写真写真写真写真写真写真写真写真写真", "active") { $0.statusText = "e\u{301}e\u{301}" }
        let escapes = Apps.app("a\u{1B}[2J\u{202E}b", "background") { $0.tasks = [Apps.task("x\u{1B}]0;y\u{7}", nil)] }
        let picture = Picture(Apps.state([wide, escapes]), rows: 24, columns: 80, at: .zero)
        let texts = picture.lines.map(\.text)
        // Two columns each, and one for the ellipsis.
        #expect(texts[3].hasPrefix("写真写真写真写真写真…  active"))
        #expect(texts[3].hasSuffix("e\u{301}e\u{301}"))
        #expect(texts[4].hasPrefix("a\\x1b[2J\\u202eb "))
        #expect(picture.lines.allSatisfy { $0.width <= 80 })
        #expect(!texts.joined().unicodeScalars.contains { $0.value < 0x20 || $0.value == 0x202E })
    }

    @Test("a page shows its lines, and a log its last ones until it is scrolled")
    func page() {
        var state = Apps.state()
        state.rows = 12
        #expect(state.press(.character("l")) == .open(.log("mail")))
        guard case .page(var page) = state.view else { return }
        page.add((1...100).map { "line \($0)\u{1B}[31m" })
        state.view = .page(page)
        #expect(Apps.texts(state, 12, 40)[10] == "line 100\\x1b[31m")
        _ = state.press(.pageUp)
        #expect(Apps.texts(state, 12, 40)[10] == "line 90\\x1b[31m")
        if case .page(var page) = state.view {
            page.add(["line 101"])
            state.view = .page(page)
        }
        #expect(Apps.texts(state, 12, 40)[10] == "line 90\\x1b[31m")
        _ = state.press(.end)
        #expect(Apps.texts(state, 12, 40)[10] == "line 101")
        #expect(state.press(.character("q")) == .close)
        #expect(state.view == .table)
    }

    @Test("a page keeps its last 5,000 lines")
    func longPage() {
        var page = Page(.log("a"), title: "")
        page.add((0..<12_000).map { "\($0)" })
        #expect(page.lines.count == 5000)
        #expect(page.lines.last == "11999")
    }
}
