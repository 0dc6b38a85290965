/// Why bytes are not what a daemon could have saved.
package struct SavedError: Error, Hashable, CustomStringConvertible {
    /// Position in the saved bytes, from their start.
    package var offset: Int
    /// What is wrong there, and what was expected, in one sentence.
    package var sentence: String
    /// The value is a case that this version does not know. A field that has a default keeps it then.
    var isUnknownCase = false

    package init(offset: Int, _ sentence: String) {
        self.offset = offset
        self.sentence = sentence
    }

    package var description: String { "byte \(offset): \(sentence)" }
}

/// Reads what `ByteWriter` wrote. Whatever the bytes are, reading ends with values within their bounds or with an error.
package struct ByteReader {
    private let bytes: ArraySlice<UInt8>
    private var position: Int
    /// Where offsets in errors are counted from.
    private let origin: Int

    package init(_ bytes: ArraySlice<UInt8>) { self.init(bytes, origin: bytes.startIndex) }

    package init(_ bytes: [UInt8]) { self.init(bytes[...]) }

    private init(_ bytes: ArraySlice<UInt8>, origin: Int) {
        self.bytes = bytes
        self.origin = origin
        position = bytes.startIndex
    }

    package var offset: Int { position - origin }
    /// How many bytes are left to read.
    package var left: Int { bytes.endIndex - position }

    package func error(_ sentence: String) -> SavedError { SavedError(offset: offset, sentence) }

    /// - Throws: if bytes are left over.
    package func end() throws(SavedError) {
        if left > 0 { throw error("\(left) bytes are left over") }
    }

    package mutating func byte() throws(SavedError) -> UInt8 {
        guard position < bytes.endIndex else { throw error("the bytes end in the middle of a value") }
        defer { position += 1 }
        return bytes[position]
    }

    package mutating func bytes(_ count: Int) throws(SavedError) -> ArraySlice<UInt8> {
        guard count >= 0, count <= left else { throw error("\(count) bytes expected, \(left) are left") }
        defer { position += count }
        return bytes[position..<(position + count)]
    }

    /// A reader of the next `length`-prefixed bytes, which are skipped here.
    mutating func nested() throws(SavedError) -> ByteReader {
        let length = try number()
        guard length <= UInt64(left) else { throw error("\(length) bytes expected, \(left) are left") }
        return ByteReader(try bytes(Int(length)), origin: origin)
    }

    /// An unsigned number in LEB128.
    package mutating func number() throws(SavedError) -> UInt64 {
        var value: UInt64 = 0
        var shift: UInt64 = 0
        while true {
            let next = try byte()
            let part = UInt64(next & 0x7f)
            guard shift < 63 || (shift == 63 && part <= 1) else { throw error("a number of more than 64 bits") }
            value |= part << shift
            if next < 0x80 { return value }
            shift += 7
        }
    }

    /// A signed number in zigzag LEB128.
    package mutating func signed() throws(SavedError) -> Int64 {
        let value = try number()
        return Int64(bitPattern: (value >> 1) ^ (0 &- (value & 1)))
    }

    /// - Throws: if the number is larger than `limit`. `what` names it in the error.
    package mutating func number(upTo limit: UInt64, _ what: String) throws(SavedError) -> UInt64 {
        let value = try number()
        guard value <= limit else { throw error("\(what) \(value), expected at most \(limit)") }
        return value
    }

    /// All bytes that are left, as UTF-8. `what` names the text in errors.
    package mutating func rest(upTo limit: Int, _ what: String) throws(SavedError) -> String {
        guard left <= limit else { throw error("\(what) of \(left) bytes, expected at most \(limit)") }
        guard let text = String(validating: try bytes(left), as: UTF8.self) else { throw error("\(what) is not UTF-8") }
        return text
    }

    /// The error for a case number that this version does not know.
    package func unknownCase(_ number: UInt64, _ type: Any.Type) -> SavedError {
        var error = error("\(type) has no case \(number)")
        error.isUnknownCase = true
        return error
    }
}
