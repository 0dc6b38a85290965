import CLinux
import Glibc
import Posix

/// Input that arrived at a descriptor of a frozen app.
package struct ArrivedInput: Equatable {
    /// The most bytes of `peer`.
    package static let maximumPeer = 128

    package var kind: WatchedKind
    /// A process that has the descriptor, and its number there.
    package var pid: Int32
    package var descriptor: Int32
    /// How many bytes can be read: all of a stream, of datagrams the first; 0: none, or it is not known.
    package var bytes: UInt64 = 0
    /// `192.0.2.7:50123`, `/run/app.sock`, `PID 4711 (curl)`; empty: not known.
    package var peer = ""
    /// Nothing but the end of the stream.
    package var isEnd = false
    /// The peer is on this machine, and the buffer towards the app is more than half full.
    package var isHalfFull = false
}

extension DescriptorWatch {
    /// How often input at one descriptor is looked at.
    package static let interval = Duration.milliseconds(100)

    /// What a ready descriptor shows.
    package enum Look {
        case input(ArrivedInput)
        /// Nothing that is new.
        case nothing
        /// It was looked at just now. Nothing more is reported of it until `watchAgain`, due after `interval`.
        case rests
    }

    /// Looks at a descriptor that is ready.
    /// - Parameter now: the time of CLOCK_MONOTONIC.
    package func look(_ ready: Epoll.Ready, now: Duration) -> Look {
        let index = Int(clamping: ready.data)
        // Its process may have ended in this turn.
        guard duplicates.indices.contains(index), duplicates[index].number >= 0 else { return .nothing }
        duplicates[index].hasFired = true
        if let last = duplicates[index].lastLook, now - last < Self.interval {
            // Without it in the set even a flood costs nothing.
            removeFromSet(index)
            return .rests
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
        var input = ArrivedInput(
            kind: duplicate.kind, pid: processes[duplicate.first.process].pid, descriptor: duplicate.first.number)
        let isWritable = duplicate.isBlocked && events.contains(.writable)
        switch duplicate.kind {
        case .listener, .timer, .event, .epoll: break
        case .terminal: input.isEnd = events.contains(.hangUp)
        case .stream, .datagram, .pipe:
            // At the write end of a pipe the kernel counts what its reader has not read.
            if events.contains(.readable) { input.bytes = UInt64(clamping: clinux_readable_bytes(duplicate.number)) }
            if input.bytes == 0, !isWritable {
                // A datagram may be empty. An error without one is nothing to be read.
                let isEmpty = duplicate.kind == .datagram && events.contains(.readable)
                input.isEnd = !isEmpty && !events.isDisjoint(with: .ends)
                if !input.isEnd, duplicate.countsBytes { return .nothing }
            }
            if input.bytes > 0, duplicate.countsBytes, input.bytes == duplicate.lastBytes, !isWritable {
                return .nothing
            }
        }
        if input.isEnd, duplicate.hadEnd { return .nothing }
        duplicates[index].lastBytes = input.bytes
        // There is space from now on, so the kernel adds it to each event.
        if isWritable { duplicates[index].endBlock() }
        // A connection that waits counts as more than any number of bytes.
        if onlyPeers || duplicate.kind != .listener && input.bytes < fullnessMattersBelow {
            input.isHalfFull = !input.isEnd && isHalfFull(duplicate, input.bytes)
        }
        if onlyPeers, !input.isHalfFull { return .nothing }
        input.peer = peer(of: duplicate)
        return .input(input)
    }

    // MARK: How full the buffer is

    /// Whether a peer on this machine waits or will soon wait.
    ///
    /// - TCP: half of the buffer with the kernel's overhead, or half of the window, which is half of the buffer.
    /// - A pipe: by its bytes. In one with O_DIRECT each message occupies a slot, so any message counts.
    /// - AF_UNIX streams are charged to their sender: its buffer is asked for.
    /// - AF_UNIX messages: the kernel limits their number, 10 by default, and does not tell how many wait. Any one counts.
    /// - A listening socket: half of its backlog.
    private func isHalfFull(_ duplicate: WatchedDescriptor, _ bytes: UInt64) -> Bool {
        switch duplicate.kind {
        case .pipe:
            guard bytes > 0 else { return false }
            let size = clinux_pipe_size(duplicate.number)
            return size <= 0 || bytes * 2 > UInt64(size) || clinux_is_packet_pipe(duplicate.number)
        case .listener: return isBacklogHalfFull(duplicate)
        case .stream, .datagram:
            if duplicate.countsMessages { return true }
            guard bytes > 0 else { return false }
            if duplicate.domain == AF_UNIX { return isSenderHalfFull(duplicate) }
            return duplicate.isTCP && isReceiverHalfFull(duplicate, bytes)
        case .terminal, .timer, .event, .epoll: return false
        }
    }

    private func isReceiverHalfFull(_ duplicate: WatchedDescriptor, _ bytes: UInt64) -> Bool {
        var (used, size): (UInt32, UInt32) = (0, 0)
        guard clinux_receive_buffer(duplicate.number, &used, &size) == 0 else { return false }
        guard bytes * 4 > UInt64(size) || UInt64(used) * 2 > UInt64(size) else { return false }
        var peer = clinux_peer()
        clinux_describe_peer(duplicate.number, duplicate.domain, &peer)
        return peer.is_local
    }

    private func isBacklogHalfFull(_ duplicate: WatchedDescriptor) -> Bool {
        var (waiting, limit): (UInt32, UInt32) = (0, 0)
        if duplicate.domain == AF_UNIX {
            guard let queue = unixQueue(duplicate.inode) else { return true }
            (waiting, limit) = (queue.received, queue.sent)
        } else if clinux_tcp_backlog(duplicate.number, &waiting, &limit) != 0 {
            return true
        }
        return UInt64(waiting) * 2 > UInt64(limit)
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

    private func peer(of duplicate: WatchedDescriptor) -> String {
        switch duplicate.kind {
        case .stream, .datagram: break
        // Who connects is known once the connection is accepted.
        case .listener, .pipe, .terminal, .timer, .event, .epoll: return ""
        }
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
