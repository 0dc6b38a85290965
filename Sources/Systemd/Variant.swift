package import Posix

/// A value of the D-Bus type system. Descriptors (`h`) can be sent. Reading one is refused, except as the answer of
/// `BusPeer.callForDescriptor`.
package indirect enum Variant: Sendable {
    case byte(UInt8)
    case bool(Bool)
    case int16(Int16)
    case uint16(UInt16)
    case int32(Int32)
    case uint32(UInt32)
    case int64(Int64)
    case uint64(UInt64)
    case double(Double)
    case string(String)
    case objectPath(String)
    case signature(String)
    /// Each message gets a duplicate.
    case descriptor(SharedDescriptor)
    /// `ay`.
    case bytes([UInt8])
    /// The signature of the elements, which an empty array could not show, and the elements.
    case array(String, [Variant])
    /// `a{sv}` in its order; the values are not wrapped in variants. Repeated keys are not detected.
    case dictionary([(String, Variant)])
    /// An element of any other dictionary: `a{ss}` is `.array("{ss}", [.entry(.string("a"), .string("b"))])`.
    case entry(Variant, Variant)
    case structure([Variant])
    case variant(Variant)

    /// The D-Bus signature: `s`, `a{sv}`, `(us)`.
    package var signature: String {
        switch self {
        case .byte: "y"
        case .bool: "b"
        case .int16: "n"
        case .uint16: "q"
        case .int32: "i"
        case .uint32: "u"
        case .int64: "x"
        case .uint64: "t"
        case .double: "d"
        case .string: "s"
        case .objectPath: "o"
        case .signature: "g"
        case .descriptor: "h"
        case .bytes: "ay"
        case .array(let element, _): "a" + element
        case .dictionary: "a{sv}"
        case .entry(let key, let value): "{" + key.signature + value.signature + "}"
        case .structure(let fields): "(" + fields.map(\.signature).joined() + ")"
        case .variant: "v"
        }
    }

    /// `as`
    package static func strings(_ values: [String]) -> Variant {
        .array("s", values.map { .string($0) })
    }

    /// `aa{sv}`, for lists of records.
    package static func dictionaries(_ values: [[(String, Variant)]]) -> Variant {
        .array("a{sv}", values.map { .dictionary($0) })
    }
}

// MARK: Values

extension Variant {
    package var boolValue: Bool? {
        if case .bool(let value) = self { value } else { nil }
    }

    /// The text of a string, object path or signature.
    package var stringValue: String? {
        switch self {
        case .string(let value), .objectPath(let value), .signature(let value): value
        default: nil
        }
    }

    /// A whole number of any type that fits.
    package var intValue: Int64? {
        switch self {
        case .byte(let value): Int64(value)
        case .int16(let value): Int64(value)
        case .uint16(let value): Int64(value)
        case .int32(let value): Int64(value)
        case .uint32(let value): Int64(value)
        case .int64(let value): value
        case .uint64(let value): Int64(exactly: value)
        default: nil
        }
    }

    /// A whole number of any type that is not negative.
    package var uintValue: UInt64? {
        if case .uint64(let value) = self { value } else { intValue.flatMap { UInt64(exactly: $0) } }
    }

    package var arrayValue: [Variant]? {
        switch self {
        case .array(_, let elements): elements
        case .bytes(let bytes): bytes.map { .byte($0) }
        default: nil
        }
    }

    package var dictionaryValue: [(String, Variant)]? {
        if case .dictionary(let pairs) = self { pairs } else { nil }
    }

    package var structureValue: [Variant]? {
        if case .structure(let fields) = self { fields } else { nil }
    }

    /// The value inside a variant; any other value itself.
    package var unwrapped: Variant {
        if case .variant(let inner) = self { inner.unwrapped } else { self }
    }

    /// The first value of a key in an `a{sv}`.
    package subscript(key: String) -> Variant? {
        guard case .dictionary(let pairs) = self else { return nil }
        return pairs.first { $0.0 == key }?.1
    }
}

extension Variant: Equatable {
    package static func == (left: Variant, right: Variant) -> Bool {
        switch (left, right) {
        case (.byte(let a), .byte(let b)): a == b
        case (.bool(let a), .bool(let b)): a == b
        case (.int16(let a), .int16(let b)): a == b
        case (.uint16(let a), .uint16(let b)): a == b
        case (.int32(let a), .int32(let b)): a == b
        case (.uint32(let a), .uint32(let b)): a == b
        case (.int64(let a), .int64(let b)): a == b
        case (.uint64(let a), .uint64(let b)): a == b
        case (.double(let a), .double(let b)): a == b
        case (.string(let a), .string(let b)): a == b
        case (.objectPath(let a), .objectPath(let b)): a == b
        case (.signature(let a), .signature(let b)): a == b
        case (.descriptor(let a), .descriptor(let b)): a == b
        case (.bytes(let a), .bytes(let b)): a == b
        case (.array(let s, let a), .array(let t, let b)): s == t && a == b
        case (.dictionary(let a), .dictionary(let b)): a.elementsEqual(b) { $0.0 == $1.0 && $0.1 == $1.1 }
        case (.entry(let k, let v), .entry(let l, let w)): k == l && v == w
        case (.structure(let a), .structure(let b)): a == b
        case (.variant(let a), .variant(let b)): a == b
        default: false
        }
    }
}
