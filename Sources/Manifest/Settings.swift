/// The reason why a value is invalid.
struct ValueError: Error {
    /// `nil`: the value as a whole is invalid.
    var problem: String?
    /// The position of the problem in the value, in bytes, counted from 0.
    var offset = 0

    /// One invalid word of a value with several words.
    static func invalid(_ text: String, offset: Int) -> ValueError {
        ValueError(problem: "invalid value \(quoted(text))", offset: offset)
    }
}

/// One setting of a file: its section and key, and how its value is parsed and stored.
struct Setting<Values> {
    let section: String
    let key: String
    /// A description of valid values, for the diagnostic about an invalid one.
    let expected: String
    /// Parses and stores a value that is not empty.
    let apply: (inout Values, String) throws(ValueError) -> Void
    /// Handles an empty value: copies the default from the second argument. A list is emptied, as in systemd.
    let reset: (inout Values, Values) -> Void
}

extension Setting {
    /// A setting with one value. The last assignment counts.
    static func value<T>(
        _ section: String, _ key: String, _ expected: String, _ path: WritableKeyPath<Values, T>,
        _ parse: @escaping (String) throws(ValueError) -> T?
    ) -> Setting {
        Setting(section: section, key: key, expected: expected) { values, text throws(ValueError) in
            guard let value = try parse(text) else { throw ValueError() }
            values[keyPath: path] = value
        } reset: { values, defaults in
            values[keyPath: path] = defaults[keyPath: path]
        }
    }

    static func time(_ section: String, _ key: String, _ path: WritableKeyPath<Values, Duration?>) -> Setting {
        value(section, key, "a time span such as 5s, 1min 30s or infinity", path) { parseTimeSpan($0) }
    }

    static func finiteTime(_ section: String, _ key: String, _ path: WritableKeyPath<Values, Duration>) -> Setting {
        value(section, key, "a time span such as 5s or 1min 30s", path) { parseTimeSpan($0) ?? nil }
    }

    /// A time span for which infinity is the longest one: it does not pass while the machine runs.
    static func longTime(_ section: String, _ key: String, _ path: WritableKeyPath<Values, Duration>) -> Setting {
        value(section, key, "a time span such as 5s, 1min 30s or infinity", path) { text -> Duration? in
            parseTimeSpan(text).map { $0 ?? longestTimeSpan }
        }
    }

    static func flag(_ section: String, _ key: String, _ path: WritableKeyPath<Values, Bool>) -> Setting {
        value(section, key, "yes or no", path) { parseBoolean($0) }
    }

    /// A size in bytes or as a percentage of the machine's memory.
    ///
    /// - Parameter memory: the machine's memory in bytes, or `nil` if unknown.
    static func size(
        _ section: String, _ key: String, _ path: WritableKeyPath<Values, UInt64?>, memory: UInt64?
    ) -> Setting {
        value(section, key, "a size such as 64M or 10%, or infinity", path) { text throws(ValueError) -> UInt64?? in
            if text == "infinity" { return .some(nil) }
            // No app can run in 0 bytes. systemd rejects 0, too.
            guard let bytes = try parseBytes(text, memory: memory), bytes > 0 else { return nil }
            return .some(bytes)
        }
    }

    static func number(
        _ section: String, _ key: String, _ range: ClosedRange<Int>, _ path: WritableKeyPath<Values, Int>
    ) -> Setting {
        value(section, key, "a number from \(range.lowerBound) to \(range.upperBound)", path) {
            parseNumber($0, in: range)
        }
    }

    /// A list of words, in which specifiers are replaced. Each assignment adds to it.
    static func list(
        _ section: String, _ key: String, _ expected: String, _ path: WritableKeyPath<Values, [String]>, maximum: Int,
        _ specifiers: Specifiers, _ parse: @escaping (String) -> String?
    ) -> Setting {
        Setting(section: section, key: key, expected: expected) { values, text throws(ValueError) in
            var list = values[keyPath: path]
            var bytes = list.reduce(0) { $0 + $1.utf8.count }
            for word in try splitWords(text) {
                let written = try word.mapped(specifiers.expanded)
                guard let entry = parse(written) else {
                    throw ValueError.invalid(written, offset: word.offset)
                }
                bytes += entry.utf8.count
                guard list.count < maximum, bytes <= longestList else {
                    throw ValueError(
                        problem: "more than \(maximum) entries or \(longestList) bytes in total", offset: word.offset)
                }
                list.append(entry)
            }
            values[keyPath: path] = list
        } reset: { values, defaults in
            values[keyPath: path] = defaults[keyPath: path]
        }
    }
}

/// The total size of a list, in bytes. execve(2) accepts a quarter of the stack limit for arguments and environment, which
/// is 2 MiB with the usual limit of 8 MiB; one list may take half of that.
let longestList = 1 << 20

