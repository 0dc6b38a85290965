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

    /// A timeline whose last time on the axis is its end.
    private static func minute() -> Timeline {
        var timeline = Timeline()
        timeline.end = timeline.start + .seconds(60)
        return timeline
    }

    @Test("the last time of the axis of a picture is not cut at the edge")
    func lastTime() throws {
        var drawing = TimelineDrawing(Self.minute()) { "\($0)" }
        let labels = drawing.svg().split(separator: "\n").filter { $0.contains(" y=\"20\" class=\"dim\"") }
        #expect(labels.count == 7)
        let last = try #require(labels.last)
        #expect(last.hasPrefix("<text x=\"1198\" ") && last.hasSuffix(" text-anchor=\"end\">+1min</text>"), "\(last)")
        #expect(labels.dropLast().allSatisfy { !$0.contains("text-anchor") })
    }

    /// What the program of the page finds of a browser: a canvas of 1000 pixels on which a character is 7 wide, and which records the
    /// right ends of the times of the axis.
    private static let browser = """
        const ends = [], elements = {};
        const recorder = new Proxy({
          measureText: text => ({width: text.length * 7}),
          fillText: (text, x, y) => { if (y === 14) ends.push(x + text.length * 7); },
        }, {get: (known, name) => known[name] || (() => {}), set: () => true});
        const make = () => ({getContext: () => recorder, clientWidth: 1000, style: {}, dataset: {}, addEventListener() {}, append() {}});
        const document = {getElementById: id => elements[id] = elements[id] || make(), addEventListener() {}, createElement: make,
          documentElement: make(), body: make()};
        const window = {addEventListener() {}};

        """

    @Test(
        "the last time of the axis of a page is not cut at the edge",
        .enabled(if: access("/usr/bin/node", X_OK) == 0, "node is not installed"))
    func lastTimeOfPage() throws {
        let folder = makeTemporaryFolder("greenroom-axis")
        defer { removeTree(folder) }
        let html = TimelinePage.html(Self.minute())
        func part(after start: String) throws -> Substring {
            let range = try #require(html.firstRange(of: start))
            let rest = html[range.upperBound...]
            return rest[..<(try #require(rest.firstRange(of: "</script>")).lowerBound)]
        }
        let data = JSONValue.string(String(try part(after: "id=\"data\">"))).serialized(pretty: false)
        let file = try #require(fopen(folder + "/page.js", "w"))
        fputs(Self.browser + "document.getElementById('data').textContent = \(data);\n", file)
        fputs(String(try part(after: "<script>")) + "\nconsole.log(ends.length, Math.max(...ends));\n", file)
        fclose(file)
        #expect(output(of: "/usr/bin/node \(folder)/page.js") == "7 998\n")
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
