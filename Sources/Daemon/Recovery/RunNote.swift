import LifecycleCore
import Linux

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

    var bytes: [UInt8] { savedBytes }
}

extension RunNote: SavedRecord {
    static var blank: RunNote { RunNote(app: .blank) }

    mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &app)
        try coder.optional(2, &pid)
        try coder.field(3, &startTime)
        try coder.optional(4, &marker)
        var (uid, gid) = (owner?.uid, owner?.gid)
        try coder.optional(5, &uid)
        try coder.optional(6, &gid)
        if let uid, let gid { owner = Owner(uid: uid, gid: gid) }
        try coder.optional(7, &statusText)
        try coder.optional(8, &errno)
        try coder.list(9, &notices, upTo: EffectPerformer.mostWaiting + 1)
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
