import Idleness
import LifecycleCore
import Linux

/// The rests of timeouts that the kernel keeps in the memory of a frozen run (`KeptRest`), as the record of the run has them: a thaw
/// by the next daemon must correct them, too.
struct KeptRests: Hashable {
    /// The freeze at which they were found. After another one they are others.
    var attempt: Int
    var all: [KeptRest]

    /// Further ones are late after a restart of the daemon.
    static let most = 64
}

extension KeptRests: SavedRecord {
    static var blank: KeptRests { KeptRests(attempt: 0, all: []) }

    mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &attempt)
        var saved = all.prefix(Self.most).map(SavedRest.init)
        try coder.list(2, &saved, upTo: Self.most)
        all = saved.map(\.rest)
    }
}

private struct SavedRest: SavedRecord {
    var process: Int32 = 0
    var thread = 0
    var call = 0
    var arguments: [UInt64] = []
    var due = Duration.zero

    static var blank: SavedRest { SavedRest() }

    init() {}

    init(_ rest: KeptRest) {
        (process, thread, call) = (rest.process, rest.thread, rest.wait.call)
        (arguments, due) = (rest.wait.arguments, rest.wait.due ?? .zero)
    }

    var rest: KeptRest {
        KeptRest(process: process, thread: thread, wait: Wait(call: call, arguments: arguments, due: due))
    }

    mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &process)
        try coder.required(2, &thread)
        try coder.required(3, &call)
        // A system call has six.
        try coder.list(4, &arguments, upTo: 6)
        try coder.required(5, &due)
    }
}
