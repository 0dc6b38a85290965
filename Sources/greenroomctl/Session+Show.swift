import Control
import Glibc
import JSON
import Manifest
import Systemd

/// Verbs that show apps for scripts, and the files of their manifests.
extension Session {
    /// `show`: KEY=VALUE lines.
    func showProperties() throws(Failure) -> Int32 {
        let client = try connect()
        let selection = PropertySelection(invocation.options[.property])
        var found: [AppStatus] = []
        var problems: [Failure] = []
        if apps.isEmpty { found = try client.call("List") } else { (found, problems) = try statuses(client) }
        if wantsJSON {
            let documents = found.map { selection.selected($0.json) }
            if invocation.namesSeveral || apps.isEmpty {
                try show(.array(documents))
            } else if let one = documents.first {
                try show(one)
            }
        } else {
            try show(found.map { propertyLines($0, selection) }.joined(separator: "\n"))
        }
        problems.forEach(report)
        return problems.first?.status ?? 0
    }

    private func propertyLines(_ app: AppStatus, _ selection: PropertySelection) -> String {
        let hasKeys = !invocation.has(.value)
        return selection.lines(app.json).map { hasKeys ? "\($0.key)=\($0.value)\n" : "\($0.value)\n" }.joined()
    }

    /// `cat`: each file after its path, as systemctl shows units.
    func cat() throws(Failure) -> Int32 {
        let (found, problems) = try statuses(try connect())
        var status = problems.first?.status ?? 0
        var parts: [String] = []
        var documents: [JSONValue] = []
        for app in found {
            for path in app.files {
                switch readFile(path) {
                case .success(let bytes):
                    let text = String(decoding: bytes, as: UTF8.self)
                    parts.append(screen.paint("# \(escaped(path))", .cyan) + "\n" + printable(text))
                    documents.append(
                        .object([("app", .string(app.id)), ("path", .string(path)), ("text", .string(text))]))
                case .failure(let failure):
                    report(Failure("\(escaped(path)): \(failure.sentence)"))
                    status = 1
                }
            }
            if app.files.isEmpty {
                report(Failure("\(escaped(app.id)): no file of its manifest is left; it runs until it ends."))
                status = 1
            }
        }
        try wantsJSON ? show(.array(documents)) : show(parts.joined(separator: "\n"))
        problems.forEach(report)
        warnAboutFiles(found)
        return status
    }

    /// A file's text; on a terminal, with escaped control characters. It ends with a line feed.
    func printable(_ text: String) -> String {
        // By scalars: a line may end with a carriage return, which is one character with the line feed.
        var lines = text.unicodeScalars.split(separator: "\n", omittingEmptySubsequences: false).map { String($0) }
        if lines.last == "" { lines.removeLast() }
        if screen.isTerminal {
            lines = lines.map { $0.split(separator: "\t", omittingEmptySubsequences: false) }
                .map { $0.map { escaped(String($0)) }.joined(separator: "\t") }
        }
        return lines.map { $0 + "\n" }.joined()
    }
}

/// The keys that `show -p` selects.
struct PropertySelection {
    /// Lower case; empty: all keys.
    private let keys: [String]

    /// - Parameter text: keys with commas between them.
    init(_ text: String?) {
        keys = text.map { Self.split($0) } ?? []
    }

    private static func split(_ text: String) -> [String] {
        text.split(separator: ",").map { $0.lowercased() }
    }

    /// Why the keys cannot be selected.
    static func problem(_ text: String) -> String? {
        let known = AppStatus.fields.map(\.key)
        for key in split(text) {
            let first = key.split(separator: ".").first.map(String.init) ?? key
            guard !known.contains(where: { $0.lowercased() == first }) else { continue }
            let near = nearest(first, among: known).map { "; did you mean '\($0)'?" } ?? ""
            return "--property: unknown key '\(escaped(key))'\(near)"
        }
        return nil
    }

    /// Keys that are absent if they are false, in lower case.
    private static let flags: Set<String> = ["needsreload"]

    /// The lines of a record: a record in it has a line for each of its keys (`deadline.what`), a list is JSON, and true and
    /// false are yes and no, as with systemctl. A selected key without a value has an empty one, a flag `no`.
    func lines(_ json: JSONValue) -> [(key: String, value: String)] {
        let all = Self.flattened(json, "")
        guard !keys.isEmpty else { return all }
        return keys.flatMap { key -> [(key: String, value: String)] in
            let found = all.filter { Self.matches($0.key, key) }
            if !found.isEmpty { return found }
            return [(key: Self.spelled(key), value: Self.flags.contains(key) ? "no" : "")]
        }
    }

    /// The members of a record that are selected.
    func selected(_ json: JSONValue) -> JSONValue {
        guard !keys.isEmpty, let members = json.objectValue else { return json }
        let first = keys.map { $0.split(separator: ".").first.map(String.init) ?? $0 }
        return .object(members.filter { first.contains($0.0.lowercased()) })
    }

    private static func matches(_ key: String, _ selected: String) -> Bool {
        let key = key.lowercased()
        return key == selected || key.hasPrefix(selected + ".")
    }

    /// A key as the record spells it.
    private static func spelled(_ key: String) -> String {
        AppStatus.fields.first { $0.key.lowercased() == key }?.key ?? key
    }

    private static func flattened(_ json: JSONValue, _ path: String) -> [(key: String, value: String)] {
        switch json {
        case .object(let members):
            members.flatMap { flattened($0.1, path.isEmpty ? $0.0 : "\(path).\($0.0)") }
        case .string(let text): [(path, escaped(text))]
        case .bool(let flag): [(path, flag ? "yes" : "no")]
        case .null: [(path, "")]
        case .integer, .number, .array: [(path, json.serialized(pretty: false))]
        }
    }
}
