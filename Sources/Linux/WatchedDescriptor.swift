import CLinux
import Glibc
import Posix

/// What kind of descriptor input arrives at.
package enum WatchedKind: Equatable, Sendable {
    /// A socket that listens.
    case listener
    /// A connected stream or seqpacket socket.
    case stream
    case datagram
    /// A pipe or FIFO.
    case pipe
    case terminal
    /// timerfd_create(2)
    case timer
    /// eventfd(2), inotify(7), a message queue, a pidfd, a device.
    case event
    /// An epoll descriptor of the app.
    case epoll
}

/// A duplicate of an app's descriptor.
struct WatchedDescriptor {
    /// A descriptor of a process of the app.
    struct Holder: Equatable {
        /// The position in the list of processes.
        let process: Int
        let number: Int32
    }

    /// What becomes of a descriptor.
    enum Verdict {
        case watched(WatchedDescriptor)
        /// Nothing can arrive there. `mayBlock`: its close(2) may.
        case ignored(mayBlock: Bool)
        case refused(DescriptorWatch.Problem)

        static var nothing: Verdict { .ignored(mayBlock: false) }

        var isListener: Bool {
            guard case .watched(let duplicate) = self else { return false }
            return duplicate.kind == .listener
        }
    }

    /// The duplicate; -1: it is closed.
    var number: Int32
    let kind: WatchedKind
    var events: EpollEvents = [.readable, .edge]
    /// AF_UNIX and so on; 0: not a socket.
    var domain: Int32 = 0
    var isTCP = false
    /// A message counts, and not its bytes: the kernel limits how many wait (net.unix.max_dgram_qlen).
    var countsMessages = false
    /// A device or a socket of a rare kind: what its last close(2) does is not known.
    var isRare = false
    /// What is asked of it takes no lock that a process can hold.
    var isLockFree: Bool { domain == 0 || domain == AF_UNIX || domain == AF_NETLINK }
    /// AF_UNIX, where a request of another process can delay the kernel's answers about its queues.
    var isAskedElsewhere: Bool { domain == AF_UNIX && DiagnosticSocket.isSerialized }
    /// SO_LINGER: the last close(2) can take as long as the app likes.
    var lingers = false
    /// Of a socket, or of a pipe without a name; otherwise 0.
    var inode: UInt64 = 0
    /// A pipe of which one process of the app has both ends (OwnPipes.swift).
    var isOwnPipe = false
    /// The app waits until it can write.
    var isBlocked = false
    /// The end of the stream had arrived before the watch began.
    var hadEnd = false
    /// An event descriptor that was readable before, and at the freeze before. That is no input.
    var wasLeft = false
    /// Nothing will arrive from another program.
    var isSilent = false
    /// Input waited when it was duplicated.
    var hadInput = false
    /// The app has sent that input to itself, and it was not reported yet.
    var isOwn = false

    /// Where the app has it; the first one that has not ended.
    private(set) var first: Holder
    private var others: [Holder] = []

    // MARK: What has happened

    /// When it was looked at last.
    var lastLook: Duration?
    /// How many bytes were found then.
    var lastBytes: UInt64 = 0
    /// The events about which the helper thread is asked.
    var question: EpollEvents?
    /// More has arrived meanwhile. It is not in the set.
    var isAskedAgain = false

    init(_ number: Int32, _ kind: WatchedKind, _ holder: Holder) {
        self.number = number
        self.kind = kind
        first = holder
    }

    mutating func add(_ holder: Holder) {
        others.append(holder)
    }

    /// The app can write again.
    mutating func endBlock() {
        isBlocked = false
        events.remove(.writable)
    }

    /// The process has ended.
    /// - Returns: whether no other process holds it.
    mutating func remove(holdersIn process: Int) -> Bool {
        others.removeAll { $0.process == process }
        guard first.process == process else { return false }
        if others.isEmpty { return true }
        first = others.removeFirst()
        return false
    }

    /// The app, or a process that shares the socket, can set the option at any time.
    var lingersNow: Bool { domain != 0 && clinux_lingers(number) }

    /// Whether close(2) may block although a process of the app holds it: that process could be killed at this moment. A
    /// socket that lingers waits for its peer. When an AF_UNIX socket is closed, so are descriptors in its messages.
    var mayBlock: Bool {
        lingersNow || domain == AF_UNIX && hasMessages && clinux_waiting_descriptors(number) != 0
    }

    /// Only then are there descriptors in messages: to ask for these reads a file.
    private var hasMessages: Bool { clinux_poll_now(number, EpollEvents.readable.rawValue) != 0 }

    /// Whether the last close(2) of the file, after the end of its processes, does not block.
    var closesAtOnce: Bool {
        switch kind {
        case .listener, .stream, .datagram:
            !isRare && !lingersNow && (domain != AF_UNIX || clinux_waiting_descriptors(number) == 0)
        case .timer: true
        // A pipe has a lock that a writer holds while it copies. A terminal drains its output, and inotify waits for other
        // processors.
        case .pipe, .terminal, .event, .epoll: false
        }
    }
}

// MARK: - Which descriptors are watched, and for what

