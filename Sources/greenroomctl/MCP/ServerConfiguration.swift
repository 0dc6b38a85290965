import JSON

/// The stdio servers in the configuration of an MCP client: where the command and its arguments stand in the text, so that the prefix
/// `greenroomctl run` is put there and taken out again, and everything else stays as it is.
struct ServerConfiguration {
    /// One server that is started as a command.
    struct Server {
        var name: String
        var command: Value
        /// `nil`: it has none.
        var arguments: [Value]?
        /// Behind the bracket that opens the list.
        var argumentsStart: Int?
        /// What stands before a list that is added behind the command.
        var newArguments = ", \"args\": "

        struct Value {
            var text: String
            /// In the text, with its quotation marks.
            var range: Range<Int>
        }
    }

    let bytes: [UInt8]
    private(set) var servers: [Server] = []

    /// The keys of the objects that clients keep servers in: of Claude, Cursor and others; of VS Code; of Zed; of Codex.
    static let keys: Set<String> = ["mcpServers", "servers", "context_servers", "mcp_servers"]

    /// Comments and commas behind the last value are permitted, as in the files of VS Code and Zed.
    /// - Throws: a sentence, with the line and the column.
    init(json bytes: [UInt8]) throws(JSONError) {
        let plain = Self.withoutComments(bytes)
        _ = try JSONValue.parse(plain)
        self.bytes = bytes
        var scanner = JSONScanner(plain)
        collect(scanner.node(), isServers: false)
    }

    /// The configuration of Codex.
    /// - Throws: a sentence, with the line and the column.
    init(toml bytes: [UInt8]) throws(TOMLError) {
        self.bytes = bytes
        var commands: [(name: String, command: Server.Value, isInline: Bool)] = []
        var arguments: [String: (values: [Server.Value], start: Int)] = [:]
        for found in try TOMLScanner(bytes).assignments
        where found.path.count == 3 && Self.keys.contains(found.path[0]) {
            switch (found.path[2], found.kind) {
            case ("command", .string(let text)):
                commands.append((found.path[1], Server.Value(text: text, range: found.range), found.isInline))
            case ("args", .strings(let values)):
                arguments[found.path[1]] = (
                    values.map { Server.Value(text: $0.text, range: $0.range) }, found.range.lowerBound + 1
                )
            default: break
            }
        }
        servers = commands.map { name, command, isInline in
            let found = arguments[name]
            return Server(
                name: name, command: command, arguments: found?.values, argumentsStart: found?.start,
                newArguments: isInline ? ", args = " : "\nargs = ")
        }
    }

    /// The text of the same length in which comments, and commas before the end of an object or a list, are blanks.
    private static func withoutComments(_ bytes: [UInt8]) -> [UInt8] {
        var plain = bytes
        var position = 0
        /// A comma behind a value, behind which only blanks came.
        var comma: Int?
        var isBehindValue = false
        func follows(_ text: StaticString) -> Bool { plain[position...].starts(with: text.description.utf8) }
        func blank(to end: Int) {
            for index in position..<end where plain[index] != 0x0A { plain[index] = 0x20 }
            position = end
        }
        while position < plain.count {
            switch plain[position] {
            case UInt8(ascii: "/") where follows("//"):
                blank(to: plain[position...].firstIndex(of: 0x0A) ?? plain.count)
                continue
            case UInt8(ascii: "/") where follows("/*"):
                var end = position + 2
                while end < plain.count,
                    !(plain[end] == UInt8(ascii: "/") && plain[end - 1] == UInt8(ascii: "*") && end > position + 2)
                {
                    end += 1
                }
                blank(to: min(plain.count, end + 1))
                continue
            case UInt8(ascii: "\""):
                (comma, isBehindValue) = (nil, true)
                position += 1
                while position < plain.count, plain[position] != UInt8(ascii: "\"") {
                    position += plain[position] == UInt8(ascii: "\\") ? 2 : 1
                }
            case UInt8(ascii: ","):
                comma = isBehindValue ? position : nil
                isBehindValue = false
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                if let comma { plain[comma] = 0x20 }
                (comma, isBehindValue) = (nil, true)
            case UInt8(ascii: "{"), UInt8(ascii: "["), UInt8(ascii: ":"): (comma, isBehindValue) = (nil, false)
            case 0x20, 0x09, 0x0A, 0x0D: break
            default: (comma, isBehindValue) = (nil, true)
            }
            position += 1
        }
        return plain
    }

    // MARK: JSON

    /// - Parameter isServers: the members are servers, by their names.
    private mutating func collect(_ node: JSONScanner.Node, isServers: Bool) {
        switch node.kind {
        case .object(let members):
            for member in members {
                if isServers, let server = Self.server(member.key, member.value) {
                    servers.append(server)
                } else {
                    collect(member.value, isServers: Self.keys.contains(member.key))
                }
            }
        case .array(let elements): for element in elements { collect(element, isServers: false) }
        case .string, .other: break
        }
    }

    private static func server(_ name: String, _ node: JSONScanner.Node) -> Server? {
        guard case .object(let members) = node.kind, let command = members.first(where: { $0.key == "command" })?.value
        else { return nil }
        switch command.kind {
        case .string(let text):
            return server(name, Server.Value(text: text, range: command.range), members)
        // Zed: "command": {"path": …, "args": […]}
        case .object(let inner):
            guard let path = inner.first(where: { $0.key == "path" })?.value, case .string(let text) = path.kind else {
                return nil
            }
            return server(name, Server.Value(text: text, range: path.range), inner)
        case .array, .other: return nil
        }
    }

