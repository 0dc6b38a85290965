import Metrics
import Testing

@Suite("Text formats of metrics")
struct ExpositionTests {
    private func text(_ format: ExpositionFormat, _ body: (inout Exposition) -> Void) -> [Substring] {
        var exposition = Exposition(format)
        body(&exposition)
        exposition.finish()
        return String(decoding: exposition.bytes, as: UTF8.self).split(separator: "\n")
    }

    @Test(
        "a counter's family ends in _total in Prometheus' format, and only its samples do in OpenMetrics, which also has units and an end"
    )
    func families() {
        func write(_ text: inout Exposition) {
            text.begin(.suspendedSeconds)
            text.add([("app", "a")], 1.5)
        }
        #expect(
            text(.prometheus, write) == [
                "# HELP greenroom_app_suspended_seconds_total How long the app was suspended.",
                "# TYPE greenroom_app_suspended_seconds_total counter",
                "greenroom_app_suspended_seconds_total{app=\"a\"} 1.5",
            ])
        #expect(
            text(.openMetrics, write) == [
                "# HELP greenroom_app_suspended_seconds How long the app was suspended.",
                "# TYPE greenroom_app_suspended_seconds counter", "# UNIT greenroom_app_suspended_seconds seconds",
                "greenroom_app_suspended_seconds_total{app=\"a\"} 1.5", "# EOF",
            ])
    }

    @Test("values of labels are escaped, and help is", arguments: ExpositionFormat.allCases)
    func escapes(_ format: ExpositionFormat) {
        let lines = text(format) {
            $0.begin(.appsInOther)
            $0.add([("app", "w@\\x2d\"é\n")], 1)
        }
        #expect(lines.contains("greenroom_exporter_apps_in_other{app=\"w@\\\\x2d\\\"é\\n\"} 1"), "\(lines)")
        let quote = format == .prometheus ? "\"" : "\\\""
        #expect(lines[0].hasSuffix("app=\(quote)(other)\(quote)."), "\(lines)")
    }

    @Test("whole numbers have no fraction, and large and small ones keep their digits")
    func numbers() {
        func written(_ value: Double) -> Substring? {
            text(.prometheus) { $0.add(value) }.last?.split(separator: " ").last
        }
        #expect(written(24_079_577_088) == "24079577088")
        #expect(written(0) == "0")
        #expect(written(0.000125) == "0.000125")
        #expect(written(1e300) == "1e+300")
    }

    @Test("a histogram has cumulative buckets whose bounds belong to them, up to infinity")
    func histogram() {
        var histogram = Histogram(bounds: [0.5, 1])
        for value in [0.5, 0.75, 1, 3, -1] { histogram.observe(value) }
        #expect(histogram.buckets.map(\.bound) == [0.5, 1, .infinity])
        #expect(histogram.buckets.map(\.count) == [2, 4, 5])
        let lines = text(.openMetrics) {
            $0.begin(.killToFree)
            $0.add(histogram)
        }
        let name = "greenroom_app_kill_to_free_seconds"
        #expect(
            Array(lines[3...]) == [
                "\(name)_bucket{le=\"0.5\"} 2", "\(name)_bucket{le=\"1.0\"} 4", "\(name)_bucket{le=\"+Inf\"} 5",
                "\(name)_sum 5.25", "\(name)_count 5", "# EOF",
            ])
    }

    @Test(
        "the format is the one that the client prefers",
        arguments: [
            (nil, ExpositionFormat.prometheus), ("*/*", .prometheus), ("", .prometheus), (";,q=;", .prometheus),
            ("text/plain", .prometheus), ("application/openmetrics-text", .openMetrics),
            ("Application/OpenMetrics-Text ; Version=1.0.0", .openMetrics),
            ("application/openmetrics-text;version=2.0.0", .prometheus),
            ("application/openmetrics-text;q=0", .prometheus),
            ("application/openmetrics-text;q=0.4,text/plain;version=0.0.4;q=0.5", .prometheus),
            // Prometheus 2.42.
            (
                "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
                    + "text/plain;version=0.0.4;q=0.5,*/*;q=0.1", .openMetrics
            ),
        ] as [(String?, ExpositionFormat)])
    func negotiation(_ accept: String?, _ expected: ExpositionFormat) {
        #expect(ExpositionFormat(accept: accept) == expected)
    }
}
