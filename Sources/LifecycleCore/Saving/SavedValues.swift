/// Bounds of saved values: what lies beyond them would overflow later.
enum SavedLimits {
    /// Seconds of a duration, in either direction: more than `EXTEND_TIMEOUT_USEC=` can say (2^64 µs).
    static let seconds: Int64 = 1 << 46
    /// Bytes of memory of one app. Processors address 2^57 bytes at most.
    static let memory: UInt64 = 1 << 56
    /// Counters that go up by one.
    static let counter: UInt64 = 1 << 53
    /// Bytes of a text: names of tasks, explanations. A notify message has 4,096 bytes.
    static let text = 16 << 10
    static let apps = 1 << 20
}

// MARK: Enums without values

extension AppState: SavedCase {}
extension LaunchReason: SavedCase {}
extension LaunchState: SavedCase {}
extension DeadlineKind: SavedCase {}
extension MemoryLevel: SavedCase {}
extension MemoryCause: SavedCase {}
extension OutOfMemory: SavedCase {}
extension Receipt.Namespace: SavedCase {}
extension Receipt.Failure: SavedCase {}
extension Waiter.Goal: SavedCase {}
extension PendingRequest: SavedCase {}
extension AppPolicy.Readiness: SavedCase {}
extension AppPolicy.Relaunch: SavedCase {}
extension AppPolicy.Role: SavedCase {}
extension AppPolicy.KillMode: SavedCase {}
extension AppPolicy.TerminateSuspended: SavedCase {}
extension AppPolicy.Suspension: SavedCase {}
extension AppPolicy.Reclaim: SavedCase {}
extension ManagerPolicy.JetsamOrder: SavedCase {}

// MARK: Numbers and texts

extension Bool: SavedValue {
    package static var form: SavedForm { .number }
    package func save(to writer: inout ByteWriter) { writer.put(number: self ? 1 : 0) }
    package init(from reader: inout ByteReader) throws(SavedError) {
        self = try reader.number(upTo: 1, "a flag") == 1
    }
}

extension UInt64: SavedValue {
    package static var form: SavedForm { .number }
    package func save(to writer: inout ByteWriter) { writer.put(number: self) }
    package init(from reader: inout ByteReader) throws(SavedError) { self = try reader.number() }
}

extension Int: SavedValue {
    package static var form: SavedForm { .number }
    package func save(to writer: inout ByteWriter) { writer.put(signed: Int64(self)) }
    package init(from reader: inout ByteReader) throws(SavedError) {
        let value = try reader.signed()
        guard value.magnitude <= SavedLimits.counter else { throw reader.error("\(value) is out of bounds") }
        self = Int(value)
    }
}

extension AppIndex: SavedValue {
    package static var form: SavedForm { Int.form }
    package func save(to writer: inout ByteWriter) { number.save(to: &writer) }
    package init(from reader: inout ByteReader) throws(SavedError) { self.init(try Int(from: &reader)) }
}

extension Int32: SavedValue {
    package static var form: SavedForm { .number }
    package func save(to writer: inout ByteWriter) { writer.put(signed: Int64(self)) }
    package init(from reader: inout ByteReader) throws(SavedError) {
        let value = try reader.signed()
        guard let value = Int32(exactly: value) else { throw reader.error("\(value) does not fit into 32 bits") }
        self = value
    }
}

extension UInt32: SavedValue {
    package static var form: SavedForm { .number }
    package func save(to writer: inout ByteWriter) { writer.put(number: UInt64(self)) }
    package init(from reader: inout ByteReader) throws(SavedError) {
        self = UInt32(try reader.number(upTo: UInt64(UInt32.max), "a 32-bit number"))
    }
}

extension String: SavedValue {
    package static var form: SavedForm { .bytes }
    package func save(to writer: inout ByteWriter) { writer.put(text: self) }
    package init(from reader: inout ByteReader) throws(SavedError) {
        self = try reader.rest(upTo: SavedLimits.text, "a text")
    }
}

extension AppID: SavedValue {
    package static var form: SavedForm { .bytes }
    package func save(to writer: inout ByteWriter) { writer.put(text: name) }
    package init(from reader: inout ByteReader) throws(SavedError) {
        let name = try reader.rest(upTo: AppID.maximumLength, "an app ID")
        guard let id = AppID(name) else { throw reader.error("not an app ID") }
        self = id
    }
}

