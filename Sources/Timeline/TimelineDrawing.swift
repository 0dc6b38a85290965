import Control
package import LifecycleCore

/// `plot --svg`: a picture that a browser and a README show. The sentence of each bar is its tooltip.
package struct TimelineDrawing {
    private let timeline: Timeline
    /// A time of day for the axis.
    private let clockText: (UInt64) -> String
    private var text = ""
    private var y = Double(Self.top)
    /// The middle of each lane, for arrows.
    private var centers: [Timeline.Origin: Double] = [:]

    /// A picture with more bars shows nothing, and takes a browser long to open.
    package static let maximumBars = 20_000

    private static let (width, left, right, top) = (1200, 170, 20, 34)
    private static let (barHeight, rowHeight, memoryHeight, gap) = (18.0, 7.0, 16.0, 9.0)
    /// Further rows of deadlines or tasks that overlap are left out.
    private static let maximumRows = 4
    /// An arrow of a lane that is not drawn begins here.
    private static let margin = 8.0
    /// No digit of a system font is wider, at the size of the axis.
    private static let digitWidth = 7.0

    package static let colors: [(state: AppState, color: String)] = [
        (.launching, "#f2b134"), (.active, "#2e9e5b"), (.inactive, "#93c572"), (.background, "#3b7dd8"),
        (.suspended, "#c3cbe0"), (.terminating, "#d9534f"),
    ]
    static let levelColors = ["normal": "#dfe8df", "warning": "#f2b134", "critical": "#d9534f"]
    static let outcomeColors = ["met": "#6f7f95", "missed": "#d9534f", "cancelled": "#b9bfca"]
    static let taskColor = "#8e6bbf"

    /// - Parameter clockText: the text of a time, in microseconds since 1970, for the axis.
    package init(_ timeline: Timeline, clockText: @escaping (UInt64) -> String) {
        self.timeline = timeline
        self.clockText = clockText
    }

    package mutating func svg() -> String {
        drawMachine()
        for lane in timeline.lanes { draw(lane) }
        for arrow in timeline.arrows { draw(arrow) }
        let bottom = y
        y += 6
        drawLegend()
        for problem in timeline.problems.prefix(10) {
            label(problem, x: Double(Self.left), y: y + 12, "note")
            y += 16
        }
        let body = text
        text = ""
        drawAxis(to: bottom)
        let height = Int(y) + 10
        return """
            <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(Self.width) \(height)" width="\(Self.width)" \
            height="\(height)" font-family="system-ui, sans-serif" font-size="12">
            <style>text{fill:#222}.note{fill:#a33}.dim{fill:#777}.arrow{fill:none;stroke:#444;stroke-width:1}</style>
            <defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">\
            <path d="M0 0L8 4L0 8z" fill="#444"/></marker></defs>
            <rect width="\(Self.width)" height="\(height)" fill="#fff"/>
            \(text)\(body)</svg>

            """
    }

    // MARK: Positions

    private func x(_ instant: Instant) -> Double {
        let span = max(1, timeline.offset(timeline.end))
        return Double(Self.left) + Double(timeline.offset(instant)) / Double(span)
            * Double(Self.width - Self.left - Self.right)
    }

    // MARK: Lanes

    private mutating func drawMachine() {
        if timeline.arrows.contains(where: { $0.from == .requests }) || !timeline.requests.isEmpty {
            name("requests")
            centers[.requests] = y + Self.barHeight / 2
            for mark in timeline.requests { draw(mark, at: y + Self.barHeight / 2) }
            y += Self.barHeight + Self.gap
        }
        if timeline.arrows.contains(where: { $0.from == .input }) {
            name("input")
            centers[.input] = y + Self.barHeight / 2
            for arrow in timeline.arrows where arrow.from == .input {
                draw(
                    Timeline.Mark(at: arrow.fromTime, kind: "input", sentence: arrow.sentence),
                    at: y + Self.barHeight / 2)
            }
            y += Self.barHeight + Self.gap
        }
        name("memory")
        centers[.memory] = y + Self.barHeight / 2
        for bar in timeline.levels {
            draw(
                bar, color: Self.levelColors[bar.label] ?? "#dfe8df", y: y, height: Self.barHeight,
                hasLabel: bar.label != "normal")
        }
        y += Self.barHeight
        draw(timeline.available, of: "available memory", color: "#7aa37a")
        draw(timeline.stalls, of: "tasks that stall", color: "#c98a8a", unit: { "\($0 / 10)%" })
        y += Self.gap
    }

    private mutating func draw(_ lane: Timeline.Lane) {
        name(lane.app)
        centers[.app(lane.app)] = y + Self.barHeight / 2
        line(y + Self.barHeight / 2)
        for bar in lane.states {
            let color = Self.colors.first { $0.state.rawValue == bar.label }?.color ?? "#999"
            draw(bar, color: color, y: y, height: Self.barHeight, hasLabel: true)
        }
        for mark in lane.marks { draw(mark, at: y + Self.barHeight) }
        y += Self.barHeight + 2
        for row in rows(of: lane.deadlines).prefix(Self.maximumRows) {
            for bar in row {
                draw(
                    bar, color: Self.outcomeColors[bar.outcome] ?? "#b9bfca", y: y, height: Self.rowHeight - 2,
                    hasLabel: false)
            }
            y += Self.rowHeight
        }
        for row in rows(of: lane.tasks).prefix(Self.maximumRows) {
            for bar in row { draw(bar, color: Self.taskColor, y: y, height: Self.rowHeight - 2, hasLabel: false) }
            y += Self.rowHeight
        }
        draw(lane.memory, of: "footprint", color: "#9db4d6")
        y += Self.gap
    }

    private mutating func draw(_ bar: Timeline.Bar, color: String, y: Double, height: Double, hasLabel: Bool) {
        let (from, to) = (x(bar.start), x(bar.end))
        let width = max(0.8, to - from)
        text +=
            "<rect x=\"\(number(from))\" y=\"\(number(y))\" width=\"\(number(width))\" height=\"\(number(height))\" "
        text += "fill=\"\(color)\"><title>\(escapedXML(bar.sentence))</title></rect>\n"
        // About 6.5 units a letter.
        if hasLabel, width > Double(bar.label.count) * 6.5 + 8 {
            let style =
                ["suspended", "launching", "inactive", "warning"].contains(bar.label) ? "" : " style=\"fill:#fff\""
            text += "<text x=\"\(number(from + 4))\" y=\"\(number(y + height - 5))\" font-size=\"11\" "
            text += "pointer-events=\"none\"\(style)>\(escapedXML(bar.label))</text>\n"
        }
    }

    private mutating func draw(_ mark: Timeline.Mark, at y: Double) {
        let color = ["ended", "deadlineMissed"].contains(mark.kind) ? "#d9534f" : "#333"
        text += "<circle cx=\"\(number(x(mark.at)))\" cy=\"\(number(y))\" r=\"2.5\" fill=\"\(color)\">"
        text += "<title>\(escapedXML(mark.sentence))</title></circle>\n"
    }

    /// A filled curve in steps.
    private mutating func draw(
        _ samples: [Timeline.Sample], of what: String, color: String, unit: (UInt64) -> String = { formattedSize($0) }
    ) {
        guard let most = samples.map(\.value).max(), most > 0 else { return }
        let bottom = y + Self.memoryHeight
        func height(_ value: UInt64) -> String {
            number(bottom - Double(value) / Double(most) * (Self.memoryHeight - 2))
        }
        var path = "M\(number(x(samples[0].at))) \(number(bottom))"
        for (index, sample) in samples.enumerated() {
            let end = index + 1 < samples.count ? samples[index + 1].at : timeline.end
            path += "V\(height(sample.value))H\(number(x(end)))"
        }
        path += "V\(number(bottom))z"
        text += "<path d=\"\(path)\" fill=\"\(color)\"><title>\(what), at most \(unit(most))</title></path>\n"
        label("\(what) ≤ \(unit(most))", x: Double(Self.left) - 8, y: bottom - 3, "dim", isEnd: true)
        y = bottom
    }

    private mutating func draw(_ arrow: Timeline.Arrow) {
        let from = centers[arrow.from] ?? Self.margin
        guard let to = centers[.app(arrow.to)], from != to else { return }
        let (start, end) = (x(arrow.fromTime), x(arrow.toTime))
        let edge = to > from ? to - Self.barHeight / 2 : to + Self.barHeight / 2
        text +=
            "<path class=\"arrow\" d=\"M\(number(start)) \(number(from))C\(number(start)) \(number((from + edge) / 2)) "
        text += "\(number(end)) \(number((from + edge) / 2)) \(number(end)) \(number(edge))\" marker-end=\"url(#tip)\">"
        text += "<title>\(escapedXML(arrow.sentence))</title></path>\n"
    }

    // MARK: Around the lanes

    private mutating func drawAxis(to bottom: Double) {
        let span = Double(timeline.offset(timeline.end)) / 1e6
        let steps = [0.001, 0.01, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400]
        let step = steps.first { span / $0 <= 10 } ?? span / 10
        var at = 0.0
        while at <= span {
            let instant = timeline.start + .microseconds(Int64(at * 1e6))
            let position = x(instant)
            text += "<path d=\"M\(number(position)) \(Self.top - 8)V\(number(bottom))\" stroke=\"#e4e4e4\"/>\n"
            let time = at == 0 || step >= 1 ? timeline.time(instant).map(clockText) : nil
            let words = time ?? "+" + Duration.microseconds(Int64(at * 1e6)).timeSpan
            // The last one ends at the edge of the picture.
            let (edge, width) = (Double(Self.width) - 2, Double(words.count) * Self.digitWidth)
            let isEnd = position + 2 + width > edge
            label(words, x: isEnd ? edge : position + 2, y: Double(Self.top) - 14, "dim", isEnd: isEnd)
            at += max(step, 1e-6)
        }
    }

    private mutating func drawLegend() {
        var x = Double(Self.left)
        let items =
            Self.colors.map { ($0.state.rawValue, $0.color) } + [
                ("deadline met", Self.outcomeColors["met"]!), ("missed", Self.outcomeColors["missed"]!),
                ("task", Self.taskColor),
            ]
        for (name, color) in items {
            text += "<rect x=\"\(number(x))\" y=\"\(number(y + 2))\" width=\"11\" height=\"11\" fill=\"\(color)\"/>\n"
            label(name, x: x + 15, y: y + 12, "dim")
            x += 30 + Double(name.count) * 7
        }
        y += 20
    }

    private mutating func name(_ name: String) {
        let short = name.count > 22 ? String(name.prefix(21)) + "…" : name
        label(short, x: Double(Self.left) - 8, y: y + Self.barHeight - 5, "", isEnd: true, title: name)
    }

    private mutating func line(_ y: Double) {
        text += "<path d=\"M\(Self.left) \(number(y))H\(Self.width - Self.right)\" stroke=\"#ddd\"/>\n"
    }

    private mutating func label(
        _ words: String, x: Double, y: Double, _ style: String, isEnd: Bool = false, title: String? = nil
    ) {
        let size = style == "dim" ? " font-size=\"10\"" : ""
        text += "<text x=\"\(number(x))\" y=\"\(number(y))\"\(style.isEmpty ? "" : " class=\"\(style)\"")\(size)"
        text += isEnd ? " text-anchor=\"end\">" : ">"
        if let title { text += "<title>\(escapedXML(title))</title>" }
        text += "\(escapedXML(words))</text>\n"
    }
}

/// A coordinate with one decimal.
private func number(_ value: Double) -> String {
    let tenths = Int((value * 10).rounded())
    return tenths % 10 == 0 ? String(tenths / 10) : "\(tenths < 0 ? "-" : "")\(abs(tenths) / 10).\(abs(tenths) % 10)"
}

/// Text for XML, in an element or an attribute. Characters that XML does not have become U+FFFD.
func escapedXML(_ text: String) -> String {
    var result = String.UnicodeScalarView()
    for scalar in text.unicodeScalars {
        switch scalar {
        case "&": result.append(contentsOf: "&amp;".unicodeScalars)
        case "<": result.append(contentsOf: "&lt;".unicodeScalars)
        case ">": result.append(contentsOf: "&gt;".unicodeScalars)
        case "\"": result.append(contentsOf: "&quot;".unicodeScalars)
        case "\t", "\n", " ": result.append(" ")
        default:
            let isAllowed = scalar.value > 0x20 && scalar.value != 0xfffe && scalar.value != 0xffff
            result.append(isAllowed ? scalar : "\u{fffd}")
        }
    }
    return String(result)
}
