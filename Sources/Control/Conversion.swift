package import JSON
package import Systemd

extension Variant {
    /// A JSON value in D-Bus's types: objects are `a{sv}`, a list of objects is `aa{sv}`, any other list `av`, whole numbers
    /// are `x`. There is no null: an object leaves such a key out, elsewhere it is an empty string.
    package init(_ json: JSONValue) {
        switch json {
        case .null: self = .string("")
        case .bool(let value): self = .bool(value)
        case .integer(let value): self = .int64(value)
        case .number(let value): self = .double(value)
        case .string(let value): self = .string(value)
        case .array(let values):
            let records = values.map(\.record)
            let areRecords = values.allSatisfy { if case .object = $0 { true } else { false } }
            self = areRecords ? .dictionaries(records) : .array("v", values.map { .variant(Variant($0)) })
        case .object: self = .dictionary(json.record)
        }
    }
}

extension JSONValue {
    /// An object as D-Bus's `a{sv}`; anything else is an empty one.
    package var record: [(String, Variant)] {
        guard case .object(let keys) = self else { return [] }
        return keys.compactMap { key, value in value == .null ? nil : (key, Variant(value)) }
    }

    /// A D-Bus value as JSON. Whole numbers beyond Int64 are clamped: JSON's readers know no larger ones.
    package init(_ variant: Variant) {
        switch variant {
        case .bool(let value): self = .bool(value)
        case .descriptor: self = .null
        case .byte, .int16, .uint16, .int32, .uint32, .int64: self = .integer(variant.intValue ?? 0)
        case .uint64(let value): self = .integer(Int64(clamping: value))
        case .double(let value): self = .number(value)
        case .string(let value), .objectPath(let value), .signature(let value): self = .string(value)
        case .bytes(let bytes): self = .array(bytes.map { .integer(Int64($0)) })
        case .array(_, let values):
            if case .entry? = values.first {
                self = .object(values.compactMap(JSONValue.entry))
            } else {
                self = .array(values.map { JSONValue($0) })
            }
        case .dictionary(let entries): self = .object(entries.map { ($0, JSONValue($1)) })
        case .entry(let key, let value): self = .array([JSONValue(key), JSONValue(value)])
        case .structure(let fields): self = .array(fields.map { JSONValue($0) })
        case .variant(let value): self = JSONValue(value)
        }
    }

    private static func entry(_ variant: Variant) -> (String, JSONValue)? {
        guard case .entry(let key, let value) = variant else { return nil }
        return (key.stringValue ?? "\(key)", JSONValue(value))
    }
}