extension RunID: SavedValue {
    package static var form: SavedForm { .number }
    package func save(to writer: inout ByteWriter) { writer.put(number: number) }
    package init(from reader: inout ByteReader) throws(SavedError) {
        self.init(try reader.number(upTo: SavedLimits.counter, "run"))
    }
}

extension RequestID: SavedValue {
    package static var form: SavedForm { .number }
    package func save(to writer: inout ByteWriter) { writer.put(number: number) }
    package init(from reader: inout ByteReader) throws(SavedError) { self.init(try reader.number()) }
}

extension NotificationKinds: SavedValue {
    package static var form: SavedForm { .number }
    package func save(to writer: inout ByteWriter) { writer.put(number: UInt64(rawValue)) }
    package init(from reader: inout ByteReader) throws(SavedError) {
        self.init(rawValue: UInt16(try reader.number(upTo: 0xffff, "kinds of notifications")))
    }
}

extension BackgroundModes: SavedValue {
    package static var form: SavedForm { .number }
    package func save(to writer: inout ByteWriter) { writer.put(number: UInt64(rawValue)) }
    package init(from reader: inout ByteReader) throws(SavedError) {
        self.init(rawValue: UInt8(try reader.number(upTo: 0xff, "background modes")))
    }
}

/// Bytes of memory.
struct SavedSize: SavedValue {
    static var form: SavedForm { .number }
    var bytes: UInt64
    init(_ bytes: UInt64) { self.bytes = bytes }
    func save(to writer: inout ByteWriter) { writer.put(number: bytes) }
    init(from reader: inout ByteReader) throws(SavedError) {
        bytes = try reader.number(upTo: SavedLimits.memory, "a size")
    }
}

extension RecordCoder {
    /// A size that is mostly 0, and then takes no space.
    mutating func sparseSize(_ number: Int, _ bytes: inout UInt64) throws(Failure) {
        var size = bytes == 0 ? nil : SavedSize(bytes)
        try optional(number, &size)
        bytes = size?.bytes ?? 0
    }

    /// A record that mostly has its default values, and then takes no space.
    mutating func sparse<Value: SavedRecord & Equatable>(_ number: Int, _ value: inout Value) throws(Failure) {
        var saved = value == .blank ? nil : value
        try optional(number, &saved)
        value = saved ?? .blank
    }

    /// A number that is mostly 0, and then takes no space.
    mutating func sparse(_ number: Int, _ value: inout UInt64) throws(Failure) {
        var saved = value == 0 ? nil : value
        try optional(number, &saved)
        value = saved ?? 0
    }

    mutating func sparse(_ number: Int, _ value: inout Int) throws(Failure) {
        var saved = value == 0 ? nil : value
        try optional(number, &saved)
        value = saved ?? 0
    }

    /// A size in bytes.
    mutating func size(_ number: Int, _ bytes: inout UInt64) throws(Failure) {
        var size = SavedSize(bytes)
        try field(number, &size)
        bytes = size.bytes
    }
}

// MARK: Time

extension Duration: SavedValue {
    package static var form: SavedForm { .bytes }

    /// Seconds and nanoseconds, or attoseconds where those are not enough.
    package func save(to writer: inout ByteWriter) {
        let (seconds, attoseconds) = components
        writer.put(signed: seconds)
        let (nanoseconds, rest) = attoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        writer.put(signed: rest == 0 ? nanoseconds << 1 : attoseconds << 1 | 1)
    }

    package init(from reader: inout ByteReader) throws(SavedError) {
        let seconds = try reader.signed()
        let fraction = try reader.signed()
        let isExact = fraction & 1 == 1
        let limit = SavedLimits.seconds
        guard (-limit...limit).contains(seconds),
            abs(fraction >> 1) < (isExact ? 1_000_000_000_000_000_000 : 1_000_000_000)
        else { throw reader.error("a duration out of bounds") }
        self.init(
            secondsComponent: seconds, attosecondsComponent: isExact ? fraction >> 1 : (fraction >> 1) * 1_000_000_000)
    }
}

extension Instant: SavedValue {
    package static var form: SavedForm { .bytes }
    package func save(to writer: inout ByteWriter) { sinceOrigin.save(to: &writer) }
    package init(from reader: inout ByteReader) throws(SavedError) {
        self.init(sinceOrigin: try Duration(from: &reader))
    }
}
