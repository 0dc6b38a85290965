/// How a value stands in a field: what a reader needs to know to skip a field that it does not know.
package enum SavedForm: UInt8 {
    /// A number in LEB128.
    case number = 0
    /// Bytes, prefixed with their length.
    case bytes = 1
}

/// A value that can be saved, and read again as it was.
package protocol SavedValue {
    static var form: SavedForm { get }
    /// Appends the value, without a length.
    func save(to writer: inout ByteWriter)
    /// Reads the value. A value in the form `.bytes` is all that is left in `reader`.
    init(from reader: inout ByteReader) throws(SavedError)
}

/// A value of named parts, saved as fields with numbers:
///
///     record := field…                         in ascending order of the numbers
///     field  := LEB128(number << 1 | form) value
///     value  := LEB128                         form 0
///             | LEB128(length) byte…           form 1
///
/// `code` is the one list of the fields; the same list writes and reads. A reader skips fields that it does not know, and
/// keeps the default of a field that is not there. So a release may add fields, and the releases before and after it read
/// what it saved. A number is never used again for something else.
package protocol SavedRecord: SavedValue {
    /// The value before any field was read.
    static var blank: Self { get }
    /// Names each field to the coder, in ascending order of the numbers.
    mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure)
    /// Why the fields do not fit together, in one sentence; `nil`: they do.
    var fault: String? { get }
}

/// Writes the fields of a record, or reads them.
package protocol RecordCoder {
    associatedtype Failure: Error
    /// A field that must be there.
    mutating func required<Value: SavedValue>(_ number: Int, _ value: inout Value) throws(Failure)
    /// A field that keeps its default if it is not there, or is a case that this version does not know.
    mutating func field<Value: SavedValue>(_ number: Int, _ value: inout Value) throws(Failure)
    /// A flag that is `false` by default.
    mutating func flag(_ number: Int, _ value: inout Bool) throws(Failure)
    /// An optional whose default is `nil`.
    mutating func optional<Value: SavedValue>(_ number: Int, _ value: inout Value?) throws(Failure)
    /// An optional whose default is not `nil`.
    mutating func nullable<Value: SavedValue>(_ number: Int, _ value: inout Value?) throws(Failure)
    /// A list of at most `limit` values. A longer one is an error.
    mutating func list<Value: SavedValue>(_ number: Int, _ values: inout [Value], upTo limit: Int) throws(Failure)
}

extension RecordCoder {
    /// A field that is left out while it has its default.
    mutating func field<Value: SavedValue & Equatable>(
        _ number: Int, _ value: inout Value, unless standard: Value
    ) throws(Failure) {
        var saved = value == standard ? nil : value
        try optional(number, &saved)
        value = saved ?? standard
    }
}

extension SavedRecord {
    package static var form: SavedForm { .bytes }
    package var fault: String? { nil }

    package func save(to writer: inout ByteWriter) {
        var copy = self
        copy.code(&writer)
    }

    package init(from reader: inout ByteReader) throws(SavedError) {
        var value = Self.blank
        var record = RecordReader(reader)
        try value.code(&record)
        try record.end()
        if let fault = value.fault { throw reader.error(fault) }
        reader = record.reader
        self = value
    }
}

/// An enum whose cases may have values: the number of the case, and its values as a record with the fields 1, 2, …
package protocol SavedUnion: SavedValue {
    /// Appends the case: `writer.put(case: 3, value, …)`.
    func save(to writer: inout ByteWriter)
    /// Reads the values of case `number` with `values.next()`; `nil`: this version knows no such case.
    init?(case number: UInt64, _ values: inout RecordReader) throws(SavedError)
}

extension SavedUnion {
    package static var form: SavedForm { .bytes }

    package init(from reader: inout ByteReader) throws(SavedError) {
        let number = try reader.number()
        var values = RecordReader(reader)
        guard let value = try Self(case: number, &values) else { throw reader.unknownCase(number, Self.self) }
        try values.end()
        reader = values.reader
        self = value
    }
}

/// An enum without values, saved as the position of the case. New cases go to the end.
package protocol SavedCase: SavedValue, CaseIterable, Equatable where AllCases == [Self] {}

extension SavedCase {
    package static var form: SavedForm { .number }

    package func save(to writer: inout ByteWriter) {
        writer.put(number: UInt64(Self.allCases.firstIndex(of: self) ?? 0))
    }

    package init(from reader: inout ByteReader) throws(SavedError) {
        let position = try reader.number()
        guard position < UInt64(Self.allCases.count) else { throw reader.unknownCase(position, Self.self) }
        self = Self.allCases[Int(position)]
    }
}