extension DescriptorWatch {
    func judge(
        _ number: Int32, _ item: ListedDescriptor, _ holder: WatchedDescriptor.Holder
    ) -> WatchedDescriptor.Verdict {
        switch item.kind {
        case .socket: return judgeSocket(number, item, holder)
        case .pipe: return judgePipe(number, item, holder)
        case .terminal:
            var duplicate = WatchedDescriptor(number, .terminal, holder)
            let now = EpollEvents(rawValue: clinux_poll_now(number, EpollEvents.readable.rawValue))
            duplicate.hadEnd = !now.isDisjoint(with: .ends)
            duplicate.isSilent = duplicate.hadEnd || !item.canRead
            return .watched(duplicate)
        case .timerfd: return .watched(WatchedDescriptor(number, .timer, holder))
        case .eventfd:
            var duplicate = WatchedDescriptor(number, .event, holder)
            recallEvent(&duplicate)
            duplicate.isSilent = true
            return .watched(duplicate)
        case .inotify, .pidfd, .device: return .watched(WatchedDescriptor(number, .event, holder))
        case .epoll: return .watched(WatchedDescriptor(number, .epoll, holder))
        case .maybeQueue:
            // close(2) of a file asks its file system, which may be one in user space.
            guard clinux_is_message_queue(number) else { return .ignored(mayBlock: true) }
            return .watched(WatchedDescriptor(number, .event, holder))
        case .unknown:
            // One that is ready before anything has arrived may always be.
            let events: EpollEvents = [.readable, .priority]
            guard clinux_poll_now(number, events.rawValue) == 0 else { return .refused(.notSupported) }
            return .watched(WatchedDescriptor(number, .event, holder))
        case .ignored, .signalfd, .ioUring, .notPermitted: return .nothing
        }
    }

    private func judgeSocket(
        _ number: Int32, _ item: ListedDescriptor, _ holder: WatchedDescriptor.Holder
    ) -> WatchedDescriptor.Verdict {
        var about = clinux_socket()
        guard clinux_describe_socket(number, &about) == 0 else { return .refused(.failed) }
        let isMessages = about.type != Int32(SOCK_STREAM.rawValue)
        let isSequenced = about.type == Int32(SOCK_SEQPACKET.rawValue)
        let kind: WatchedKind = about.listens ? .listener : isMessages && !isSequenced ? .datagram : .stream
        let isInternet = about.domain == AF_INET || about.domain == AF_INET6
        var duplicate = WatchedDescriptor(number, kind, holder)
        duplicate.domain = about.domain
        duplicate.inode = item.inode
        duplicate.isTCP = isInternet && !isMessages
        duplicate.countsMessages = about.domain == AF_UNIX && isMessages
        duplicate.isRare = !isInternet && about.domain != AF_UNIX
        // A socket that listens does not linger, but those that it accepts inherit the option.
        duplicate.lingers = about.lingers && !about.listens
        // Whether the peer is on this machine is found when something arrives: getpeername(2) can block.
        if onlyPeers, !duplicate.isTCP, duplicate.domain != AF_UNIX {
            return .ignored(mayBlock: duplicate.lingers)
        }
        if kind == .listener {
            let now = EpollEvents(rawValue: clinux_poll_now(number, EpollEvents.readable.rawValue))
            duplicate.hadInput = now.contains(.readable)
            return .watched(duplicate)
        }
        duplicate.events.formUnion([.readHangUp, .priority])
        let asked: EpollEvents = [.readable, .writable, .readHangUp]
        let now = EpollEvents(rawValue: clinux_poll_now(number, asked.rawValue))
        duplicate.hadEnd = !now.isDisjoint(with: .ends)
        recallEnd(&duplicate)
        duplicate.hadInput = now.contains(.readable)
        if !onlyPeers, !now.contains(.writable) {
            // The app finds space again, or its connection is established.
            duplicate.isBlocked = true
            duplicate.events.insert(.writable)
        }
        // A connection to the journal is shut down in this direction.
        duplicate.isSilent = duplicate.hadEnd && !duplicate.isBlocked
        return .watched(duplicate)
    }

    private func judgePipe(
        _ number: Int32, _ item: ListedDescriptor, _ holder: WatchedDescriptor.Holder
    ) -> WatchedDescriptor.Verdict {
        var duplicate = WatchedDescriptor(number, .pipe, holder)
        // A named one is there for other programs.
        if item.device == 0 { duplicate.inode = item.inode }
        let asked: EpollEvents = [.readable, .writable]
        let now = EpollEvents(rawValue: clinux_poll_now(number, asked.rawValue))
        let isFull = item.canWrite && !now.contains(.writable) && now.isDisjoint(with: .ends)
        if !item.canRead {
            guard isFull, !onlyPeers else { return .nothing }
            duplicate.events = [.edge]
        } else if item.device == 0, ownPipes.contains(item.inode) {
            recall(&duplicate)
        }
        duplicate.hadEnd = !now.isDisjoint(with: .ends)
        recallEnd(&duplicate)
        duplicate.hadInput = item.canRead && now.contains(.readable)
        if isFull, !onlyPeers {
            duplicate.isBlocked = true
            duplicate.events.insert(.writable)
        }
        let isOwn = item.device == 0 && writtenPipes.contains(item.inode)
        duplicate.isSilent = (isOwn || duplicate.hadEnd) && !duplicate.isBlocked
        return .watched(duplicate)
    }

    /// Whether an end that has arrived is new. Once it was there at a freeze, the program has left it.
    private func recallEnd(_ duplicate: inout WatchedDescriptor) {
        guard wakesOnEnds, duplicate.hadEnd, duplicate.inode != 0 else { return }
        recordEnd(of: duplicate)
        duplicate.hadEnd = leftBefore.ends.contains(duplicate.inode)
    }
}
