import JSON

/// What a run of the benchmark has measured, as `make bench JSON=1` prints it and `make bench-record` stores it.
struct Run: Equatable {
    /// A line about the machine or the programs, with its first word.
    struct Fact: Equatable {
        var name: String
        var value: String
    }

    var machine: [Fact]
    var sections: [Section] = []

    var machineLines: [String] { machine.map { $0.name.padded(12) + $0.value } }

    init(machine: [Fact]) { self.machine = machine }

    // MARK: JSON

    var json: JSONValue {
        .object([
            ("machine", .object(machine.map { ($0.name, .string($0.value)) })),
            (
                "sections",
                .array(
                    sections.map {
                        .object([("part", .string($0.part)), ("title", .string($0.title)), ("how", .string($0.how))])
                    })
            ),
            ("figures", .array(sections.flatMap { section in section.figures.map { $0.json(section.title) } })),
        ])
    }

    /// Reads a run.
    ///
    /// - Throws: a `BenchFailure` that says what is missing.
    init(parsing bytes: [UInt8]) throws {
        let document = try JSONValue.parse(bytes)
        machine = try document.member("machine", "an object", \.objectValue).map { name, value in
            guard let text = value.stringValue else { throw BenchFailure("expected a text as “\(name)”") }
            return Fact(name: name, value: text)
        }
        sections = try document.member("sections", "an array", \.arrayValue).map {
            Section(
                part: try $0.member("part", "a text", \.stringValue),
                title: try $0.member("title", "a text", \.stringValue),
                how: try $0.member("how", "a text", \.stringValue))
        }
        for figure in try document.member("figures", "an array", \.arrayValue) {
            let title = try figure.member("section", "a text", \.stringValue)
            guard let index = sections.firstIndex(where: { $0.title == title }) else {
                throw BenchFailure("a figure belongs to the section “\(title)”, which the run does not have")
            }
            sections[index].figures.append(try Figure(figure))
        }
    }
}

extension JSONValue {
    /// The value of a member.
    ///
    /// - Throws: a `BenchFailure` if it is missing or of another type.
    func member<Value>(_ key: String, _ type: String, _ value: (JSONValue) -> Value?) throws -> Value {
        guard let member = self[key].flatMap(value) else { throw BenchFailure("expected \(type) as “\(key)”") }
        return member
    }
}

extension Figure {
    fileprivate func json(_ section: String) -> JSONValue {
        var keys: [(String, JSONValue)] = [
            ("section", .string(section)), ("name", .string(name)), ("unit", .string(unit.rawValue)),
        ]
        if let ours { keys.append(("greenroomd", .number(ours))) }
        keys.append(("peer", .string(peer)))
        if let theirs { keys.append(("peerValue", .number(theirs))) }
        if let advantage { keys.append(("advantage", .number(advantage))) }
        if let remark { keys.append(("remark", .string(remark))) }
        if let isRequired { keys.append(("ok", .bool(isRequired))) }
        return .object(keys)
    }

    fileprivate init(_ json: JSONValue) throws {
        let word = try json.member("unit", "a text", \.stringValue)
        guard let unit = Unit(rawValue: word) else { throw BenchFailure("a figure has the unknown unit “\(word)”") }
        self.init(
            name: try json.member("name", "a text", \.stringValue), unit: unit,
            ours: json["greenroomd"]?.numberValue, peer: try json.member("peer", "a text", \.stringValue),
            theirs: json["peerValue"]?.numberValue, isRequired: json["ok"]?.boolValue,
            remark: json["remark"]?.stringValue)
    }
}
