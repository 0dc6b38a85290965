package import JSON
package import Systemd

/// One key of a record: its name, its types in D-Bus and JSON, and the property that holds it.
///
/// A record lists its keys once, in `Record.fields`. Encoding, decoding, the command line's JSON and the tests of
/// docs/DBUS.md all follow that list.
package struct RecordField<Root>: Sendable {
    package let key: String
    /// The D-Bus type of the value: `s`, `t`, `a{sv}`.
    package let signature: String
    /// Whether a record without the key is refused.
    package let isRequired: Bool

    let variant: @Sendable (Root) -> Variant?
    let json: @Sendable (Root) -> JSONValue?
    let readVariant: @Sendable (inout Root, Variant) throws(RecordError) -> Void
    let readJSON: @Sendable (inout Root, JSONValue) throws(RecordError) -> Void

    /// A key that every record has.
    package static func required<Value: RecordValue>(
        _ key: String, _ path: any WritableKeyPath<Root, Value> & Sendable
    ) -> Self {
        Self(
            key: key, signature: Value.signature, isRequired: true, variant: { $0[keyPath: path].variant },
            json: { $0[keyPath: path].json },
            readVariant: { (root, value) throws(RecordError) in root[keyPath: path] = try Value(variant: value) },
            readJSON: { (root, value) throws(RecordError) in root[keyPath: path] = try Value(json: value) })
    }

    /// A key that is left out where there is no value.
    package static func optional<Value: RecordValue>(
        _ key: String, _ path: any WritableKeyPath<Root, Value?> & Sendable
    ) -> Self {
        Self(
            key: key, signature: Value.signature, isRequired: false, variant: { $0[keyPath: path]?.variant },
            json: { $0[keyPath: path]?.json },
            readVariant: { (root, value) throws(RecordError) in root[keyPath: path] = try Value(variant: value) },
            readJSON: { (root, value) throws(RecordError) in root[keyPath: path] = try Value(json: value) })
    }

    /// A process, left out where there is none: `u` in D-Bus, as systemd's MainPID and the bus's own UnixProcessID.
    package static func process(_ key: String, _ path: any WritableKeyPath<Root, Int32?> & Sendable) -> Self {
        Self(
            key: key, signature: UInt32.signature, isRequired: false,
            variant: { $0[keyPath: path].flatMap { UInt32(exactly: $0) }?.variant },
            json: { $0[keyPath: path].flatMap { UInt32(exactly: $0) }?.json },
            readVariant: { (root, value) throws(RecordError) in
                root[keyPath: path] = try Self.process(UInt32(variant: value))
            },
            readJSON: { (root, value) throws(RecordError) in
                root[keyPath: path] = try Self.process(UInt32(json: value))
            })
    }

    private static func process(_ number: UInt32) throws(RecordError) -> Int32 {
        guard let process = Int32(exactly: number) else {
            throw RecordError(expected: UInt32.signature, found: "a value out of range")
        }
        return process
    }

    /// A list that is left out where it is empty.
    package static func list<Value: RecordValue>(
        _ key: String, _ path: any WritableKeyPath<Root, [Value]> & Sendable
    ) -> Self {
        Self(
            key: key, signature: [Value].signature, isRequired: false,
            variant: { $0[keyPath: path].isEmpty ? nil : $0[keyPath: path].variant },
            json: { $0[keyPath: path].isEmpty ? nil : $0[keyPath: path].json },
            readVariant: { (root, value) throws(RecordError) in root[keyPath: path] = try [Value](variant: value) },
            readJSON: { (root, value) throws(RecordError) in root[keyPath: path] = try [Value](json: value) })
    }
}

/// A record of the control interface: `a{sv}` in D-Bus, an object in JSON.
package protocol Record: RecordValue {
    /// A record in which nothing is set; decoding starts with it.
    init()
    /// All keys, in the order in which they are written.
    static var fields: [RecordField<Self>] { get }
}

extension Record {
    package static var signature: String { "a{sv}" }
    package static var jsonType: String { "an object" }

    package var variant: Variant { .dictionary(entries) }

    /// The keys and values of the `a{sv}`.
    package var entries: [(String, Variant)] {
        Self.fields.compactMap { field in field.variant(self).map { (field.key, $0) } }
    }

    package var json: JSONValue {
        .object(Self.fields.compactMap { field in field.json(self).map { (field.key, $0) } })
    }

    /// Decodes an `a{sv}`. Unknown keys are ignored; of a repeated key the first one counts.
    ///
    /// - Throws: `RecordError` where a required key is missing or a value has another type than its key.
    package init(variant: Variant) throws(RecordError) {
        guard let entries = variant.dictionaryValue else {
            throw RecordError(expected: Self.signature, found: variant.signature)
        }
        self = try Self.decode(entries) { (field, record, value) throws(RecordError) in
            try field.readVariant(&record, value)
        }
    }

    /// Decodes a JSON object, by the same rules.
    package init(json: JSONValue) throws(RecordError) {
        guard let members = json.objectValue else {
            throw RecordError(expected: Self.jsonType, found: json.typeInWords)
        }
        self = try Self.decode(members) { (field, record, value) throws(RecordError) in
            try field.readJSON(&record, value)
        }
    }

    private static func decode<Value>(
        _ entries: [(String, Value)],
        _ read: (RecordField<Self>, inout Self, Value) throws(RecordError) -> Void
    ) throws(RecordError) -> Self {
        var record = Self()
        for field in fields {
            guard let value = entries.first(where: { $0.0 == field.key })?.1 else {
                guard field.isRequired else { continue }
                throw RecordError(key: field.key, expected: field.signature, found: "nothing")
            }
            do throws(RecordError) {
                try read(field, &record, value)
            } catch {
                throw error.inside(field.key)
            }
        }
        return record
    }
}

/// Why a value is not the record that was expected.
package struct RecordError: Error, Equatable, CustomStringConvertible {
    /// The way to the value: `tasks[0].name`; empty for the value as a whole.
    package var key: String
    /// A D-Bus signature, or a JSON type in words.
    package var expected: String
    package var found: String

    package init(key: String = "", expected: String, found: String) {
        self.key = key
        self.expected = expected
        self.found = found
    }

    /// The same error, with the path from the record or list that contains the value.
    func inside(_ outer: String) -> RecordError {
        let path = key.isEmpty || key.hasPrefix("[") ? outer + key : "\(outer).\(key)"
        return RecordError(key: path, expected: expected, found: found)
    }

    package var description: String {
        "\(key.isEmpty ? "the value" : "key '\(key)'"): expected \(expected), found \(found)"
    }
}
