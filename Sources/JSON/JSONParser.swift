import CJansson

/// A syntax error in a JSON document, or a document that exceeds a limit.
package struct JSONError: Error, Equatable, CustomStringConvertible {
    /// Counted from 1. 0: the error is about the whole document.
    package let line: Int
    /// In characters, counted from 1.
    package let column: Int
    /// The offset in bytes from the start.
    package let position: Int
    package let message: String

    package var description: String {
        line > 0 ? "line \(line), column \(column): \(message)" : message
    }
}

/// The limits for a document that is parsed.
package struct JSONLimits: Sendable {
    /// The size in bytes.
    package var bytes = 16 << 20
    /// The nesting depth of arrays and objects. Greenroom's own documents have at most 4 levels; jansson allows 2,048.
    package var depth = 64

    package init() {}
}

extension JSONValue {
    /// Parses one document of any type. It must be UTF-8, without duplicate keys, and with integers that fit into 64 bits.
    package static func parse(_ bytes: [UInt8], limits: JSONLimits = JSONLimits()) throws(JSONError) -> JSONValue {
        guard bytes.count <= limits.bytes else {
            throw JSONError(whole: "the document has \(bytes.count) bytes; expected at most \(limits.bytes)")
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
            guard depth > 0 else { throw JSONError(whole: "arrays and objects are nested too deeply") }
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
        while let member = iterator {
            if let key = json_object_iter_key(member), let value = json_object_iter_value(member) {
                result.append((text(key, json_object_iter_key_len(member)), try convert(value, depth: depth)))
            }
            iterator = json_object_iter_next(object, member)
        }
        return result
    }

    /// Converts a string of jansson, which is valid UTF-8 and may contain NUL.
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
