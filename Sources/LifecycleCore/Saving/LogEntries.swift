/// An event in the daemon's log, with the instant at which the core handled it.
package struct LoggedEvent: SavedRecord {
    package var at: Instant
    package var event: Event

    package init(_ event: Event, at: Instant) {
        self.event = event
        self.at = at
    }

    package static var blank: LoggedEvent { LoggedEvent(.deadlineReached, at: .origin) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &at)
        try coder.required(2, &event)
    }
}

/// Something in the daemon's log that the core does not know, under a name. The last one of a name counts.
package struct LoggedRecord: SavedRecord {
    package var name: String
    /// `nil`: the record was removed.
    package var content: [UInt8]?

    package init(name: String, content: [UInt8]?) {
        self.name = name
        self.content = content
    }

    package static var blank: LoggedRecord { LoggedRecord(name: "", content: nil) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &name)
        var saved = content.map(SavedBytes.init)
        try coder.optional(2, &saved)
        content = saved?.bytes
    }
}

private struct SavedBytes: SavedValue {
    static var form: SavedForm { .bytes }
    var bytes: [UInt8]
    init(bytes: [UInt8]) { self.bytes = bytes }
    func save(to writer: inout ByteWriter) { writer.put(bytes: bytes) }
    init(from reader: inout ByteReader) throws(SavedError) { bytes = Array(try reader.bytes(reader.left)) }
}

extension SavedRecord {
    /// The value, alone in the bytes.
    package var savedBytes: [UInt8] {
        var writer = ByteWriter()
        save(to: &writer)
        return writer.bytes
    }

    package init(reading bytes: [UInt8]) throws(SavedError) { try self.init(reading: bytes[...]) }

    /// Reads a value that is alone in the bytes.
    package init(reading bytes: ArraySlice<UInt8>) throws(SavedError) {
        var reader = ByteReader(bytes)
        try self.init(from: &reader)
        try reader.end()
    }
}
