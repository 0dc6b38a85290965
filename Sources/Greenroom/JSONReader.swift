/// Reads the members of a JSON object that are texts, numbers or Booleans, and skips the others.
///
/// The library has no dependency for one small file. It is written by greenroomd, but any bytes are safe.
struct JSONReader {
    enum Value: Equatable {
        case text(String)
        case number(String)
        case bool(Bool)
        /// `null`, an array or an object.
        case other
    }

    /// Deeper values are not read.
    private static let maximumDepth = 64

    private let bytes: [UInt8]
    private var position = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// Returns the members of the object that the bytes are; `nil` if they are not JSON, or no object.
    mutating func fields() -> [String: Value]? {
        var found: [String: Value] = [:]
        guard members(depth: 0, { found[$0] = $1 }), next() == nil else { return nil }
        return found
    }

    /// Reads an object and calls the body for its members.
    private mutating func members(depth: Int, _ body: (String, Value) -> Void) -> Bool {
        guard take("{") else { return false }
        if take("}") { return true }
        repeat {
            guard next() == UInt8(ascii: "\""), let key = text(), take(":"), let value = value(depth: depth) else {
                return false
            }
            body(key, value)
        } while take(",")
        return take("}")
    }

    private mutating func value(depth: Int) -> Value? {
        guard depth < Self.maximumDepth, let byte = next() else { return nil }
        switch byte {
        case UInt8(ascii: "\""): return text().map(Value.text)
        case UInt8(ascii: "{"): return members(depth: depth + 1, { _, _ in }) ? .other : nil
        case UInt8(ascii: "["):
            position += 1
            if take("]") { return .other }
            repeat { if value(depth: depth + 1) == nil { return nil } } while take(",")
            return take("]") ? .other : nil
        default: return word()
        }
    }

    /// Reads a number, `true`, `false` or `null`.
    private mutating func word() -> Value? {
        let start = position
        while position < bytes.count, isWord(bytes[position]) { position += 1 }
        let text = String(decoding: bytes[start..<position], as: UTF8.self)
        switch text {
        case "true": return .bool(true)
        case "false": return .bool(false)
        case "null": return .other
        default: return Double(text) == nil ? nil : .number(text)
        }
    }

    private func isWord(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "-"),
            UInt8(ascii: "+"), UInt8(ascii: "."), UInt8(ascii: "E"):
            true
        default: false
        }
    }

    /// Reads a text in quotes.
    private mutating func text() -> String? {
        position += 1
        var units: [UInt8] = []
        while position < bytes.count {
            let byte = bytes[position]
            position += 1
            switch byte {
            case UInt8(ascii: "\""): return String(validating: units, as: UTF8.self)
            case UInt8(ascii: "\\"):
                guard let scalar = escaped() else { return nil }
                units += String(scalar).utf8
            case 0..<0x20: return nil
            default: units.append(byte)
            }
        }
        return nil
    }

    /// Reads what follows a backslash.
    private mutating func escaped() -> Unicode.Scalar? {
        guard position < bytes.count else { return nil }
        position += 1
        switch bytes[position - 1] {
        case UInt8(ascii: "n"): return "\n"
        case UInt8(ascii: "t"): return "\t"
        case UInt8(ascii: "r"): return "\r"
        case UInt8(ascii: "b"): return "\u{8}"
        case UInt8(ascii: "f"): return "\u{c}"
        case UInt8(ascii: "u"): return unit().flatMap { scalar($0) }
        case let byte where byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") || byte == UInt8(ascii: "/"):
            return Unicode.Scalar(byte)
        default: return nil
        }
    }

    /// The scalar of a UTF-16 unit, and of the one that follows if it is the first half of a pair.
    private mutating func scalar(_ first: UInt16) -> Unicode.Scalar? {
        guard UTF16.isLeadSurrogate(first) else { return Unicode.Scalar(first) }
        guard position + 1 < bytes.count, bytes[position] == UInt8(ascii: "\\"),
            bytes[position + 1] == UInt8(ascii: "u")
        else { return nil }
        position += 2
        guard let second = unit(), UTF16.isTrailSurrogate(second) else { return nil }
        return UTF16.decode(UTF16.EncodedScalar([first, second]))
    }

    private mutating func unit() -> UInt16? {
        guard position + 4 <= bytes.count else { return nil }
        defer { position += 4 }
        return UInt16(String(decoding: bytes[position..<position + 4], as: UTF8.self), radix: 16)
    }

    /// The next byte that is no white space.
    private mutating func next() -> UInt8? {
        while position < bytes.count, [0x20, 0x09, 0x0A, 0x0D].contains(bytes[position]) { position += 1 }
        return position < bytes.count ? bytes[position] : nil
    }

    private mutating func take(_ character: Unicode.Scalar) -> Bool {
        guard next() == UInt8(ascii: character) else { return false }
        position += 1
        return true
    }
}
