/// Appends values to bytes in the saved form (`SavedRecord`).
package struct ByteWriter {
    package private(set) var bytes: [UInt8] = []

    package init() {}

    /// Removes all bytes and keeps the memory.
    package mutating func clear() { bytes.removeAll(keepingCapacity: true) }

    /// Reserves memory for `count` more bytes.
    package mutating func reserve(_ count: Int) { bytes.reserveCapacity(bytes.count + count) }

    package mutating func put(byte: UInt8) { bytes.append(byte) }

    package mutating func put(bytes more: some Collection<UInt8>) { bytes.append(contentsOf: more) }

    /// An unsigned number in LEB128: a byte for each seven bits.
    package mutating func put(number: UInt64) {
        var rest = number
        while rest > 0x7f {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }

    /// A signed number in zigzag LEB128: small numbers are short whatever their sign.
    package mutating func put(signed number: Int64) {
        put(number: UInt64(bitPattern: (number << 1) ^ (number >> 63)))
    }

    package mutating func put(text: String) {
        var text = text
        text.withUTF8 { bytes.append(contentsOf: $0) }
    }

    /// A value, prefixed with its length unless it is a number.
    mutating func put<Value: SavedValue>(_ value: Value) {
        switch Value.form {
        case .number: value.save(to: &self)
        case .bytes: putPrefixed { value.save(to: &$0) }
        }
    }

    /// Appends what `body` appends, with its length in front. One byte is reserved for the length; a longer one moves what
    /// was appended.
    private mutating func putPrefixed(_ body: (inout ByteWriter) -> Void) {
        let start = bytes.count
        bytes.append(0)
        body(&self)
        let length = bytes.count - start - 1
        if length < 0x80 {
            bytes[start] = UInt8(length)
            return
        }
        var prefix = ByteWriter()
        prefix.put(number: UInt64(length))
        bytes.replaceSubrange(start...start, with: prefix.bytes)
    }

    /// The beginning of a list whose values have `count` bytes.
    mutating func put(listKey number: Int, count: Int) {
        put(key: number, .bytes)
        put(number: UInt64(count))
    }

    private mutating func put(key number: Int, _ form: SavedForm) {
        put(number: UInt64(number) << 1 | UInt64(form.rawValue))
    }
}

extension ByteWriter: RecordCoder {
    package mutating func required<Value: SavedValue>(_ number: Int, _ value: inout Value) {
        put(key: number, Value.form)
        put(value)
    }

    package mutating func field<Value: SavedValue>(_ number: Int, _ value: inout Value) {
        put(key: number, Value.form)
        put(value)
    }

    package mutating func flag(_ number: Int, _ value: inout Bool) {
        guard value else { return }
        put(key: number, .number)
        put(number: 1)
    }

    package mutating func optional<Value: SavedValue>(_ number: Int, _ value: inout Value?) {
        guard let value else { return }
        put(key: number, Value.form)
        put(value)
    }

    package mutating func nullable<Value: SavedValue>(_ number: Int, _ value: inout Value?) {
        put(key: number, .bytes)
        putPrefixed { writer in if let value { writer.put(value) } }
    }

    package mutating func list<Value: SavedValue>(_ number: Int, _ values: inout [Value], upTo limit: Int) {
        if values.isEmpty { return }
        put(key: number, .bytes)
        putPrefixed { writer in for value in values { writer.put(value) } }
    }
}

extension ByteWriter {
    /// A case of a `SavedUnion` with its values.
    package mutating func put<each Value: SavedValue>(case number: Int, _ values: repeat each Value) {
        put(number: UInt64(number))
        var field = 0
        for value in repeat each values {
            field += 1
            var value = value
            self.field(field, &value)
        }
    }
}