/// Applies a file's assignments to values according to a table of settings. An unknown key is a warning with a suggestion.
struct SettingsReader<Values> {
    let settings: [Setting<Values>]
    let defaults: Values
    /// The location of each key's last assignment.
    private(set) var locations: [String: Location] = [:]
    /// The keys whose last assignment is not empty: they were not reset.
    private(set) var assignedKeys: Set<String> = []
    /// The keys with an invalid value.
    private(set) var invalidKeys: Set<String> = []
    /// Whether a line had no valid syntax: it may contain a key that appears to be missing.
    private(set) var hasInvalidLines = false
    private(set) var hasUnknownKeys = false
    /// Whether the current section is unknown. It is reported once, and its keys are ignored. A file does not start in a
    /// section.
    private var isUnknownSection = false
    /// Whether diagnostics may quote the current file.
    private var mayBeQuoted = true

    init(_ settings: [Setting<Values>], defaults: Values) {
        self.settings = settings
        self.defaults = defaults
    }

    mutating func read(_ file: SourceFile, into values: inout Values, _ diagnostics: inout DiagnosticList) {
        mayBeQuoted = file.mayBeQuoted
        UnitFileReader.read(file) { item in
            switch item {
            case .problem(let location, let message):
                hasInvalidLines = true
                diagnostics.error(location, message)
            case .section(let name, let location):
                isUnknownSection = !settings.contains { $0.section == name }
                if isUnknownSection, !begins(name, with: "X-") { diagnostics.warn(location, unknownSection(name)) }
            case .assignment(let assignment):
                if !isUnknownSection, !begins(assignment.key, with: "X-") { apply(assignment, &values, &diagnostics) }
            }
        }
    }

    private mutating func apply(
        _ assignment: Assignment, _ values: inout Values, _ diagnostics: inout DiagnosticList
    ) {
        let key = assignment.key
        guard let setting = settings.first(where: { $0.section == assignment.section && $0.key == key }) else {
            hasUnknownKeys = true
            return diagnostics.warn(assignment.keyLocation, unknownKey(assignment))
        }
        locations[key] = assignment.keyLocation
        guard !assignment.value.isEmpty else {
            assignedKeys.remove(key)
            return setting.reset(&values, defaults)
        }
        assignedKeys.insert(key)
        do throws(ValueError) {
            try setting.apply(&values, assignment.value)
        } catch {
            invalidKeys.insert(key)
            diagnostics.error(assignment.location(at: error.offset), message(error, assignment, setting))
        }
    }

    private func message(_ error: ValueError, _ assignment: Assignment, _ setting: Setting<Values>) -> String {
        guard mayBeQuoted else {
            // A problem that quotes the file has a quotation mark in it.
            let problem = error.problem.flatMap { $0.contains("'") ? nil : $0 } ?? "invalid value"
            return "\(setting.key)=: \(problem); expected \(setting.expected)"
        }
        let problem = error.problem ?? "invalid value \(quoted(assignment.value))"
        return "\(setting.key)=: \(problem); expected \(setting.expected)\(commentHint(assignment.value))"
    }

    private func unknownSection(_ name: String) -> String {
        guard mayBeQuoted else { return "unknown section" }
        var sections: [String] = []
        for setting in settings where !sections.contains(setting.section) { sections.append(setting.section) }
        let near = nearest(name, among: sections).map { "; did you mean [\($0)]?" } ?? ""
        return "unknown section [\(sanitized(name))]\(near)"
    }

    private func unknownKey(_ assignment: Assignment) -> String {
        let section = assignment.section
        if let other = settings.first(where: { $0.key == assignment.key }) {
            return "key '\(other.key)' belongs in section [\(other.section)]; it is ignored in section [\(section)]"
        }
        guard mayBeQuoted else { return "unknown key in section [\(section)]" }
        if let use = serviceKeys[assignment.key] {
            return "unknown key '\(assignment.key)' in section [\(section)]; \(use)"
        }
        // Keys of the same section come first: of several equally similar keys the first is suggested.
        let ordered = settings.filter { $0.section == section } + settings.filter { $0.section != section }
        let near = nearest(assignment.key, among: ordered.map(\.key))
        let hint = ordered.first { $0.key == near }.map {
            "; did you mean '\($0.key)'\($0.section == section ? "" : " in section [\($0.section)]")?"
        }
        return "unknown key \(quoted(assignment.key)) in section [\(section)]\(hint ?? "")"
    }
}

extension Word {
    /// Applies a function to the text. An error that the function throws gets the word's offset.
    func mapped(_ function: (String) throws(ValueError) -> String) throws(ValueError) -> String {
        do throws(ValueError) {
            return try function(text)
        } catch {
            throw ValueError(problem: error.problem, offset: offset)
        }
    }
}
