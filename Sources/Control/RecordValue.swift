package import JSON
package import Systemd

/// A type of a record's value: how it is written and read in D-Bus and in JSON.
package protocol RecordValue: Equatable, Sendable {
    static var signature: String { get }
    /// The JSON type, for error messages: "a string".
    static var jsonType: String { get }

    var variant: Variant { get }
    var json: JSONValue { get }

    init(variant: Variant) throws(RecordError)
    init(json: JSONValue) throws(RecordError)
}

/// A value that is no record and no list.
package protocol ScalarValue: RecordValue {
    /// `nil` if the value has another type or is out of range.
    static func decode(_ variant: Variant) -> Self?
    static func decode(_ json: JSONValue) -> Self?
}

extension ScalarValue {
    package init(variant: Variant) throws(RecordError) {
        guard let value = Self.decode(variant) else {
            let isOutOfRange = variant.signature == Self.signature
            throw RecordError(
                expected: Self.signature, found: isOutOfRange ? "a value out of range" : variant.signature)
        }
        self = value
    }

    package init(json: JSONValue) throws(RecordError) {
        guard let value = Self.decode(json) else {
            throw RecordError(expected: Self.jsonType, found: json.typeInWords)
        }
        self = value
    }
}

extension String: ScalarValue {
    package static var signature: String { "s" }
    package static var jsonType: String { "a string" }
    package var variant: Variant { .string(self) }
    package var json: JSONValue { .string(self) }

    package static func decode(_ variant: Variant) -> String? {
        if case .string(let value) = variant { value } else { nil }
    }
    package static func decode(_ json: JSONValue) -> String? { json.stringValue }
}

extension Bool: ScalarValue {
    package static var signature: String { "b" }
    package static var jsonType: String { "true or false" }
    package var variant: Variant { .bool(self) }
    package var json: JSONValue { .bool(self) }

    package static func decode(_ variant: Variant) -> Bool? { variant.boolValue }
    package static func decode(_ json: JSONValue) -> Bool? { json.boolValue }
}

extension Int32: ScalarValue {
    package static var signature: String { "i" }
    package static var jsonType: String { "a whole number of 32 bits" }
    package var variant: Variant { .int32(self) }
    package var json: JSONValue { .integer(Int64(self)) }

    package static func decode(_ variant: Variant) -> Int32? {
        if case .int32(let value) = variant { value } else { nil }
    }
    package static func decode(_ json: JSONValue) -> Int32? { json.integerValue.flatMap { Int32(exactly: $0) } }
}

extension UInt32: ScalarValue {
    package static var signature: String { "u" }
    package static var jsonType: String { "a whole number of 32 bits that is not negative" }
    package var variant: Variant { .uint32(self) }
    package var json: JSONValue { .integer(Int64(self)) }

    package static func decode(_ variant: Variant) -> UInt32? {
        if case .uint32(let value) = variant { value } else { nil }
    }
    package static func decode(_ json: JSONValue) -> UInt32? { json.integerValue.flatMap { UInt32(exactly: $0) } }
}

extension UInt64: ScalarValue {
    package static var signature: String { "t" }
    package static var jsonType: String { "a whole number that is not negative" }
    package var variant: Variant { .uint64(self) }
    /// A number above 2⁶³−1 is written as 2⁶³−1, the largest that JSON readers support.
    package var json: JSONValue { .integer(Int64(clamping: self)) }

    package static func decode(_ variant: Variant) -> UInt64? {
        if case .uint64(let value) = variant { value } else { nil }
    }
    package static func decode(_ json: JSONValue) -> UInt64? { json.integerValue.flatMap { UInt64(exactly: $0) } }
}

/// A number that is no time span, such as a percentage.
extension Double: ScalarValue {
    package static var signature: String { "d" }
    package static var jsonType: String { "a number" }
    package var variant: Variant { .double(self) }
    package var json: JSONValue { .number(self) }

    package static func decode(_ variant: Variant) -> Double? {
        if case .double(let value) = variant, value.isFinite { value } else { nil }
    }
    package static func decode(_ json: JSONValue) -> Double? { json.numberValue }
}

/// A time span in seconds, with microseconds. The key ends in `Seconds`.
extension Duration: ScalarValue {
    package static var signature: String { "d" }
    package static var jsonType: String { "a number of seconds" }
    package var variant: Variant { .double(wireSeconds) }
    package var json: JSONValue { .number(wireSeconds) }

    package static func decode(_ variant: Variant) -> Duration? {
        if case .double(let seconds) = variant { fromSeconds(seconds) } else { nil }
    }
    package static func decode(_ json: JSONValue) -> Duration? { json.numberValue.flatMap(fromSeconds) }

    /// The longest time span, in seconds: about 31,700 years. Its microseconds fit into 64 bits.
    private static let longest = 1e12

    private static func fromSeconds(_ seconds: Double) -> Duration? {
        guard seconds.isFinite, abs(seconds) <= longest else { return nil }
        return .microseconds(Int64((seconds * 1e6).rounded()))
    }

    /// The double nearest to the value rounded to six decimals, so that JSON shows at most six.
    private var wireSeconds: Double {
        let bound = Duration.seconds(Int64(Duration.longest))
        let (seconds, attoseconds) = Swift.max(.zero - bound, Swift.min(bound, self)).components
        let microseconds = Double(seconds * 1_000_000 + attoseconds / 1_000_000_000_000)
        return microseconds / 1e6
    }
}

/// A list: an array of its elements' type, `as` or `aa{sv}`.
extension Array: RecordValue where Element: RecordValue {
    package static var signature: String { "a" + Element.signature }
    package static var jsonType: String { "a list" }

    package var variant: Variant { .array(Element.signature, map(\.variant)) }
    package var json: JSONValue { .array(map(\.json)) }

    package init(variant: Variant) throws(RecordError) {
        guard case .array(Element.signature, let elements) = variant else {
            throw RecordError(expected: Self.signature, found: variant.signature)
        }
        self = try Self.decode(elements) { (value) throws(RecordError) in try Element(variant: value) }
    }

    package init(json: JSONValue) throws(RecordError) {
        guard let elements = json.arrayValue else {
            throw RecordError(expected: Self.jsonType, found: json.typeInWords)
        }
        self = try Self.decode(elements) { (value) throws(RecordError) in try Element(json: value) }
    }

    private static func decode<Value>(
        _ elements: [Value], _ read: (Value) throws(RecordError) -> Element
    ) throws(RecordError) -> [Element] {
        guard elements.count <= maximumElements else {
            throw RecordError(expected: "at most \(maximumElements) elements", found: "\(elements.count)")
        }
        var result: [Element] = []
        result.reserveCapacity(elements.count)
        for (index, element) in elements.enumerated() {
            do throws(RecordError) {
                result.append(try read(element))
            } catch {
                throw error.inside("[\(index)]")
            }
        }
        return result
    }
}

/// The longest list that is decoded: six times the apps that one daemon has at most.
private let maximumElements = 65_536

extension JSONValue {
    var typeInWords: String {
        switch self {
        case .null: "null"
        case .bool: "true or false"
        case .integer(let value): "the number \(value)"
        case .number(let value): "the number \(value)"
        case .string: "a string"
        case .array: "a list"
        case .object: "an object"
        }
    }
}
