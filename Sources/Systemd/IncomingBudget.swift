import LoopPolicy
import Posix

/// The memory for large messages that clients of a server have begun to send.
///
/// A message of at most `Limits.free` bytes is read in any case. A larger one is read once all of it fits: if each were read
/// as it arrives, all could wait for each other without end. Until then it waits in the kernel's buffer, and the client's
/// send(2) blocks. Messages are admitted in the order in which they began.
package final class IncomingBudget {
    package struct Limits: Sendable {
        /// Bytes of a message that needs none of the budget. All requests are shorter: the longest, a launch with a URL, has
        /// less than 10 KiB. For 1,280 connections this is 40 MiB.
        package var free = 32 << 10
        /// Bytes of all larger messages together.
        package var total = 64 << 20
        /// Bytes of those of one user, so that another user's are read, too.
        package var perUser = 32 << 20
        /// How long the rest of a message may take while another one waits.
        package var timeout = Duration.seconds(5)

        package init() {}
    }

    /// What one connection has of the budget.
    final class Share {
        /// The process at the other end.
        let peer: PeerCredentials
        /// The connection ends before a message gets longer.
        private let longest: Int
        /// What is admitted for the message that the client sends, in bytes.
        fileprivate(set) var bytes = 0
        /// The bytes that it waits for.
        fileprivate var wanted = 0
        /// When the message was admitted, or began to wait.
        fileprivate var since = Duration.zero
        /// Called when the message that waits may be read.
        var onAdmitted: () -> Void = {}
        /// Called when the rest of the message takes too long while another one waits. It ends the connection.
        var onTimeout: () -> Void = {}
        private let budget: IncomingBudget

        fileprivate init(_ budget: IncomingBudget, of peer: PeerCredentials, longest: Int) {
            self.budget = budget
            self.peer = peer
            self.longest = longest
        }

        fileprivate var user: UInt32 { peer.uid }

        /// Whether a message waits to be read.
        var isWaiting: Bool { wanted > 0 }

        /// Whether a message of this length may be read now. If not, it waits (`onAdmitted`).
        func admits(_ length: Int) -> Bool {
            if length <= budget.limits.free {
                if bytes > 0 { release() }
                return true
            }
            return budget.admit(self, min(length, longest, budget.limits.perUser, budget.limits.total))
        }

        /// The message is complete, or the connection ends.
        func release() { budget.release(self) }
    }

    let limits: Limits
    /// Called with the process and the length of its message when its connection is ended for another one's message.
    var onTimeout: ((PeerCredentials, Int) -> Void)?
    /// Bytes of the messages that are admitted.
    package private(set) var admitted = 0
    private let loop: EventLoop
    private let kind: SourceKind
    private var admittedOfUsers: [UInt32: Int] = [:]
    /// Connections with a message that is admitted, and with one that waits, each in order.
    private var holders: [Share] = []
    private var waiting: [Share] = []
    private var timer: Timer?

    init(loop: EventLoop, kind: SourceKind, limits: Limits) {
        self.loop = loop
        self.kind = kind
        self.limits = limits
    }

    /// How many messages wait to be read.
    package var waitingCount: Int { waiting.count }

    func share(of peer: PeerCredentials, longest: Int) -> Share { Share(self, of: peer, longest: longest) }

    private func admit(_ share: Share, _ length: Int) -> Bool {
        if share.bytes >= length { return true }
        if share.isWaiting { return false }
        if share.bytes > 0 { release(share) }
        share.since = loop.now()
        // One that began to wait before comes first.
        if waiting.contains(where: { $0.user == share.user }) || !fits(length, share.user) {
            share.wanted = length
            waiting.append(share)
            armTimer()
            return false
        }
        add(share, length)
        return true
    }

    private func fits(_ length: Int, _ user: UInt32) -> Bool {
        admitted + length <= limits.total && !isFull(user, for: length)
    }

    private func isFull(_ user: UInt32, for length: Int) -> Bool {
        admittedOfUsers[user, default: 0] + length > limits.perUser
    }

    private func add(_ share: Share, _ length: Int) {
        share.bytes = length
        share.wanted = 0
        share.since = loop.now()
        admitted += length
        admittedOfUsers[share.user, default: 0] += length
        holders.append(share)
    }

    private func release(_ share: Share) {
        guard share.bytes > 0 || share.isWaiting else { return }
        if share.isWaiting {
            share.wanted = 0
            waiting.removeAll { $0 === share }
        }
        if share.bytes > 0 {
            admitted -= share.bytes
            admittedOfUsers[share.user, default: 0] -= share.bytes
            share.bytes = 0
            holders.removeAll { $0 === share }
        }
        admitWaiting()
        armTimer()
    }

    /// Admits the messages that wait and fit now. One that does not fit keeps later ones of its user waiting, but not those
    /// of other users: two users together cannot use more than the total.
    private func admitWaiting() {
        var blocked: Set<UInt32> = []
        var (rest, fitting): ([Share], [Share]) = ([], [])
        for share in waiting {
            if blocked.contains(share.user) || !fits(share.wanted, share.user) {
                blocked.insert(share.user)
                rest.append(share)
            } else {
                add(share, share.wanted)
                fitting.append(share)
            }
        }
        waiting = rest
        for share in fitting { share.onAdmitted() }
    }

    // MARK: Messages that do not end

    /// The messages for which the first one that waits has to wait.
    private var obstacles: [Share] {
        guard let first = waiting.first else { return [] }
        return isFull(first.user, for: first.wanted) ? holders.filter { $0.user == first.user } : holders
    }

    private func armTimer() {
        guard let first = waiting.first, let oldest = obstacles.map(\.since).min() else {
            timer?.arm(at: nil)
            return
        }
        if timer == nil { timer = try? loop.makeTimer(kind: kind) { [weak self] _ in self?.expire() } }
        timer?.arm(at: max(first.since, oldest) + limits.timeout)
    }

    /// Ends the connection with the largest message that takes too long.
    private func expire() {
        let now = loop.now()
        let late = obstacles.filter { $0.since + limits.timeout <= now }
        // Its end admits others, and arms the timer again.
        guard let largest = late.max(by: { $0.bytes < $1.bytes }) else { return armTimer() }
        onTimeout?(largest.peer, largest.bytes)
        largest.onTimeout()
    }
}
