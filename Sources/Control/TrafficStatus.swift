/// Why an app is awake (L51).
package struct AwakeStatus: Record {
    /// The most reasons of a status: an app can have 1000 tasks open, which its status lists too.
    package static let maximum = 8

    /// One word: `task`, `wake`, `request`, `suspendDelay` …
    package var reason = ""
    /// The name of a task, the reason of a wake, or the file of a lock.
    package var detail: String?
    /// The same for people.
    package var explanation = ""
    /// Since when, where it is known.
    package var since: Timestamp?

    package init() {}

    package static let fields: [RecordField<AwakeStatus>] = [
        .required("reason", \.reason), .optional("detail", \.detail), .required("explanation", \.explanation),
        .optional("since", \.since),
    ]
}

/// Why an app gets less of the processor (L44).
package struct ThrottleStatus: Record {
    /// For people.
    package var explanation = ""
    package var since: Timestamp?

    package init() {}

    package static let fields: [RecordField<ThrottleStatus>] = [
        .required("explanation", \.explanation), .optional("since", \.since),
    ]
}

/// Input that woke a suspended app (L50).
package struct InputStatus: Record {
    /// `listener`, `stream`, `datagram`, `pipe`, `terminal`, `timer`, `event` or `epoll`.
    package var kind = ""
    /// The other end: `192.0.2.7:50123`, `/run/app.sock`; absent where it is not known. Of a socket that the daemon holds: the
    /// address of the socket.
    package var peer: String?
    /// How many bytes could be read; 0 where there were none, or the kernel does not say.
    package var bytes: UInt64 = 0
    /// The process that has the descriptor; absent for a socket that the daemon holds (L29).
    package var pid: Int32?
    /// Its number in that process, or in the app that is launched for the socket.
    package var descriptor: Int32 = 0
    /// Whether nothing but the end of the stream arrived; absent where it did not.
    package var isEnd: Bool?
    /// Whether the buffer of a peer on this machine was more than half full; absent where it was not.
    package var isHalfFull: Bool?
    /// Whether the app itself has sent it; absent where it has not, or that is not known.
    package var isOwn: Bool?
    /// When it arrived. Absent in a `LifecycleEvent`, which has its own time.
    package var at: Timestamp?

    package init() {}

    package static let fields: [RecordField<InputStatus>] = [
        .required("kind", \.kind), .optional("peer", \.peer), .required("bytes", \.bytes), .process("pid", \.pid),
        .required("descriptor", \.descriptor), .optional("end", \.isEnd), .optional("halfFull", \.isHalfFull),
        .optional("own", \.isOwn), .optional("at", \.at),
    ]
}

extension InputStatus {
    /// What arrived, in a sentence: `a connection from 192.0.2.7:50123 (descriptor 5 of process 4711)`, `a connection at
    /// 127.0.0.1:8080`.
    package var phrase: String {
        if pid == nil, let peer {
            return "\(subject) at \(peer)" + (bytes > 0 ? " (\(formattedSize(bytes)))" : "")
        }
        if descriptor < 0 { return "the signal of a timer" }
        var details = ["descriptor \(descriptor)" + (pid.map { " of process \($0)" } ?? "")]
        if bytes > 0 { details.append(formattedSize(bytes)) }
        if isHalfFull == true { details.append("buffer more than half full") }
        if isOwn == true { details.append("sent by the app itself") }
        return subject + (peer.map { " from \($0)" } ?? "") + " (\(details.joined(separator: ", ")))"
    }

    private var subject: String {
        if isEnd == true { return "the end of a stream" }
        return switch kind {
        case "listener": "a connection"
        case "stream": "data on a connection"
        case "datagram": "a datagram"
        case "pipe": "data in a pipe"
        case "terminal": "input at a terminal"
        case "timer": "a timer descriptor"
        case "event": "an event descriptor"
        case "epoll": "an epoll descriptor"
        default: kind
        }
    }
}

/// What is watched of a suspended app, and what is not (L50).
package struct WatchStatus: Record {
    /// How many descriptors are watched.
    package var watched: UInt64 = 0
    package var unwatched: [UnwatchedStatus] = []
    /// Whether input wakes the app only if the buffer of a peer on this machine is more than half full (`Traffic=no`); absent
    /// where all input does.
    package var onlyPeers: Bool?
    /// How many bytes at one descriptor wake the app; absent where each does.
    package var thresholdBytes: UInt64?
    /// After this time less wakes it, too; absent where it does not.
    package var thresholdTime: Duration?

    package init() {}

    package static let fields: [RecordField<WatchStatus>] = [
        .required("watched", \.watched), .list("unwatched", \.unwatched), .optional("onlyPeers", \.onlyPeers),
        .optional("thresholdBytes", \.thresholdBytes), .optional("thresholdSeconds", \.thresholdTime),
    ]
}

/// Descriptors at which input does not wake the app.
package struct UnwatchedStatus: Record {
    /// `socket`, `signalfd`, `io_uring`, …
    package var what = ""
    /// `notPermitted`, `notSupported`, `tooMany` or `failed`.
    package var problem = ""
    package var count: UInt64 = 0

    package init() {}

    package static let fields: [RecordField<UnwatchedStatus>] = [
        .required("what", \.what), .required("problem", \.problem), .required("count", \.count),
    ]
}

extension UnwatchedStatus {
    /// `cannot watch 1 socket: operation not permitted`, `cannot watch the descriptors of 1 thread: the system refused it`.
    package var phrase: String {
        let plural = count == 1 ? "" : what.hasSuffix("s") ? "es" : "s"
        if what == "process" || what == "thread" {
            return "cannot watch the descriptors of \(count) \(what)\(plural): \(reason)"
        }
        return "cannot watch \(count) \(what)\(plural): \(reason)"
    }

    private var reason: String {
        switch problem {
        case "notPermitted": "operation not permitted"
        case "notSupported": "input at this kind of descriptor cannot be seen"
        case "tooMany": "too many descriptors"
        case "failed": "the system refused it"
        default: problem
        }
    }
}

/// A wake of a suspended app that waits (L53).
package struct DeferredWakeStatus: Record {
    /// Why it waits: `backgroundTimeUsedUp`.
    package var reason = ""
    /// The same for people.
    package var explanation = ""
    /// What wakes the app then; absent for a request that the app has sent to itself and read.
    package var input: InputStatus?
    /// For how long it waits.
    package var remaining = Duration.zero

    package init() {}

    package static let fields: [RecordField<DeferredWakeStatus>] = [
        .required("reason", \.reason), .required("explanation", \.explanation), .optional("input", \.input),
        .required("remainingSeconds", \.remaining),
    ]
}

/// File locks that an app holds while it is suspended (L43).
package struct LockStatus: Record {
    package var count: UInt64 = 0
    /// One of the files.
    package var file = ""
    /// `Releases=` names it.
    package var isResource: Bool?

    package init() {}

    package static let fields: [RecordField<LockStatus>] = [
        .required("count", \.count), .required("file", \.file), .optional("resource", \.isResource),
    ]
}

extension LockStatus {
    /// `it holds a lock on /var/lib/db: other programs may wait for it`.
    package var phrase: String {
        if isResource ?? false {
            let more = count > 1 ? " and \(count - 1) more" : ""
            return "it holds \(file)\(more) (Releases=): other programs may wait for it"
        }
        let locks = count == 1 ? "a lock on \(file)" : "\(count) file locks, one on \(file)"
        return "it holds \(locks): other programs may wait for it"
    }
}
