import LifecycleCore
import Linux
import Posix

/// What is kept of a run beside what the core knows: by what its processes are found again.
struct RunNote: Hashable {
    var app: AppID
    /// The main process. `nil`: it is about to be made.
    var pid: Int32?
    /// In clock ticks since boot: with the pid it tells one process from all others.
    var startTime: UInt64 = 0
    /// By which process-group mode knows the app's processes.
    var marker: String?
    var owner: Owner?
    var statusText: String?
    var errno: Int32?
    /// What it is still to be told.
    var notices: [Notice] = []

    init(app: AppID) { self.app = app }

    static func == (a: Self, b: Self) -> Bool { a.bytes == b.bytes }
    func hash(into hasher: inout Hasher) { hasher.combine(bytes) }

    static func name(_ run: RunID) -> String { "run/\(run)" }

    /// The longest of its texts; what an app says of itself fits into a datagram.
    private static let longest = 8192
    private static let mostNotices = UInt64(EffectPerformer.mostWaiting)

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
        writer.put(number: UInt64(notices.count))
        for notice in notices { writer.put(notice) }
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
        for _ in 0..<(try reader.number(upTo: Self.mostNotices, "notices")) { notices.append(try reader.take()) }
        try reader.end()
    }
}

extension AppRun {
    var note: RunNote {
        var note = RunNote(app: app)
        note.pid = mainPID
        note.startTime = startTime
        note.marker = enclosure.environmentMarker
        note.owner = owner
        note.statusText = statusText
        note.errno = errno
        note.notices = notices
        return note
    }
}