    private static func server(
        _ name: String, _ command: Server.Value, _ members: [(key: String, value: JSONScanner.Node)]
    ) -> Server? {
        guard let arguments = members.first(where: { $0.key == "args" })?.value else {
            return Server(name: name, command: command, arguments: nil, argumentsStart: nil)
        }
        guard case .array(let elements) = arguments.kind else { return nil }
        var values: [Server.Value] = []
        for element in elements {
            guard case .string(let text) = element.kind else { return nil }
            values.append(Server.Value(text: text, range: element.range))
        }
        return Server(
            name: name, command: command, arguments: values, argumentsStart: arguments.range.lowerBound + 1)
    }

    // MARK: The prefix

    private static let run = "run"

    /// Whether the command of a server begins with the prefix.
    static func hasPrefix(_ server: Server) -> Bool {
        server.command.text.split(separator: "/").last == "greenroomctl" && server.arguments?.first?.text == run
    }

    /// The text with the prefix before the command of each server that has none.
    /// - Parameters:
    ///   - program: the path of greenroomctl. Clients start servers with a short PATH.
    ///   - options: of `run`.
    /// - Returns: the names of the servers that are changed, too.
    func adding(_ program: String, options: [String] = []) -> (bytes: [UInt8], names: [String]) {
        change { server in
            if Self.hasPrefix(server) { return [] }
            let words = [Self.run] + options + ["--name", server.name, "--", server.command.text]
            let added = words.map(Self.quoted).joined(separator: ", ")
            var edits = [Edit(server.command.range, Self.quoted(program))]
            if let start = server.argumentsStart {
                let rest = server.arguments?.isEmpty ?? true ? "" : ", "
                edits.append(Edit(start..<start, added + rest))
            } else {
                let end = server.command.range.upperBound
                edits.append(Edit(end..<end, server.newArguments + "[" + added + "]"))
            }
            return edits
        }
    }

    /// The text without the prefix.
    func removing() -> (bytes: [UInt8], names: [String]) {
        change { server in
            guard Self.hasPrefix(server), let arguments = server.arguments,
                let mark = arguments.firstIndex(where: { $0.text == "--" }), mark + 1 < arguments.count,
                let start = server.argumentsStart
            else { return [] }
            let next =
                mark + 2 < arguments.count ? arguments[mark + 2].range.lowerBound : arguments[mark + 1].range.upperBound
            return [Edit(server.command.range, Self.quoted(arguments[mark + 1].text)), Edit(start..<next, "")]
        }
    }

    private struct Edit {
        var range: Range<Int>
        var text: String

        init(_ range: Range<Int>, _ text: String) { (self.range, self.text) = (range, text) }
    }

    private func change(_ edits: (Server) -> [Edit]) -> (bytes: [UInt8], names: [String]) {
        var all: [Edit] = []
        var names: [String] = []
        for server in servers {
            let own = edits(server)
            if own.isEmpty { continue }
            all += own
            names.append(server.name)
        }
        var changed = bytes
        for edit in all.sorted(by: { $0.range.lowerBound > $1.range.lowerBound }) {
            changed.replaceSubrange(edit.range, with: edit.text.utf8)
        }
        return (changed, names)
    }

    private static func quoted(_ text: String) -> String { JSONValue.string(text).serialized(pretty: false) }
}

/// Where the values of a JSON document stand. The document has been parsed before, so it is valid.
struct JSONScanner {
    struct Node {
        enum Kind {
            case object([(key: String, value: Node)])
            case array([Node])
            case string(String)
            case other
        }

        var kind: Kind
        var range: Range<Int>
    }

    private let bytes: [UInt8]
    private var position = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    private var next: UInt8 { position < bytes.count ? bytes[position] : 0 }

    private mutating func skipSpace() {
        while [0x20, 0x09, 0x0A, 0x0D].contains(next), position < bytes.count { position += 1 }
    }

    /// The next value.
    mutating func node() -> Node {
        skipSpace()
        let start = position
        let kind: Node.Kind =
            switch next {
            case UInt8(ascii: "{"): .object(members())
            case UInt8(ascii: "["): .array(elements())
            case UInt8(ascii: "\""): .string(string())
            default: other()
            }
        return Node(kind: kind, range: start..<position)
    }

    private mutating func members() -> [(key: String, value: Node)] {
        var members: [(key: String, value: Node)] = []
        while enters(UInt8(ascii: "}"), isFirst: members.isEmpty) {
            let key = string()
            skipSpace()
            position += 1
            members.append((key, node()))
        }
        return members
    }

    private mutating func elements() -> [Node] {
        var elements: [Node] = []
        while enters(UInt8(ascii: "]"), isFirst: elements.isEmpty) { elements.append(node()) }
        return elements
    }

    /// Whether there is one more member or element.
    private mutating func enters(_ end: UInt8, isFirst: Bool) -> Bool {
        if isFirst { position += 1 }
        skipSpace()
        guard position < bytes.count, next != end else {
            position += 1
            return false
        }
        if !isFirst { position += 1 }
        skipSpace()
        return true
    }

    private mutating func string() -> String {
        let start = position
        position += 1
        while position < bytes.count, next != UInt8(ascii: "\"") { position += next == UInt8(ascii: "\\") ? 2 : 1 }
        position = min(bytes.count, position + 1)
        return (try? JSONValue.parse(Array(bytes[start..<position])))?.stringValue ?? ""
    }

    private mutating func other() -> Node.Kind {
        let ends: [UInt8] = Array(",]}".utf8) + [0x20, 0x09, 0x0A, 0x0D]
        while position < bytes.count, !ends.contains(next) { position += 1 }
        return .other
    }
}
