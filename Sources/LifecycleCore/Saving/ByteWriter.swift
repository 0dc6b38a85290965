/// Puts values one behind the other, as short as they are: numbers take a byte for each seven bits.
package struct ByteWriter {
    package private(set) var bytes: [UInt8] = []

    package init() {}

    /// Starts anew, in the memory it has.
    package mutating func clear() { bytes.removeAll(keepingCapacity: true) }

    package mutating func put(byte: UInt8) { bytes.append(byte) }

    package mutating func put(bytes more: some Collection<UInt8>) { bytes.append(contentsOf: more) }

    package mutating func put(number: UInt64) {
        var rest = number
        while rest > 0x7f {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }

    /// Small ones are short whatever their sign.
    package mutating func put(signed number: Int64) {
        put(number: UInt64(bitPattern: (number << 1) ^ (number >> 63)))
    }

    package mutating func put(text: String) {
        var text = text
        text.withUTF8 { utf8 in
            put(number: UInt64(utf8.count))
            bytes.append(contentsOf: utf8)
        }
    }

    package mutating func put(_ value: some Storable) { value.store(in: &self) }

    package mutating func put(_ values: [some Storable]) {
        put(number: UInt64(values.count))
        for value in values { value.store(in: &self) }
    }

    package mutating func put(_ value: (some Storable)?) {
        guard let value else { return put(byte: 0) }
        put(byte: 1)
        value.store(in: &self)
    }
}

/// What can be saved, and read again as it was.
package protocol Storable {
    func store(in writer: inout ByteWriter)
    /// - Throws: where the bytes are not what `store` could have written.
    init(from reader: inout ByteReader) throws(SavedError)
}
