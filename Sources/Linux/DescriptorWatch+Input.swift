import CLinux
import Glibc
package import Posix

/// Input that arrived at a descriptor of a frozen app.
package struct ArrivedInput: Equatable {
    /// The most bytes of `peer`.
    package static let maximumPeer = 128

    package var kind: WatchedKind
    /// A process that has the descriptor, and its number there.
    package var pid: Int32
    package var descriptor: Int32
    /// How many bytes can be read: all of a stream, of datagrams the first; 0: none, not known, or any number is enough.
    package var bytes: UInt64 = 0
    /// `192.0.2.7:50123`, `/run/app.sock`, `PID 4711 (curl)`; empty: not known.
    package var peer = ""
    /// The end of the stream, after `bytes`.
    package var isEnd = false
    /// The peer is on this machine, and the buffer towards the app is more than half full.
    package var isHalfFull = false
    /// The app has sent it to itself, before it was frozen. `false`: it comes from outside, or that is not known.
    package var isOwn = false
}

extension DescriptorWatch {
    /// How often input at one descriptor is looked at.
    package static let interval = Duration.milliseconds(100)

    /// What a ready descriptor shows.
    package enum Look {
        case input(ArrivedInput)
        /// Nothing that is new.
        case nothing
        /// A helper thread finds out. `answers` follows.
        case asked
        /// It was looked at just now. Nothing more is reported of it until `watchAgain`, due after `interval`.
        case rests
    }

    /// Looks at a descriptor that is ready.
    /// - Parameter now: the time of CLOCK_MONOTONIC.
    package func look(_ ready: Epoll.Ready, now: Duration) -> Look {
        let index = Int(clamping: ready.data)
        // Its process may have ended in this turn.
        guard duplicates.indices.contains(index), duplicates[index].number >= 0 else { return .nothing }
        if let last = duplicates[index].lastLook, now - last < Self.interval {
            // Without it in the set even a flood costs nothing.
            removeFromSet(index)
            return .rests
        }
        // The answer adds it to the set again.
        if duplicates[index].question != nil {
            duplicates[index].isAskedAgain = true
            removeFromSet(index)
            return .nothing
        }
        duplicates[index].lastLook = now
        return find(ready.events, at: index)
    }

    /// Continues to watch a descriptor that rested. What arrived meanwhile is found at once.
    /// - Returns: false if the system has no memory for it now.
    package func watchAgain(_ ready: Epoll.Ready) -> Bool {
        let index = Int(clamping: ready.data)
        guard !isClosed, duplicates.indices.contains(index), duplicates[index].number >= 0 else { return true }
        return addToSet(index)
    }

    private func find(_ events: EpollEvents, at index: Int) -> Look {
        let duplicate = duplicates[index]
        let needsAnswer =
            switch duplicate.kind {
            // Any number of bytes is enough, unless the app may have left them there.
            case .pipe:
                events.contains(.readable) && (onlyPeers || fullnessMattersBelow > 1 || duplicate.isOwnPipe)
            // An event that is not about input needs the address of the peer nevertheless.
            case .stream, .datagram:
                !duplicate.isLockFree || duplicate.isAskedElsewhere && (onlyPeers || fullnessMattersBelow > 1)
            case .listener: onlyPeers && (!duplicate.isLockFree || duplicate.isAskedElsewhere)
            case .terminal, .timer, .event, .epoll: false
            }
        if needsAnswer, let found = describe(duplicate, events) { return report(events, found, at: index) }
        if needsAnswer { return ask(events, at: index) ? .asked : restForAnswer(index) }
        var found = Found()
        switch duplicate.kind {
        case .stream, .datagram:
            if events.contains(.readable) { found.bytes = UInt64(clamping: clinux_readable_bytes(duplicate.number)) }
            found.isLocal = true
            found.peer = unixPeer(of: duplicate)
        case .pipe: (found.isLocal, found.isCounted) = (true, false)
        case .listener, .terminal, .timer, .event, .epoll: found.isLocal = true
        }
        // A connection that waits counts as more than any number of bytes.
        if onlyPeers || duplicate.kind != .listener && found.bytes < fullnessMattersBelow {
            found.isHalfFull = isHalfFull(duplicate, found.bytes)
        }
        return report(events, found, at: index)
    }

    /// What waits at a TCP connection, where that is known without its lock and enough to wake the app.
    private func describe(_ duplicate: WatchedDescriptor, _ events: EpollEvents) -> Found? {
        guard duplicate.kind == .stream, !onlyPeers, events.contains(.readable), events.isDisjoint(with: .ends),
            let known = describe(duplicate.inode), known.bytes >= fullnessMattersBelow
        else { return nil }
        return Found(bytes: known.bytes, peer: known.peer.printable(upTo: ArrivedInput.maximumPeer))
    }

    /// The queue of the helper thread is full.
    private func restForAnswer(_ index: Int) -> Look {
        removeFromSet(index)
        return .rests
    }

    /// What was found at a descriptor that is ready.
    struct Found {
        var bytes: UInt64 = 0
        /// `bytes` was asked for.
        var isCounted = true
        var isHalfFull = false
        var isLocal = false
        var peer = ""
    }

