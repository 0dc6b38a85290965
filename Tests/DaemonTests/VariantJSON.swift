import JSON
import Systemd

extension JSONValue {
    /// A D-Bus value as JSON, for tests that check one key of an answer: `a{sv}` is an object, an array a list.
    init(_ variant: Variant) {
        switch variant {
        case .bool(let value): self = .bool(value)
        case .byte, .int16, .uint16, .int32, .uint32, .int64: self = .integer(variant.intValue ?? 0)
        case .uint64(let value): self = .integer(Int64(clamping: value))
        case .double(let value): self = .number(value)
        case .string(let value), .objectPath(let value), .signature(let value): self = .string(value)
        case .array(_, let values): self = .array(values.map { JSONValue($0) })
        case .dictionary(let entries): self = .object(entries.map { ($0, JSONValue($1)) })
        case .variant(let value): self = JSONValue(value)
        case .descriptor, .bytes, .entry, .structure: self = .null
        }
    }
}
