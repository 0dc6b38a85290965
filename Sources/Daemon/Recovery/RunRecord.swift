import LifecycleCore
import Linux

/// What is recorded of a run beside the state of the core: how its processes are found again, and what it has still to
/// be notified of.
struct RunRecord: Hashable {
    var app: AppID
    /// The main process; `nil`: it is about to be started.
    var pid: Int32?
    /// When the main process started, in clock ticks since boot. A pid and a start time identify one process.
    var startTime: UInt64 = 0
    /// `GREENROOM_RUN=…`: identifies the app's processes in process-group mode.
    var marker: String?
    var owner: Owner?
    /// `STATUS=`
    var statusText: String?
    /// `ERRNO=`
    var errno: Int32?
    var notices = NoticeQueue()

    init(app: AppID) { self.app = app }

    init(_ run: RunController) {
        app = run.app
        pid = run.mainPID
        startTime = run.startTime
        marker = run.enclosure.environmentMarker
        owner = run.owner
        statusText = run.statusText
        errno = run.errno
        notices = run.transport.queue
    }

    static func == (a: Self, b: Self) -> Bool { a.bytes == b.bytes }
    func hash(into hasher: inout Hasher) { hasher.combine(bytes) }

    private static let prefix = "run/"
    static func name(_ run: RunID) -> String { prefix + "\(run)" }

    /// The run that a record of this name belongs to; `nil`: it is a record of another kind.
    static func run(named name: String) -> RunID? {
        name.hasPrefix(prefix) ? UInt64(name.dropFirst(prefix.count)).map(RunID.init) : nil
    }

    /// The longest text in bytes. What an app says about itself fits into a datagram of 4096 bytes.
    private static let longest = 8192

    var bytes: [UInt8] {
        var writer = ByteWriter()
        writer.put(app)
        writer.put(signed: Int64(pid ?? -1))
        writer.put(number: startTime)
        for text in [marker, statusText] {
            writer.put(byte: text == nil ? 0 : 1)
            if let text { writer.put(text: text) }
        }
        writer.put(byte: owner == nil ? 0 : 1)
        if let owner {
            writer.put(number: UInt64(owner.uid))
            writer.put(number: UInt64(owner.gid))
        }
        writer.put(signed: errno.map { Int64($0) } ?? -1)
        writer.put(number: notices.lastEffect.event)
        writer.put(number: UInt64(notices.lastEffect.index))
        writer.put(byte: notices.isSending ? 1 : 0)
        writer.put(number: UInt64(notices.waiting.count))
        for notice in notices.waiting { writer.put(notice) }
        return writer.bytes
    }

    init(reading bytes: [UInt8]) throws(SavedError) {
        var reader = ByteReader(bytes)
        app = try reader.take()
        let number = try reader.signed()
        pid = number < 0 ? nil : Int32(truncatingIfNeeded: number)
        startTime = try reader.number()
        marker = try reader.flag() ? try reader.text(upTo: Self.longest, "a marker") : nil
        statusText = try reader.flag() ? try reader.text(upTo: Self.longest, "a status") : nil
        if try reader.flag() {
            let uid = try reader.number(upTo: UInt64(UInt32.max), "a user")
            owner = Owner(uid: UInt32(uid), gid: UInt32(try reader.number(upTo: UInt64(UInt32.max), "a group")))
        }
        let number2 = try reader.signed()
        errno = number2 < 0 ? nil : Int32(truncatingIfNeeded: number2)
        let event = try reader.number()
        let effect = EffectID(event: event, index: Int(try reader.number(upTo: 1 << 24, "an effect")))
        let isSending = try reader.flag()
        var waiting: [Notice] = []
        // One more than wait: it is recorded before all are sent.
        let count = try reader.number(upTo: UInt64(NoticeQueue.capacity + 1), "notices")
        for _ in 0..<count { waiting.append(try reader.take()) }
        notices = NoticeQueue(waiting: waiting, isSending: isSending, lastEffect: effect)
        try reader.end()
    }
}