    func report(_ events: EpollEvents, _ found: Found, at index: Int) -> Look {
        let duplicate = duplicates[index]
        var input = ArrivedInput(
            kind: duplicate.kind, pid: processes[duplicate.first.process].pid, descriptor: duplicate.first.number)
        let isWritable = duplicate.isBlocked && events.contains(.writable)
        // It is not counted (tcp(7)).
        let isUrgent = duplicate.isTCP && events.contains(.priority)
        if duplicate.wasLeft {
            duplicates[index].wasLeft = false
            return .nothing
        }
        switch duplicate.kind {
        case .listener, .timer, .event, .epoll: break
        case .terminal: input.isEnd = events.contains(.hangUp)
        case .stream, .datagram, .pipe:
            // At the write end of a pipe the kernel counts what its reader has not read.
            if events.contains(.readable) { input.bytes = found.bytes }
            // A datagram may be empty. Of a pipe that was not asked the number is not known.
            let isUnknown =
                events.contains(.readable) && input.bytes == 0 && (duplicate.kind == .datagram || !found.isCounted)
            // An error does not end the datagrams that wait.
            let mayEnd = duplicate.kind != .datagram || input.bytes == 0
            input.isEnd = mayEnd && !isUnknown && !isWritable && !events.isDisjoint(with: .ends)
            if input.isEnd, duplicate.hadEnd { input.isEnd = false }
            if !isWritable, !isUnknown, !isUrgent, !input.isEnd,
                duplicate.countsBytes || !events.isDisjoint(with: .ends)
            {
                if input.bytes == 0 || duplicate.countsBytes && input.bytes == duplicate.lastBytes { return .nothing }
            }
        }
        if input.kind == .terminal, input.isEnd, duplicate.hadEnd { return .nothing }
        duplicates[index].lastBytes = input.bytes
        // Once.
        if input.isEnd { duplicates[index].hadEnd = true }
        input.isHalfFull = found.isHalfFull && (!input.isEnd || input.bytes > 0)
        // There is space from now on, so the kernel adds it to each event.
        if isWritable { duplicates[index].endBlock() }
        // That is enough for the app, however little has arrived beside it.
        if isUrgent || isWritable { input.bytes = 0 }
        // It came before the watch. What comes later is from outside.
        input.isOwn = duplicate.isOwn && !isWritable
        duplicates[index].isOwn = false
        if onlyPeers, !input.isHalfFull || !found.isLocal { return .nothing }
        input.peer = found.peer
        return .input(input)
    }

    // MARK: How full the buffer is

    /// Whether a peer on this machine waits or will soon wait.
    ///
    /// - TCP and pipes: see input_examine.
    /// - AF_UNIX streams are charged to their sender: its buffer is asked for.
    /// - AF_UNIX messages: the kernel limits their number, 10 by default, and does not tell how many wait. Any one counts.
    /// - A listening socket: half of its backlog.
    private func isHalfFull(_ duplicate: WatchedDescriptor, _ bytes: UInt64) -> Bool {
        switch duplicate.kind {
        case .listener: return isBacklogHalfFull(duplicate)
        case .stream, .datagram:
            if duplicate.countsMessages { return true }
            return bytes > 0 && duplicate.domain == AF_UNIX && isSenderHalfFull(duplicate)
        // A pipe is examined on the helper thread (input_examine).
        case .pipe, .terminal, .timer, .event, .epoll: return false
        }
    }

    /// AF_UNIX.
    private func isBacklogHalfFull(_ duplicate: WatchedDescriptor) -> Bool {
        guard let queue = unixQueue(duplicate.inode) else { return true }
        return UInt64(queue.received) * 2 > UInt64(queue.sent)
    }

    /// AF_UNIX. If the kernel does not tell, the sender may wait.
    private func isSenderHalfFull(_ duplicate: WatchedDescriptor) -> Bool {
        guard let own = unixQueue(duplicate.inode) else { return true }
        // A sender that is gone waits for nothing.
        guard own.peer != 0 else { return false }
        guard let sender = unixQueue(UInt64(own.peer)) else { return true }
        return UInt64(sender.sent) * 2 > UInt64(sender.send_size)
    }

    private func unixQueue(_ inode: UInt64) -> clinux_unix_queue? {
        if diagnostics == nil, hasDiagnostics {
            let number = clinux_diag_open()
            if number >= 0 { diagnostics = Descriptor(adopting: number) } else { hasDiagnostics = false }
        }
        guard let number = diagnostics?.raw, let inode = UInt32(exactly: inode) else { return nil }
        var queue = clinux_unix_queue()
        return clinux_find_unix_queue(number, inode, &queue) == 0 ? queue : nil
    }

    // MARK: The other end

    /// Of a socket whose peer is known without its lock: AF_UNIX and AF_NETLINK.
    func unixPeer(of duplicate: WatchedDescriptor) -> String {
        var peer = clinux_peer()
        clinux_describe_peer(duplicate.number, duplicate.domain, &peer)
        if peer.length > 0 {
            let text = withUnsafeBytes(of: &peer.text) { String(decoding: $0.prefix(peer.length), as: UTF8.self) }
            return text.printable(upTo: ArrivedInput.maximumPeer)
        }
        guard peer.pid > 0 else { return "" }
        let name = (try? proc.stat(of: peer.pid)).map { " (\($0.comm))" } ?? ""
        return "PID \(peer.pid)\(name)".printable(upTo: ArrivedInput.maximumPeer)
    }
}

extension WatchedDescriptor {
    /// Whether the kernel tells how many bytes wait in all.
    fileprivate var countsBytes: Bool {
        switch kind {
        case .pipe: true
        case .stream: !isRare && !countsMessages
        case .listener, .datagram, .terminal, .timer, .event, .epoll: false
        }
    }
}
