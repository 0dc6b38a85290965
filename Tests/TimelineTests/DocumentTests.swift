import Glibc
import JSON
import LifecycleCore
import TestKit
import Testing

@testable import Timeline

@Suite("The documents of a timeline")
struct DocumentTests {
    private static func timeline() -> Timeline {
        var story = Story()
        story.runOutOfMemory()
        return Story.timeline([story.recorder.file()])
    }

    @Test("JSON has times from the start, in order")
    func json() throws {
        let timeline = Self.timeline()
        let json = try JSONValue.parse(timeline.json.serialized(pretty: true))
        let apps = try #require(json["apps"]?.arrayValue)
        #expect(apps.compactMap { $0["app"]?.stringValue } == ["feed", "stuck", "web"])
        let duration = try #require(json["duration"]?.integerValue)
        for app in apps {
            for bar in app["states"]?.arrayValue ?? [] {
                let (from, to) = (bar["from"]?.integerValue ?? -1, bar["to"]?.integerValue ?? -1)
                #expect(0 <= from && from <= to && to <= duration)
            }
        }
        #expect(json["start"]?.stringValue?.hasPrefix("2023-11-14T22:15:00.0") ?? false)
    }

    @Test("an SVG picture has a bar with a tooltip for each state, and escapes what others have named")
    func svg() {
        var timeline = Self.timeline()
        timeline.lanes[0].tasks = [
            Timeline.Bar(start: timeline.start, end: timeline.end, label: "<b>", sentence: "task '<script>&\"\u{1b}'")
        ]
        var drawing = TimelineDrawing(timeline) { "\($0)" }
        let svg = drawing.svg()
        #expect(svg.hasPrefix("<svg xmlns=") && svg.hasSuffix("</svg>\n") && !svg.contains("<script"))
        #expect(svg.contains("task '&lt;script&gt;&amp;&quot;\u{fffd}'"))
        for lane in timeline.lanes { for bar in lane.states { #expect(svg.contains(escapedXML(bar.sentence))) } }
        #expect(svg.count(of: "marker-end") == timeline.arrows.count)
    }

    @Test("an HTML page has its data in it, and loads nothing")
    func html() {
        var timeline = Self.timeline()
        timeline.problems = ["</script><img src=x>"]
        let html = TimelinePage.html(timeline)
        #expect(html.count(of: "</script>") == 2 && !html.contains("<img"))
        #expect(!html.contains("http://") && !html.contains("https://") && !html.contains(" src=\""))
    }

    @Test("10,000 apps are 10,000 lanes, one below the other, in a picture and in a page")
    func manyApps() throws {
        var timeline = Timeline()
        timeline.end = timeline.start + .seconds(60)
        timeline.lanes = (0..<10_000).map { number in
            var lane = Timeline.Lane(app: "app\(number)")
            lane.states = [Timeline.Bar(start: timeline.start, end: timeline.end, label: "suspended", sentence: "idle")]
            return lane
        }
        #expect(timeline.bars <= TimelineDrawing.maximumBars)
        var drawing = TimelineDrawing(timeline) { "\($0)" }
        let svg = drawing.svg()
        #expect(svg.count(of: "text-anchor=\"end\"><title>app") == 10_000)
        let height = try #require(
            svg.split(separator: "height=\"").dropFirst().first.flatMap { Int($0.prefix { $0.isNumber }) })
        #expect(height > 10_000 * 18)
        #expect(TimelinePage.html(timeline).count(of: "\"app\":\"app") == 10_000)
    }

    /// Points at the first bar of a state, turns the wheel there, and presses a key; what the page shows is kept as attributes.
    private static let use = """
        <script>
        const shown = document.body.dataset, bar = boxes.find(box => box.item.label);
        const at = {clientX: bar.x + bar.w / 2, clientY: canvas.getBoundingClientRect().top + bar.y + bar.h / 2};
        canvas.dispatchEvent(new PointerEvent('pointermove', at));
        shown.sentence = output.textContent; shown.expected = bar.item.sentence;
        canvas.dispatchEvent(new WheelEvent('wheel', {...at, deltaY: -100, cancelable: true}));
        shown.wheel = Math.round(100 * (to - from) / data.duration);
        document.dispatchEvent(new KeyboardEvent('keydown', {key: '+'}));
        shown.key = Math.round(100 * (to - from) / data.duration);
        canvas.dispatchEvent(new MouseEvent('dblclick'));
        shown.all = Math.round(100 * (to - from) / data.duration);
        </script>
        """

    @Test(
        "in a browser the page is drawn, shows the sentence of a bar, and zooms by wheel and keys",
        .enabled(if: access("/usr/bin/chromium", X_OK) == 0, "chromium is not installed"))
    func browser() throws {
        let folder = makeTemporaryFolder("greenroom-page")
        defer { removeTree(folder) }
        let timeline = Self.timeline()
        let file = try #require(fopen(folder + "/page.html", "w"))
        fputs(TimelinePage.html(timeline) + Self.use, file)
        fclose(file)
        let command =
            "/usr/bin/chromium --headless --no-sandbox --disable-gpu --user-data-dir=\(folder)/profile --dump-dom file://\(folder)/page.html 2>/dev/null"
        let page = try #require(output(of: command))
        func attribute(_ name: String) -> String {
            String(page.split(separator: "data-\(name)=\"").dropFirst().first?.prefix { $0 != "\"" } ?? "")
        }
        #expect(try #require(Int(attribute("drawn"))) >= timeline.bars)
        #expect(attribute("expected") != "" && attribute("sentence").hasSuffix(attribute("expected")))
        #expect([attribute("wheel"), attribute("key"), attribute("all")] == ["80", "64", "100"])
    }

    /// What a command of the shell prints.
    private func output(of command: String) -> String? {
        guard let pipe = popen(command, "r") else { return nil }
        var text: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = fread(&buffer, 1, buffer.count, pipe)
            if count == 0 { break }
            text += buffer.prefix(count)
        }
        return pclose(pipe) == 0 ? String(decoding: text, as: UTF8.self) : nil
    }
}

extension String {
    func count(of text: String) -> Int { components(of: text) - 1 }
    private func components(of text: String) -> Int { split(separator: text, omittingEmptySubsequences: false).count }
}
