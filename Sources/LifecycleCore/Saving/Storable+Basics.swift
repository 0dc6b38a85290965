/// The smallest things that are saved, each with its bounds: what lies beyond them would overflow somewhere later.
enum SavedLimits {
    /// Seconds of a duration, either way: beyond what `EXTEND_TIMEOUT_USEC=` can say (2^64 µs).
    static let seconds: Int64 = 1 << 46
    /// Bytes of memory of one app; processors address 2^57 at most.
    static let memory: UInt64 = 1 << 56
    /// Counters that go up by one.
    static let counter: UInt64 = 1 << 53
    /// What an app may call a task, or a sentence of ours: a notify message has 4,096 bytes.
    static let text = 16 << 10
    static let apps = 1 << 20
    static let waiters = LifecycleCore.maximumWaiters
}

/// A case without values, saved as its place among all.
protocol StorableCase: Storable, CaseIterable, Equatable where AllCases == [Self] {}

extension StorableCase {
    package func store(in writer: inout ByteWriter) {
        let place = Self.allCases.firstIndex(of: self) ?? 0
        writer.put(byte: UInt8(truncatingIfNeeded: place))
    }

    package init(from reader: inout ByteReader) throws(SavedError) {
        let place = try reader.byte()
        guard Int(place) < Self.allCases.count else { throw reader.unknown(place, "\(Self.self)") }
        self = Self.allCases[Int(place)]
    }
}

extension AppState: StorableCase {}
extension LaunchReason: StorableCase {}
extension LaunchState: StorableCase {}
extension DeadlineKind: StorableCase {}
extension WakeResult: StorableCase {}
extension MemoryLevel: StorableCase {}
extension MemoryCause: StorableCase {}
extension Receipt.Namespace: StorableCase {}
extension Waiter.Goal: StorableCase {}
extension PendingRequest: StorableCase {}
extension AppPolicy.Readiness: StorableCase {}
extension AppPolicy.Relaunch: StorableCase {}
extension ManagerPolicy.JetsamOrder: StorableCase {}

extension Duration: Storable {
    /// Nanoseconds where they are enough.
    package func store(in writer: inout ByteWriter) {
        let (seconds, attoseconds) = components
        writer.put(signed: seconds)
        let (nanoseconds, rest) = attoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        writer.put(signed: rest == 0 ? nanoseconds << 1 : attoseconds << 1 | 1)
    }

    package init(from reader: inout ByteReader) throws(SavedError) {
        let seconds = try reader.signed()
        let fraction = try reader.signed()
        let attoseconds =
            fraction & 1 == 1
            ? fraction >> 1 : (fraction >> 1).multipliedReportingOverflow(by: 1_000_000_000).partialValue
        let limit = SavedLimits.seconds
        guard (-limit...limit).contains(seconds), abs(fraction >> 1) < 1_000_000_000_000_000_000,
            fraction & 1 == 1 || abs(fraction >> 1) < 1_000_000_000
        else { throw reader.error("a duration out of bounds") }
        self.init(secondsComponent: seconds, attosecondsComponent: attoseconds)
    }
}

extension Instant: Storable {
    package func store(in writer: inout ByteWriter) { writer.put(sinceOrigin) }
    package init(from reader: inout ByteReader) throws(SavedError) { self.init(sinceOrigin: try reader.take()) }
}

extension AppID: Storable {
    package func store(in writer: inout ByteWriter) { writer.put(text: name) }
    package init(from reader: inout ByteReader) throws(SavedError) {
        let name = try reader.text(upTo: AppID.maximumLength, "an app's name")
        guard let id = AppID(name) else { throw reader.error("no app's name") }
        self = id
    }
}

extension RunID: Storable {
    package func store(in writer: inout ByteWriter) { writer.put(number: number) }
    package init(from reader: inout ByteReader) throws(SavedError) {
        self.init(try reader.number(upTo: SavedLimits.counter, "run"))
    }
}

extension RequestID: Storable {
    package func store(in writer: inout ByteWriter) { writer.put(number: number) }
    package init(from reader: inout ByteReader) throws(SavedError) { self.init(try reader.number()) }
}

/// A size in bytes, of an app or a machine.
struct StoredSize: Storable {
    var bytes: UInt64
    init(_ bytes: UInt64) { self.bytes = bytes }
    func store(in writer: inout ByteWriter) { writer.put(number: bytes) }
    init(from reader: inout ByteReader) throws(SavedError) {
        bytes = try reader.number(upTo: SavedLimits.memory, "bytes of memory")
    }
}

/// A size that a setting gives: any.
struct StoredSetting: Storable {
    var value: UInt64
    init(_ value: UInt64) { self.value = value }
    func store(in writer: inout ByteWriter) { writer.put(number: value) }
    init(from reader: inout ByteReader) throws(SavedError) { value = try reader.number() }
}

extension ByteWriter {
    mutating func put(_ flag: Bool) { put(byte: flag ? 1 : 0) }
    mutating func put(size bytes: UInt64) { put(StoredSize(bytes)) }
    mutating func put(setting value: UInt64?) { put(value.map(StoredSetting.init)) }
    mutating func put(counter value: Int) { put(number: UInt64(max(0, value))) }
    mutating func put(pid: Int32?) { put(signed: Int64(pid ?? -1)) }
}

extension ByteReader {
    mutating func size() throws(SavedError) -> UInt64 {
        let size: StoredSize = try take()
        return size.bytes
    }
    mutating func setting() throws(SavedError) -> UInt64? {
        let value: StoredSetting? = try optional()
        return value?.value
    }
    mutating func counter(_ what: String) throws(SavedError) -> Int {
        Int(try number(upTo: SavedLimits.counter, what))
    }
    mutating func int32(_ what: String) throws(SavedError) -> Int32 {
        guard let value = Int32(exactly: try signed()) else { throw error("\(what) does not fit into 32 bits") }
        return value
    }
    mutating func pid() throws(SavedError) -> Int32? {
        let pid = try int32("a pid")
        return pid < 0 ? nil : pid
    }
}
