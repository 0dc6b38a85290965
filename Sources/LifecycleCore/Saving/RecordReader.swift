/// Reads the fields of a record in ascending order, and skips fields that the caller does not name.
package struct RecordReader: RecordCoder {
    private(set) var reader: ByteReader
    /// The field that `reader` stands behind the key of.
    private var pending: (number: UInt64, form: SavedForm)?
    private var last: UInt64 = 0
    /// Of a union: the value that comes next.
    private var nextValue = 1

    init(_ reader: ByteReader) { self.reader = reader }

    // MARK: Fields

    package mutating func required<Value: SavedValue>(_ number: Int, _ value: inout Value) throws(SavedError) {
        guard try find(number, Value.form) else { throw reader.error("field \(number) is missing") }
        value = try take()
    }

    package mutating func field<Value: SavedValue>(_ number: Int, _ value: inout Value) throws(SavedError) {
        guard try find(number, Value.form) else { return }
        if let known: Value = try takeIfKnown() { value = known }
    }

    package mutating func flag(_ number: Int, _ value: inout Bool) throws(SavedError) {
        guard try find(number, .number) else { return }
        value = try take()
    }

    package mutating func optional<Value: SavedValue>(_ number: Int, _ value: inout Value?) throws(SavedError) {
        guard try find(number, Value.form) else { return }
        value = try takeIfKnown()
    }

    package mutating func nullable<Value: SavedValue>(_ number: Int, _ value: inout Value?) throws(SavedError) {
        guard try find(number, .bytes) else { return }
        pending = nil
        var nested = try reader.nested()
        guard nested.left > 0 else { return value = nil }
        let known: Value? = try Self.known { () throws(SavedError) in try Self.next(&nested) }
        if let known {
            try nested.end()
            value = known
        }
    }

    package mutating func list<Value: SavedValue>(
        _ number: Int, _ values: inout [Value], upTo limit: Int
    ) throws(SavedError) {
        guard try find(number, .bytes) else { return }
        pending = nil
        var nested = try reader.nested()
        values = []
        while nested.left > 0 {
            guard values.count < limit else { throw nested.error("a list of more than \(limit) values") }
            values.append(try Self.next(&nested))
        }
    }

    // MARK: Values of a union

    /// The next value of a case.
    package mutating func next<Value: SavedValue>() throws(SavedError) -> Value {
        let number = nextValue
        nextValue += 1
        guard try find(number, Value.form) else { throw reader.error("value \(number) is missing") }
        return try take()
    }

    /// - Throws: if what is left are not fields.
    mutating func end() throws(SavedError) {
        while try peek() != nil { try skip() }
    }

    // MARK: Keys

    /// Whether the record has the field. Those before it are skipped.
    private mutating func find(_ number: Int, _ form: SavedForm) throws(SavedError) -> Bool {
        while let next = try peek(), next.number < UInt64(number) { try skip() }
        guard let next = try peek(), next.number == UInt64(number) else { return false }
        guard next.form == form else { throw reader.error("field \(number) has another form than expected") }
        return true
    }

    private mutating func peek() throws(SavedError) -> (number: UInt64, form: SavedForm)? {
        if let pending { return pending }
        guard reader.left > 0 else { return nil }
        let key = try reader.number()
        let number = key >> 1
        guard number > last else { throw reader.error("field \(number) comes after field \(last)") }
        last = number
        pending = (number, key & 1 == 0 ? .number : .bytes)
        return pending
    }

    private mutating func skip() throws(SavedError) {
        guard let next = pending else { return }
        pending = nil
        switch next.form {
        case .number: _ = try reader.number()
        case .bytes: _ = try reader.nested()
        }
    }

    // MARK: Values

    private mutating func take<Value: SavedValue>() throws(SavedError) -> Value {
        pending = nil
        return try Self.next(&reader)
    }

    /// `nil`: a case that this version does not know.
    private mutating func takeIfKnown<Value: SavedValue>() throws(SavedError) -> Value? {
        pending = nil
        let start = reader
        do {
            return try Self.next(&reader)
        } catch {
            guard error.isUnknownCase else { throw error }
            reader = start
            switch Value.form {
            case .number: _ = try reader.number()
            case .bytes: _ = try reader.nested()
            }
            return nil
        }
    }

    private static func known<Value>(_ body: () throws(SavedError) -> Value) throws(SavedError) -> Value? {
        do { return try body() } catch {
            guard error.isUnknownCase else { throw error }
            return nil
        }
    }

    private static func next<Value: SavedValue>(_ reader: inout ByteReader) throws(SavedError) -> Value {
        switch Value.form {
        case .number: return try Value(from: &reader)
        case .bytes:
            var nested = try reader.nested()
            let value = try Value(from: &nested)
            try nested.end()
            return value
        }
    }
}
