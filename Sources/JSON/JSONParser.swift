import CJansson

/// Why a text is not JSON, and where.
package struct JSONError: Error, Equatable, CustomStringConvertible {
    /// From 1; 0 when the whole document is meant.
    package let line: Int
    /// From 1, in characters.
    package let column: Int
    /// Bytes from the start.
    package let position: Int
    package let message: String

    package var description: String {
        line > 0 ? "line \(line), column \(column): \(message)" : message
    }
}

/// How large a document may be that is read.
package struct JSONLimits: Sendable {
    /// Bytes. A recorded trace is the largest thing we read, one event a line.
    package var bytes = 16 << 20
    /// Lists and objects inside each other: ours have four; jansson itself stops at 2,048.
    package var depth = 64

    package init() {}
}

extension JSONValue {
    /// Reads one document: any value, UTF-8, no key twice in an object, integers within 64 bits.
    package static func parse(_ bytes: [UInt8], limits: JSONLimits = JSONLimits()) throws(JSONError) -> JSONValue {
        guard bytes.count <= limits.bytes else {
            throw JSONError(whole: "the document has \(bytes.count) bytes, more than \(limits.bytes)")
        }
        var error = json_error_t()
        let flags = JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL
        let root = bytes.withUnsafeBytes { buffer in
            json_loadb(buffer.baseAddress?.assumingMemoryBound(to: CChar.self), buffer.count, Int(flags), &error)
        }
        guard let root else { throw JSONError(error) }
        defer { json_decref(root) }
        return try convert(root, depth: limits.depth)
    }

    package static func parse(_ text: String, limits: JSONLimits = JSONLimits()) throws(JSONError) -> JSONValue {
        try parse(Array(text.utf8), limits: limits)
    }

    private static func convert(_ value: UnsafeMutablePointer<json_t>, depth: Int) throws(JSONError) -> JSONValue {
        switch cjansson_typeof(value) {
        case JSON_NULL: return .null
        case JSON_TRUE: return .bool(true)
        case JSON_FALSE: return .bool(false)
        case JSON_INTEGER: return .integer(Int64(json_integer_value(value)))
        case JSON_REAL: return .number(json_real_value(value))
        case JSON_STRING: return .string(text(json_string_value(value), json_string_length(value)))
        default:
            guard depth > 0 else { throw JSONError(whole: "lists and objects are nested too deeply") }
            return cjansson_typeof(value) == JSON_ARRAY
                ? .array(try elements(of: value, depth: depth - 1)) : .object(try members(of: value, depth: depth - 1))
        }
    }

    private static func elements(
        of array: UnsafeMutablePointer<json_t>, depth: Int
    ) throws(JSONError) -> [JSONValue] {
        var result: [JSONValue] = []
        result.reserveCapacity(json_array_size(array))
        for index in 0..<json_array_size(array) {
            if let element = json_array_get(array, index) { result.append(try convert(element, depth: depth)) }
        }
        return result
    }

    private static func members(
        of object: UnsafeMutablePointer<json_t>, depth: Int
    ) throws(JSONError) -> [(String, JSONValue)] {
        var result: [(String, JSONValue)] = []
        var iterator = json_object_iter(object)
        while let place = iterator {
            if let key = json_object_iter_key(place), let value = json_object_iter_value(place) {
                result.append((text(key, json_object_iter_key_len(place)), try convert(value, depth: depth)))
            }
            iterator = json_object_iter_next(object, place)
        }
        return result
    }

    /// jansson has checked that it is UTF-8; it may hold a NUL.
    private static func text(_ start: UnsafePointer<CChar>?, _ length: Int) -> String {
        guard let start else { return "" }
        return String(decoding: UnsafeRawBufferPointer(start: start, count: length), as: UTF8.self)
    }
}

extension JSONError {
    init(whole message: String) {
        self.init(line: 0, column: 0, position: 0, message: message)
    }

    init(_ error: json_error_t) {
        let message = withUnsafeBytes(of: error.text) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        self.init(
            line: Int(max(0, error.line)), column: Int(max(0, error.column)), position: Int(max(0, error.position)),
            message: message)
    }
}
