/// Why bytes are not what was saved.
package struct SavedError: Error, Hashable, CustomStringConvertible {
    /// Where, from the start.
    package var offset: Int
    /// What is wrong there and what was expected, in one sentence.
    package var sentence: String

    package init(offset: Int, _ sentence: String) {
        self.offset = offset
        self.sentence = sentence
    }

    package var description: String { "byte \(offset): \(sentence)" }
}

/// Takes apart what `ByteWriter` has put together. Whatever the bytes are, it ends with values within their bounds or with
/// an error.
package struct ByteReader {
    private let bytes: ArraySlice<UInt8>
    private var position: Int

    package init(_ bytes: ArraySlice<UInt8>) {
        self.bytes = bytes
        position = bytes.startIndex
    }

    package init(_ bytes: [UInt8]) { self.init(bytes[...]) }

    package var offset: Int { position - bytes.startIndex }
    package var left: Int { bytes.endIndex - position }

    package func error(_ sentence: String) -> SavedError { SavedError(offset: offset, sentence) }

    /// That all was read.
    package func end() throws(SavedError) {
        if left > 0 { throw error("\(left) bytes are left over") }
    }

    package mutating func byte() throws(SavedError) -> UInt8 {
        guard position < bytes.endIndex else { throw error("ends in the middle") }
        defer { position += 1 }
        return bytes[position]
    }

    package mutating func bytes(_ count: Int) throws(SavedError) -> ArraySlice<UInt8> {
        guard count >= 0, count <= left else { throw error("\(count) bytes expected, \(left) are left") }
        defer { position += count }
        return bytes[position..<(position + count)]
    }

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

    package mutating func signed() throws(SavedError) -> Int64 {
        let value = try number()
        return Int64(bitPattern: (value >> 1) ^ (0 &- (value & 1)))
    }

    /// A number within bounds.
    package mutating func number(upTo limit: UInt64, _ what: String) throws(SavedError) -> UInt64 {
        let value = try number()
        guard value <= limit else { throw error("\(what) \(value), expected at most \(limit)") }
        return value
    }

    /// A count of things that take at least a byte each.
    package mutating func count(upTo limit: Int, _ what: String) throws(SavedError) -> Int {
        let value = try number()
        guard value <= UInt64(min(limit, left)) else {
            throw error("\(value) \(what), expected at most \(min(limit, left))")
        }
        return Int(value)
    }

    package mutating func text(upTo limit: Int, _ what: String) throws(SavedError) -> String {
        let length = try count(upTo: limit, "bytes of \(what)")
        guard let text = String(validating: try bytes(length), as: UTF8.self) else {
            throw error("\(what) is no UTF-8")
        }
        return text
    }

    package mutating func take<T: Storable>() throws(SavedError) -> T { try T(from: &self) }

    package mutating func take<T: Storable>(upTo limit: Int, _ what: String) throws(SavedError) -> [T] {
        let number = try count(upTo: limit, what)
        var values: [T] = []
        values.reserveCapacity(number)
        for _ in 0..<number { values.append(try T(from: &self)) }
        return values
    }

    package mutating func optional<T: Storable>() throws(SavedError) -> T? {
        try flag() ? try T(from: &self) : nil
    }

    package mutating func flag() throws(SavedError) -> Bool {
        switch try byte() {
        case 0: false
        case 1: true
        case let other: throw error("\(other), expected 0 or 1")
        }
    }

    /// What a case's number is not.
    package func unknown(_ number: UInt8, _ what: String) -> SavedError {
        error("\(number) is no \(what)")
    }
}
