import CSystemd
import Glibc
import Posix

// A connection's share of the loop: at most one incoming message in a turn. The rest waits for the next turn, behind
// the sources of the same priority that wait already.

extension BusPeer {
    /// The reason if the other side has closed the connection.
    package static let ended = "the connection ended"

    /// Reads or writes what is possible, and handles at most one message.
    /// - Returns: whether anything came of it.
    @discardableResult
    func turn() -> Bool {
        guard !isGone, !isInTurn else { return true }
        isInTurn = true
        defer {
            isInTurn = false
            descriptors = []
        }
        let wasReady = isReady
        let result: Int32
        let (hasRead, hasPassed): (Bool, Bool)
        do throws(BusIntake.Failure) {
            (result, hasRead, hasPassed) = try transport.process(bus)
        } catch {
            close(reason: "it sent a descriptor, which is not accepted here")
            return true
        }
        guard !isGone else { return true }
        if let reason = reasonToEnd(result) {
            close(reason: reason)
            return true
        }
        if !isSettled { settle(handled: result > 0, isDrained: wasReady && hasRead) }
        update()
        return result > 0 || hasRead || hasPassed || isGone
    }

    /// Why the connection ends after sd_bus_process(3) has returned this; `nil`: it does not end.
    private func reasonToEnd(_ result: Int32) -> String? {
        guard result >= 0 else {
            if !isOnBus, [ECONNRESET, EPIPE, ENOTCONN, ESHUTDOWN].contains(-result) { return Self.ended }
            let text = SystemError.text(of: -result)
            return isOnBus ? text : "it sent bytes that are not a D-Bus message: \(text)"
        }
        // A bus daemon bounds messages itself, and one that is too large must not end the connection for all callers.
        guard isOnBus || transport.unfinishedBytes <= limits.incomingBytes else {
            return "it sends a message of more than \(limits.incomingBytes) bytes"
        }
        return nil
    }

    /// Whether a message, or a part of one or of the handshake, has arrived and has not been handled.
    private var isReading: Bool {
        guard !isGone else { return false }
        if isReady, !isSettled || !transport.isQuiet || hasQueuedMessages { return true }
        return transport.hasInput
    }

    private var hasQueuedMessages: Bool {
        var count: UInt64 = 0
        return sd_bus_get_n_queued_read(bus, &count) < 0 || count > 0
    }

    /// Stops reading what the client sends: it waits in the kernel until `endHold`.
    package func hold() {
        transport.setHeld(true)
        update()
    }

    /// Reads messages again.
    package func endHold() {
        transport.setHeld(false)
        guard !isGone else { return }
        update()
        continuation.schedule()
    }

    /// Handles what has arrived: at most `limit` turns. For what the other side sent before its end.
    package func drain(limit: Int) {
        guard !isInTurn else { return }
        var rest = limit
        while rest > 0, isReading {
            turn()
            rest -= 1
        }
    }

    /// Finishes the handshake, and handles the messages that arrived together with it: libsystemd has read them, so
    /// the socket is not readable because of them.
    ///
    /// - Parameter isDrained: libsystemd has read from the socket after the handshake. It does so only after it has handled
    ///   all that arrived with the handshake, and then no more than one message at a time.
    private func settle(handled: Bool, isDrained: Bool) {
        if isReady, let onReady {
            self.onReady = nil
            onReady()
        }
        guard !isGone else { return }
        isSettled = isReady && (!handled || isDrained)
        if handled, !isSettled { continuation.schedule() }
        guard isOnBus, !isReady else { return }
        do throws(SystemError) {
            // A failed attempt may have closed the descriptor, and the next one may have the same number.
            try transport.watch(bus)
        } catch {
            close(reason: "\(error)")
        }
    }

    /// Updates what the connection waits for, after anything that may have changed it.
    func update() {
        checkQueue(limit: limits.queuedMessages)
        guard !isGone else { return }
        let events = sd_bus_get_events(bus)
        guard sd_bus_is_open(bus) > 0, events >= 0 else {
            return close(reason: Self.ended)
        }
        var awaited = EpollEvents(rawValue: UInt32(events))
        // If callers ask faster than the bus daemon reads the answers, the daemon has to hold their calls back.
        if isOnBus, queuedMessages > limits.queuedMessages { awaited.remove(.readable) }
        if let onDrained, queuedMessages == 0 {
            self.onDrained = nil
            loop.callLater(onDrained)
        }
        do throws(SystemError) {
            try transport.setEvents(awaited)
            // During the handshake nothing is written, however writable the socket is.
            try transport.setCongested(isReady && queuedMessages > limits.queuedMessages / 4)
            try updateTimer()
        } catch {
            close(reason: "the loop cannot wait for it: \(error)")
        }
    }

    private func updateTimer() throws(SystemError) {
        var until: UInt64 = 0
        // During the handshake libsystemd's timeout is 90 s; a server has a shorter one of its own.
        let hasTimeout =
            sd_bus_get_timeout(bus, &until) > 0 && until != .max && (isReady || isOnBus || !outgoing.isEmpty)
        guard hasTimeout else {
            timer?.arm(at: nil)
            return
        }
        if until == 0 {
            // libsystemd has read a message that it has not handled.
            continuation.schedule()
            return
        }
        if timer == nil { timer = try loop.makeTimer(kind: kinds.timer) { [weak self] _ in self?.turn() } }
        timer?.arm(at: .microseconds(until))
    }

    // MARK: Outgoing queue

    /// Messages that wait beyond the kernel's buffer because the other side does not read.
    private var queuedMessages: UInt64 {
        var queued: UInt64 = 0
        return !isGone && sd_bus_get_n_queued_write(bus, &queued) >= 0 ? queued : 0
    }

    /// Whether the other side has read all that was sent to it, as far as this process knows: the rest is in the kernel, which
    /// delivers it also after the end of the connection.
    package var hasSentAll: Bool { queuedMessages == 0 }

    /// Whether a bus daemon reads more slowly than this connection writes. Signals that can be left out should be.
    package var isCongested: Bool { queuedMessages > limits.queuedMessages / 2 }

    /// Disconnects a peer for which more messages wait than `limit`.
    func checkQueue(limit: UInt64) {
        let queued = queuedMessages
        guard !isOnBus, queued > limit else { return }
        close(reason: "it does not read: \(queued) messages wait for it")
    }
}
