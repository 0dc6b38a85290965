import Control
import Testing
import greenroom_top
import greenroomctl

@Suite("The apps of top")
struct ModelTests {
    private func shown(_ sort: SortKey, isReversed: Bool = false) -> [String] {
        var model = Apps.state().model
        model.sort = sort
        model.isReversed = isReversed
        return model.shown
    }

    @Test("each key sorts, apps without a value last, and reversed")
    func sorting() {
        #expect(shown(.name) == ["broken", "clock", "mail", "photos", "web"])
        #expect(shown(.name, isReversed: true) == ["web", "photos", "mail", "clock", "broken"])
        #expect(shown(.state) == ["mail", "clock", "photos", "web", "broken"])
        #expect(shown(.memory) == ["photos", "mail", "web", "clock", "broken"])
        #expect(shown(.swapped) == ["web", "photos", "broken", "clock", "mail"])
        #expect(shown(.resident) == ["web", "broken", "clock", "mail", "photos"])
        #expect(shown(.saved) == ["web", "broken", "clock", "mail", "photos"])
        #expect(shown(.cpu) == ["photos", "mail", "broken", "clock", "web"])
        #expect(shown(.wakes) == ["photos", "broken", "clock", "mail", "web"])
        #expect(shown(.left) == ["clock", "photos", "broken", "mail", "web"])
    }

    @Test("greenroomctl accepts the keys that top sorts by")
    func keys() { #expect(Set(TopOptions.keys) == Set(SortKey.allCases.map(\.rawValue))) }

    @Test("a filter is a part of the ID or the state, whatever the case, and Esc ends it")
    func filter() {
        var state = Apps.state()
        for letter in "/SUSP".unicodeScalars { _ = state.press(.character(letter)) }
        #expect(state.model.shown == ["web"])
        #expect(state.model.selected == "web")
        _ = state.press(.enter)
        #expect(state.view == .table)
        #expect(state.press(.character("b")) == .request(.background, app: "web"))
        _ = state.press(.escape)
        #expect(state.model.shown.count == 5)
        #expect(state.model.selected == "web")
    }

    @Test("the selection stays with its app while the order changes, and moves to the next one when the app is gone")
    func selection() {
        var state = Apps.state()
        state.model.sort = .name
        state.model.move(by: 1)
        #expect(state.model.selected == "photos")
        state.list([Apps.app("a", "active")] + Apps.all, at: .zero)
        #expect(state.model.selected == "photos")
        state.list(Apps.all.filter { $0.id != "photos" }, at: .zero)
        #expect(state.model.selected == "web")
        state.list([], at: .zero)
        #expect(state.model.selected == nil)
        #expect(state.press(.character("a")) == nil)
    }

    @Test("the selected one of 10,000 apps is on the screen, whatever its position")
    func scrolling() {
        var state = Apps.state((0..<10_000).map { Apps.app("app\(10_000 + $0)", "suspended") })
        state.rows = 24
        for key in [Key.end, .pageUp, .up, .home, .pageDown, .down] {
            _ = state.press(key)
            state.scroll()
            let lines = Picture(state, rows: 24, columns: 80, at: .zero).lines
            let selected = lines.dropFirst(3).filter(\.isReversed)
            #expect(selected.count == 1)
            #expect(selected.first?.text.hasPrefix(state.model.selected ?? "?") == true)
        }
    }

    @Test("the selected app is on the screen, where apps with several scenes take two lines")
    func scrollingScenes() {
        let scenes = ["a", "b"].map { SceneStatus(id: $0, role: "window", state: "background") }
        let apps = (0..<100).map { number in
            Apps.app("app\(1000 + number)", "suspended") { if number % 3 == 0 { $0.scenes = scenes } }
        }
        var state = Apps.state(apps)
        state.rows = 24
        func keys(_ key: Key, _ count: Int) -> [Key] { Array(repeating: key, count: count) }
        for key in keys(.down, 40) + [.end] + keys(.up, 40) + [.home, .pageDown, .pageUp] {
            _ = state.press(key)
            state.scroll()
            let lines = Picture(state, rows: 24, columns: 80, at: .zero).lines
            let selected = lines.dropFirst(3).filter(\.isReversed)
            #expect(selected.count == 1)
            #expect(selected.first?.text.hasPrefix(state.model.selected ?? "?") == true)
        }
        _ = state.press(.end)
        state.scroll()
        // Both lines of the last app.
        let last = Picture(state, rows: 24, columns: 80, at: .zero).lines[21...22].map(\.text)
        #expect(last[0].hasPrefix("app1099") && last[1] == "  b background, a background")
    }

    @Test("terminate asks, and only y is a yes")
    func question() {
        var state = Apps.state()
        #expect(state.press(.character("t")) == nil)
        #expect(state.view == .question("mail"))
        #expect(state.press(.enter) == nil)
        #expect(state.view == .table)
        _ = state.press(.character("t"))
        #expect(state.press(.character("y")) == .request(.terminate, app: "mail"))
        #expect(state.view == .table)
    }

    @Test("deadlines and tasks count down from the moment at which the record arrived")
    func countdowns() {
        let state = Apps.state(at: .seconds(100))
        func left(_ id: String, _ now: Duration) -> String? {
            state.model.apps[id]?.nearestEnd.map { countdown($0 - now) }
        }
        #expect(left("photos", .seconds(100)) == "28s")
        #expect(left("photos", .seconds(110)) == "18s")
        #expect(left("photos", .milliseconds(127_500)) == "1s")
        #expect(left("photos", .seconds(200)) == "0s")
        #expect(left("clock", .seconds(100)) == "5s")
        #expect(left("mail", .seconds(100)) == nil)
        #expect(state.model.apps["web"]?.waits(at: .seconds(150)) == "timer 40s, input")
    }

    @Test(
        "a time left has at most eight columns",
        arguments: [
            (0, "0s"), (59, "59s"), (60, "1min"), (599, "9min 59s"), (601, "10min"), (3599, "59min"),
            (7500, "2h 5min"), (35_999, "9h 59min"), (36_000, "10h"), (180_000, "2d 2h"),
        ])
    func times(seconds: Int64, text: String) {
        #expect(countdown(.seconds(seconds)) == text)
        #expect(text.count <= 8)
    }

    @Test("an event changes the state at once: what belonged to the old one is gone until the record arrives")
    func events() {
        var state = Apps.state()
        var event = LifecycleEvent(.stateChanged, app: "clock")
        event.state = "notRunning"
        #expect(state.model.apply(event, at: .seconds(1)) == "clock")
        state.model.arrange()
        let row = state.model.apps["clock"]
        #expect(row?.status.state == "notRunning")
        #expect(row?.status.pid == nil)
        #expect(row?.nearestEnd == nil)
        #expect(state.model.apply(LifecycleEvent(.taskBegan, app: "photos"), at: .seconds(1)) == "photos")
        #expect(state.model.apply(LifecycleEvent(.taskBegan, app: "unknown"), at: .seconds(1)) == nil)
        state.model.update(Apps.app("photos", "suspended"), at: .seconds(2))
        state.model.arrange()
        #expect(state.model.apps["photos"]?.processor == nil)
        #expect(state.model.counts.map(\.count) == [1, 2, 2])
    }
}
