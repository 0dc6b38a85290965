import LifecycleCore
import Linux
import Posix
import Systemd

/// The record of a run beside the state of the core: how its processes are found again, and which notices it has yet
/// to receive.
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
    /// The name of the inbox, if it is not the app's.
    var inbox: String?
    /// Where the output of the run begins in the file of the app (`OutputFiles`); `nil`: it goes elsewhere.
    var outputStart: UInt64?
    /// The hook that runs.
    var hook: HookRecord?
    /// Of a frozen run: what is left of timeouts, which the daemon corrects before the thaw.
    var rests: KeptRests?
    /// Of a command of `greenroomctl run`.
    var relay: RelayRecord?

    init(app: AppID) { self.app = app }

    init(_ run: RunController) {
        app = run.app
        pid = run.mainPID
        startTime = run.startTime
        marker = run.enclosure.environmentMarker
        owner = run.owner
        statusText = run.reports.statusText
        errno = run.reports.errno
        notices = run.transport.queue
        inbox = run.inbox.name == run.app.name ? nil : run.inbox.name
        hook = run.hook?.record
        outputStart = run.context.storage.output.start(of: run.id)
        rests = run.context.background.work.keptRests(of: run.id)
        relay = run.relay?.record
    }

    static func == (a: Self, b: Self) -> Bool { a.bytes == b.bytes }
    func hash(into hasher: inout Hasher) { hasher.combine(bytes) }

    private static let prefix = "run/"
    static func name(_ run: RunID) -> String { prefix + "\(run)" }

    /// The run that a record of this name belongs to; `nil`: it is a record of another kind.
    static func run(named name: String) -> RunID? {
        name.hasPrefix(prefix) ? UInt64(name.dropFirst(prefix.count)).map(RunID.init) : nil
    }

    var bytes: [UInt8] { savedBytes }
}

extension RunRecord: SavedRecord {
    static var blank: RunRecord { RunRecord(app: .blank) }

    mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &app)
        try coder.optional(2, &pid)
        try coder.field(3, &startTime)
        try coder.optional(4, &marker)
        var (uid, gid) = (owner?.uid, owner?.gid)
        try coder.optional(5, &uid)
        try coder.optional(6, &gid)
        if let uid, let gid { owner = Owner(uid: uid, gid: gid) }
        var status = statusText.map(SavedStatus.init)
        try coder.optional(7, &status)
        statusText = status?.text
        try coder.optional(8, &errno)
        try coder.field(9, &notices)
        try coder.optional(10, &inbox)
        try coder.optional(11, &outputStart)
        try coder.optional(12, &rests)
        try coder.optional(13, &hook)
        try coder.optional(50, &relay)
    }
}

/// A command of a hook that runs.
struct HookRecord: Hashable {
    /// The number of the hook.
    var number: Int
    /// The position of the command.
    var position: Int
    var pid: Int32
    /// In clock ticks since boot.
    var startTime: UInt64
}

extension HookRecord: SavedRecord {
    static var blank: HookRecord { HookRecord(number: 0, position: 0, pid: 0, startTime: 0) }

    mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &number)
        try coder.field(2, &position)
        try coder.required(3, &pid)
        try coder.required(4, &startTime)
    }

    var fault: String? { position >= 0 ? nil : "command \(position)" }
}

/// The relay of a command of `greenroomctl run`.
struct RelayRecord: Hashable {
    var pid: Int32
    /// In clock ticks since boot.
    var startTime: UInt64
    /// Whether it has a terminal.
    var hasTerminal = false
    /// `nil`: it is not known.
    var client: RunClientRecord?
}

extension RelayRecord: SavedRecord {
    static var blank: RelayRecord { RelayRecord(pid: 0, startTime: 0) }

    mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &pid)
        try coder.required(2, &startTime)
        try coder.flag(3, &hasTerminal)
        try coder.optional(4, &client)
    }
}

/// The process that started `greenroomctl run`: an MCP client, an editor, a shell. It is only shown, so it is not checked again: it may
/// have ended since, and another process may have its pid.
struct RunClientRecord: Hashable {
    var pid: Int32
    /// `comm`, printable.
    var name: String
    /// The name of its program's file, without the folder, printable; `nil`: the daemon may not read it.
    var program: String?

    /// The longest name of a program that is kept, in bytes. The kernel's limit of `comm` is 15, and that of a file's name 255.
    private static let longestName = 64

    /// The parent of a process; `nil`: it is not visible here.
    init?(startedBy process: ProcessStat, in procFS: ProcFS = ProcFS()) {
        guard process.parent > 0, let parent = (try? procFS.stat(of: process.parent)) ?? nil else { return nil }
        self.init(
            pid: parent.pid, name: parent.comm.printable(upTo: Self.longestName),
            program: procFS.programName(of: parent.pid)?.printable(upTo: Self.longestName))
    }

    init(pid: Int32, name: String, program: String?) {
        self.pid = pid
        self.name = name
        self.program = program
    }
}

extension RunClientRecord: SavedRecord {
    static var blank: RunClientRecord { RunClientRecord(pid: 0, name: "", program: nil) }

    mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &pid)
        try coder.field(2, &name)
        try coder.optional(3, &program)
    }
}

/// The status text of an app. It is only shown, so a text that is too long or not UTF-8 is cut off and repaired: the record
/// is read nevertheless.
private struct SavedStatus: SavedValue {
    static var form: SavedForm { .bytes }
    var text: String

    /// - Parameter text: of a notify message: it is printable, and not too long.
    init(_ text: String) { self.text = text }

    func save(to writer: inout ByteWriter) { writer.put(text: text) }

    init(from reader: inout ByteReader) throws(SavedError) {
        let bytes = try reader.bytes(reader.left)
        let text = String(decoding: bytes.prefix(NotifyDatagram.maximumStatus + 1), as: UTF8.self)
        self.init(text.printable(upTo: NotifyDatagram.maximumStatus))
    }
}

extension NoticeQueue: SavedRecord {
    static var blank: NoticeQueue { NoticeQueue() }

    mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        var saved = waiting.map { SavedNotice(notice: $0) }
        // One more than the capacity: the queue is recorded before all are sent.
        try coder.list(1, &saved, upTo: Self.capacity + 1)
        var isSending = isSending
        try coder.flag(2, &isSending)
        var effect = lastEffect
        try coder.field(3, &effect.event)
        try coder.field(4, &effect.index)
        // A notice that only a newer version knows cannot be sent.
        let isFirstKnown = saved.first?.notice != nil
        self = NoticeQueue(
            waiting: saved.compactMap(\.notice), isSending: isSending && isFirstKnown, lastEffect: effect)
    }
}

/// A notice in a list; `nil`: this version does not know it.
private struct SavedNotice: SavedRecord {
    var notice: Notice?
    static var blank: SavedNotice { SavedNotice() }
    mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.optional(1, &notice)
    }
}
