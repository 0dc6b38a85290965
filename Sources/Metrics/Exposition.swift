/// The text format of an answer: Prometheus 0.0.4, or OpenMetrics 1.0.0.
package enum ExpositionFormat: CaseIterable, Hashable, Sendable {
    case prometheus, openMetrics

    package var contentType: String {
        switch self {
        case .prometheus: "text/plain; version=0.0.4; charset=utf-8"
        case .openMetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8"
        }
    }

    /// The format that a client prefers, by its header `Accept` (RFC 9110, 12.5.1). Of equal ones, and without the header, it is
    /// Prometheus'.
    /// - Parameter accept: `nil`: no header. Of a longer one the first 4 KiB are read.
    package init(accept: String?) {
        var best: (prometheus: Double, openMetrics: Double) = (0, 0)
        for range in (accept ?? "").utf8.prefix(4096).split(separator: UInt8(ascii: ",")) {
            let parts = range.split(separator: UInt8(ascii: ";")).map { Self.trimmed($0) }
            let parameters = parts.dropFirst()
            let quality = parameters.first { $0.hasPrefix("q=") }.flatMap { Double($0.dropFirst(2)) } ?? 1
            switch parts.first {
            case "application/openmetrics-text":
                let versions = parameters.filter { $0.hasPrefix("version=") }
                guard versions.allSatisfy({ ["version=1.0.0", "version=\"1.0.0\""].contains($0) }) else { continue }
                best.openMetrics = max(best.openMetrics, quality)
            case "text/plain", "text/*": best.prometheus = max(best.prometheus, quality)
            default: break
            }
        }
        self = best.openMetrics > best.prometheus ? .openMetrics : .prometheus
    }

    private static func trimmed(_ part: Substring.UTF8View.SubSequence) -> String {
        let isSpace: (UInt8) -> Bool = { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
        let start = part.drop(while: isSpace)
        let count = start.reversed().drop(while: isSpace).count
        return String(decoding: start.prefix(count), as: UTF8.self).lowercased()
    }
}

/// Writes families of metrics and their samples. All samples of a family follow its `begin`.
package struct Exposition {
    package typealias Labels = [(name: String, value: String)]

    private let format: ExpositionFormat
    package private(set) var bytes: [UInt8] = []
    private var metric = Metric.up

    package init(_ format: ExpositionFormat) {
        self.format = format
        bytes.reserveCapacity(64 << 10)
    }

    package mutating func begin(_ metric: Metric) {
        self.metric = metric
        let description = metric.description
        // In the format of Prometheus a counter's name ends in _total, in OpenMetrics only that of its samples.
        let name = format == .prometheus ? metric.sampleName : metric.rawValue
        add("# HELP \(name) \(Self.escaped(description.help, quotes: format == .openMetrics))\n")
        add("# TYPE \(name) \(description.kind.rawValue)\n")
        if format == .openMetrics, let unit = metric.unit { add("# UNIT \(name) \(unit)\n") }
    }

    package mutating func add(_ value: Double) { add([], value) }
    package mutating func add(_ labels: Labels, _ value: Double) { add(metric.sampleName, labels, value) }

    package mutating func add(_ histogram: Histogram) { add([], histogram) }
    package mutating func add(_ labels: Labels, _ histogram: Histogram) {
        for (bound, count) in histogram.buckets {
            let text = bound == .infinity ? "+Inf" : "\(bound)"
            add(metric.rawValue + "_bucket", labels + [("le", text)], Double(count))
        }
        add(metric.rawValue + "_sum", labels, histogram.sum)
        add(metric.rawValue + "_count", labels, Double(histogram.count))
    }

    /// Ends the text.
    package mutating func finish() {
        if format == .openMetrics { add("# EOF\n") }
    }

    private mutating func add(_ name: String, _ labels: Labels, _ value: Double) {
        add(name)
        if !labels.isEmpty {
            let pairs = labels.map { "\($0.name)=\"\(Self.escaped($0.value, quotes: true))\"" }
            add("{\(pairs.joined(separator: ","))}")
        }
        add(" \(Self.text(of: value))\n")
    }

    private mutating func add(_ text: String) { bytes.append(contentsOf: text.utf8) }

    /// Both formats escape the backslash and the line feed, and the quotation mark in values of labels.
    private static func escaped(_ text: String, quotes: Bool) -> String {
        guard text.utf8.contains(where: { [0x5c, 0x0a, 0x22].contains($0) }) else { return text }
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\": result += "\\\\"
            case "\n": result += "\\n"
            case "\"" where quotes: result += "\\\""
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }

    /// Whole numbers without a fraction, up to 2^53.
    private static func text(of value: Double) -> String {
        value == value.rounded() && value.magnitude <= 9_007_199_254_740_992 ? "\(Int64(value))" : "\(value)"
    }
}
