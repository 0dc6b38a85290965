/// Why a value was refused.
struct ValueError: Error {
    /// What is wrong with it; `nil`: it is not what was expected, as a whole.
    var problem: String?
    /// Where, in bytes of the value, from 0.
    var offset = 0
}

/// One setting that a file may make: how its value is taken in, and what one looks like.
struct Setting<Values> {
    let section: String
    let key: String
    /// For the sentence about a value that is none.
    let expected: String
    /// A value that is not empty.
    let take: (inout Values, String) throws(ValueError) -> Void
    /// An empty value: back to the second one's, the defaults. Lists begin anew (as systemd's).
    let reset: (inout Values, Values) -> Void
}

extension Setting {
    /// A value that one function reads; assigned again, the last one counts.
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

    static func flag(_ section: String, _ key: String, _ path: WritableKeyPath<Values, Bool>) -> Setting {
        value(section, key, "yes or no", path) { parseBoolean($0) }
    }

    /// - Parameter memory: the machine's, in bytes.
    static func size(
        _ section: String, _ key: String, _ path: WritableKeyPath<Values, UInt64?>, memory: UInt64?
    ) -> Setting {
        value(section, key, "a size such as 64M or 10%, or infinity", path) { text throws(ValueError) -> UInt64?? in
            if text == "infinity" { return .some(nil) }
            // Nothing runs in nothing (systemd refuses it too).
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

    /// Words, without specifiers; assigned again they are added to.
    static func list(
        _ section: String, _ key: String, _ expected: String, _ path: WritableKeyPath<Values, [String]>, maximum: Int,
        _ parse: @escaping (String) -> String?
    ) -> Setting {
        list(section, key, expected, path, maximum: maximum, words: splitWords, parse)
    }

    /// One entry an assignment, blanks and all (as systemd's sockets); assigned again it is added to.
    static func entries(
        _ section: String, _ key: String, _ expected: String, _ path: WritableKeyPath<Values, [String]>, maximum: Int,
        _ parse: @escaping (String) -> String?
    ) -> Setting {
        list(section, key, expected, path, maximum: maximum, words: { [Word(text: $0, offset: 0)] }, parse)
    }

    private static func list(
        _ section: String, _ key: String, _ expected: String, _ path: WritableKeyPath<Values, [String]>, maximum: Int,
        words: @escaping (String) throws(ValueError) -> [Word], _ parse: @escaping (String) -> String?
    ) -> Setting {
        Setting(section: section, key: key, expected: expected) { values, text throws(ValueError) in
            var list = values[keyPath: path]
            var bytes = list.reduce(0) { $0 + $1.utf8.count }
            for word in try words(text) {
                let written = try word.mapped(withoutSpecifiers)
                guard let entry = parse(written) else {
                    throw ValueError(problem: "“\(shown(written))”", offset: word.offset)
                }
                bytes += entry.utf8.count
                guard list.count < maximum, bytes <= longestList else {
                    throw ValueError(
                        problem: "more than \(maximum) entries or \(longestList) bytes in all", offset: word.offset)
                }
                list.append(entry)
            }
            values[keyPath: path] = list
        } reset: { values, defaults in
            values[keyPath: path] = defaults[keyPath: path]
        }
    }
}

/// Bytes: half of what execve(2) takes for arguments and environment with the usual stack limit of 8 MiB (a quarter of it).
private let longestList = 1 << 20

/// Takes assignments into values by a table of settings; unknown ones are warned of with the nearest known.
struct SettingsReader<Values> {
    let settings: [Setting<Values>]
    let defaults: Values
    /// Where each key was last given.
    private(set) var places: [String: Place] = [:]
    /// Keys one of whose values was refused.
    private(set) var refused: Set<String> = []
    /// Lines that are none were met, so that what is missing may be there after all.
    private(set) var isGarbled = false
    private(set) var hasUnknownKeys = false
    /// An unknown section was warned of once; what stands in it is passed over.
    private var isUnknownSection = false

    init(_ settings: [Setting<Values>], defaults: Values) {
        self.settings = settings
        self.defaults = defaults
    }

    mutating func read(_ file: SourceFile, into values: inout Values, _ findings: inout Findings) {
        isUnknownSection = false
        UnitFileReader.read(file) { item in
            switch item {
            case .problem(let place, let message):
                isGarbled = true
                findings.error(place, message)
            case .section(let name, let place):
                isUnknownSection = !settings.contains { $0.section == name }
                if isUnknownSection, !begins(name, with: "X-") { findings.warn(place, unknownSection(name)) }
            case .assignment(let assignment):
                if !isUnknownSection, !begins(assignment.key, with: "X-") { take(assignment, &values, &findings) }
            }
        }
    }

    private mutating func take(_ assignment: Assignment, _ values: inout Values, _ findings: inout Findings) {
        let key = assignment.key
        guard let setting = settings.first(where: { $0.section == assignment.section && $0.key == key }) else {
            hasUnknownKeys = true
            return findings.warn(assignment.keyPlace, unknownKey(assignment))
        }
        places[key] = assignment.keyPlace
        guard !assignment.value.isEmpty else { return setting.reset(&values, defaults) }
        do throws(ValueError) {
            try setting.take(&values, assignment.value)
        } catch {
            refused.insert(key)
            findings.error(assignment.place(at: error.offset), sentence(error, assignment, setting))
        }
    }

    private func sentence(_ error: ValueError, _ assignment: Assignment, _ setting: Setting<Values>) -> String {
        let what = error.problem.map { "\($0);" } ?? "“\(shown(assignment.value))”:"
        return "\(setting.key)=: \(what) expected \(setting.expected)\(commentHint(assignment.value))"
    }

    private func unknownSection(_ name: String) -> String {
        var sections: [String] = []
        for setting in settings where !sections.contains(setting.section) { sections.append(setting.section) }
        let near = nearest(name, among: sections).map { "; did you mean [\($0)]?" } ?? ""
        return "unknown section [\(shown(name))]\(near)"
    }

    private func unknownKey(_ assignment: Assignment) -> String {
        let section = assignment.section
        if let other = settings.first(where: { $0.key == assignment.key }) {
            return "\(other.key)= belongs into [\(other.section)]; in [\(section)] it is ignored"
        }
        // Its own section's first: of two that are as near the first one is taken.
        let ordered = settings.filter { $0.section == section } + settings.filter { $0.section != section }
        let near = nearest(assignment.key, among: ordered.map(\.key))
        let hint = ordered.first { $0.key == near }.map {
            "; did you mean \($0.key)=\($0.section == section ? "" : " in [\($0.section)]")?"
        }
        return "unknown key \(shown(assignment.key))= in [\(section)]\(hint ?? "")"
    }
}

extension Word {
    /// Its text by a function whose complaints get the word's place.
    func mapped(_ function: (String) throws(ValueError) -> String) throws(ValueError) -> String {
        do throws(ValueError) {
            return try function(text)
        } catch {
            throw ValueError(problem: error.problem, offset: offset)
        }
    }
}
