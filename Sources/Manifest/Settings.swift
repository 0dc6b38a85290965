/// One setting that a file may make: how its value is taken in, and what one looks like.
struct Setting<Values> {
    let section: String
    let key: String
    /// For the sentence about a value that is none.
    let expected: String
    /// Returns a sentence, or "" for “see `expected`”; `nil`: taken.
    let take: (inout Values, String) -> String?

    init(_ section: String, _ key: String, _ expected: String, _ take: @escaping (inout Values, String) -> String?) {
        self.section = section
        self.key = key
        self.expected = expected
        self.take = take
    }
}

extension Setting {
    /// A value that one function reads.
    static func value<T>(
        _ section: String, _ key: String, _ expected: String, _ path: WritableKeyPath<Values, T>,
        _ parse: @escaping (String) -> T?
    ) -> Setting {
        Setting(section, key, expected) { values, text in
            guard let value = parse(text) else { return "" }
            values[keyPath: path] = value
            return nil
        }
    }

    static func time(_ section: String, _ key: String, _ path: WritableKeyPath<Values, Duration?>) -> Setting {
        value(section, key, "a time span such as 5s, 1min 30s or infinity", path) { parseTimeSpan($0) }
    }

    static func finiteTime(_ section: String, _ key: String, _ path: WritableKeyPath<Values, Duration>) -> Setting {
        value(section, key, "a time span such as 5s or 1min 30s", path) { parseTimeSpan($0) ?? nil }
    }

    static func flag(_ section: String, _ key: String, _ path: WritableKeyPath<Values, Bool>) -> Setting {
        value(section, key, "yes or no", path) { parseBoolean($0) }
    }

    static func size(_ section: String, _ key: String, _ path: WritableKeyPath<Values, UInt64?>) -> Setting {
        value(section, key, "a size such as 64M or 2G, or infinity", path) { text -> UInt64?? in
            text == "infinity" ? .some(nil) : parseSize(text).map { .some($0) }
        }
    }

    static func number(
        _ section: String, _ key: String, _ range: ClosedRange<Int>, _ path: WritableKeyPath<Values, Int>
    ) -> Setting {
        value(section, key, "a number from \(range.lowerBound) to \(range.upperBound)", path) { text in
            Int(text).flatMap { range.contains($0) && text.first != "+" ? $0 : nil }
        }
    }

    /// Words; assigned again they are added to, and an empty value begins anew, as systemd's lists do.
    static func list(
        _ section: String, _ key: String, _ expected: String, _ path: WritableKeyPath<Values, [String]>, maximum: Int,
        _ isGood: @escaping (String) -> Bool
    ) -> Setting {
        Setting(section, key, expected) { values, text in
            guard !text.isEmpty else {
                values[keyPath: path] = []
                return nil
            }
            let words: [String]
            do throws(WordError) { words = try splitWords(text) } catch { return error.message }
            if let bad = words.first(where: { !isGood($0) }) { return "“\(shown(bad))”: expected \(expected)" }
            guard values[keyPath: path].count + words.count <= maximum else { return "more than \(maximum) entries" }
            values[keyPath: path] += words
            return nil
        }
    }
}

/// Takes assignments into values by a table of settings; unknown ones are warned of with the nearest known.
struct SettingsReader<Values> {
    let settings: [Setting<Values>]

    func read(_ assignments: [Assignment], into values: inout Values, _ findings: inout Findings) {
        for assignment in assignments where !assignment.section.hasPrefix("X-") && !assignment.key.hasPrefix("X-") {
            guard let setting = find(assignment) else {
                findings.add(warning(assignment))
                continue
            }
            guard let complaint = setting.take(&values, assignment.value) else { continue }
            let what = complaint.isEmpty ? "“\(shown(assignment.value))”: expected \(setting.expected)" : complaint
            let place = assignment.valuePlace
            findings.add(
                Diagnostic(.error, place.file, line: place.line, column: place.column, "\(setting.key)=: \(what)"))
        }
    }

    private func find(_ assignment: Assignment) -> Setting<Values>? {
        settings.first { $0.section == assignment.section && $0.key == assignment.key }
    }

    private func warning(_ assignment: Assignment) -> Diagnostic {
        let place = assignment.keyPlace
        let sections = Set(settings.map(\.section)).sorted()
        let message: String
        if !sections.contains(assignment.section) {
            let near = nearest(assignment.section, among: sections).map { "; did you mean [\($0)]?" } ?? ""
            message = "unknown section [\(shown(assignment.section))]\(near)"
        } else if let other = settings.first(where: { $0.key == assignment.key }) {
            message = "\(other.key)= belongs into [\(other.section)]; in [\(assignment.section)] it is ignored"
        } else {
            let near = nearest(assignment.key, among: settings.map(\.key)).map { "; did you mean \($0)=?" } ?? ""
            message = "unknown key \(shown(assignment.key))= in [\(assignment.section)]\(near)"
        }
        return Diagnostic(.warning, place.file, line: place.line, column: place.column, message)
    }
}
