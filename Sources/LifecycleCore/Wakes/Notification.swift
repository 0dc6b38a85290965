/// A change outside an app that concerns it (L31 … L33).
package struct Notification: Hashable, Sendable {
    package let kind: String
    package let payload: String
    /// The number of an event among those of its app, which names its wake; 0: it has none.
    package var id: UInt64 = 0

    /// The kinds that Greenroom defines (L33). An app's own kinds begin with `x-`.
    package static let kinds = [
        "accessory", "orientation", "time", "battery", "proximity", "protectedData", "display", "screenMode",
        "settings", "locale", "account", "memory", pushEndpoint,
    ]
    /// The kind of a push.
    package static let push = "push"
    /// The kind of the address at which an app can be sent pushes (L30).
    package static let pushEndpoint = "pushEndpoint"
    /// What comes before the Base64 of a push that is no text (RFC 2397).
    package static let dataPrefix = "data:;base64,"
    /// The longest name of an app's own kind, in bytes.
    package static let maximumKindLength = 64
    /// The longest payload, in bytes: what push services of phones allow.
    package static let maximumPayload = 4096
    /// The longest payload of a push: as many bytes, in Base64.
    package static let maximumPush = dataPrefix.utf8.count + (maximumPayload + 2) / 3 * 4

    /// `nil` if `kind` is neither a kind of L33 nor `x-` with letters, digits or `-`, or if the payload is too long.
    package init?(kind: String, payload: String) {
        guard Self.kinds.contains(kind) || Self.isOwnKind(kind), payload.utf8.count <= Self.maximumPayload else {
            return nil
        }
        self.kind = kind
        self.payload = payload
    }

    init(pushed payload: String) {
        kind = Self.push
        self.payload = payload
    }

    /// Protected data becomes available or unavailable (L15).
    init(protectedDataIsAvailable isAvailable: Bool) {
        kind = "protectedData"
        payload = isAvailable ? "available" : "unavailable"
    }

    private static func isOwnKind(_ kind: String) -> Bool {
        let bytes = kind.utf8
        guard kind.hasPrefix("x-"), (3...maximumKindLength).contains(bytes.count) else { return false }
        return bytes.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"):
                true
            default: false
            }
        }
    }

    /// A significant time change waits for the foreground (L32).
    var waitsForForeground: Bool { kind == "time" }

    /// Its kind is one of the app's own.
    var isOfOwnKind: Bool { kind.hasPrefix("x-") }

    /// It is an event of which each one counts: a push, or one of the app's own kinds without a state. Events queue (L31).
    package var isEvent: Bool { kind == Self.push || isOfOwnKind && payload.isEmpty }

    /// It is a state, which may change back. Anything else is an event each time it comes.
    var isState: Bool {
        switch kind {
        case Self.push, "memory", "time": false
        default: !payload.isEmpty
        }
    }
}

/// Kinds of L33. A kind's bit is its position in `Notification.kinds`, which therefore only grows at its end.
package struct NotificationKinds: OptionSet, Hashable, Sendable {
    package let rawValue: UInt16
    package init(rawValue: UInt16) { self.rawValue = rawValue }

    /// `nil`: not a kind of L33.
    package init?(named name: String) {
        guard let position = Notification.kinds.firstIndex(of: name) else { return nil }
        rawValue = 1 << UInt16(position)
    }

    package var names: [String] {
        Notification.kinds.enumerated().filter { rawValue >> UInt16($0.offset) & 1 == 1 }.map(\.element)
    }
}

/// What is still to be delivered to an app: each event, and of anything else the net change of each kind (L31).
struct NotificationQueue: Hashable, Sendable {
    /// How many of an app's own kinds are kept, so that clients cannot use up the daemon's memory.
    static let maximumKinds = 64
    /// How many pushes wait, and how many events of an app's own kinds: as many as wakes (`LifecycleCore.maximumWakes`). One more
    /// is refused: those before it have been accepted.
    static let maximumEvents = 64
    /// Bytes of their payloads: sixteen of the longest.
    static let maximumEventBytes = 64 << 10

    private(set) var pending: [Notification] = []
    /// What was last delivered of each kind: a change back to that is no change.
    private(set) var known: [Notification] = []
    /// What is to be delivered to the process that is launched after the end which is under way: a push.
    private(set) var afterEnd: [Notification] = []

    init() {}

    /// As it was saved.
    init(pending: [Notification], known: [Notification], afterEnd: [Notification]) {
        self.pending = pending
        self.known = known
        self.afterEnd = afterEnd
    }

    enum Filing { case filed, undone, full }

    /// Keeps an event, or the net change of its kind. `isHeld`: the app is suspended and the notification waits. A running app
    /// gets every change.
    mutating func file(_ notification: Notification, isHeld: Bool) -> Filing {
        Self.removeState(of: notification, from: &pending)
        if isHeld, known.contains(notification) { return .undone }
        guard hasCapacity(for: notification, in: pending) else { return .full }
        pending.append(notification)
        return .filed
    }

    /// Removes and returns what is due now, in the order in which it came.
    mutating func take(inForeground: Bool) -> [Notification] {
        if pending.isEmpty { return [] }
        let due = pending.filter { inForeground || !$0.waitsForForeground }
        pending.removeAll { inForeground || !$0.waitsForForeground }
        for notification in due { remember(notification) }
        return due
    }

    /// Whether what a source has read is a change for the app. The first state of a kind is none: it is what the app was launched in.
    /// Only its address for pushes an app cannot find out by itself.
    mutating func isChange(_ reading: Notification) -> Bool {
        guard reading.isState else { return true }
        let latest = pending.last { $0.kind == reading.kind } ?? known.first { $0.kind == reading.kind }
        if let latest { return latest.payload != reading.payload }
        if reading.kind == Notification.pushEndpoint { return true }
        remember(reading)
        return false
    }

    /// Takes a notification as delivered, because the app assumes it.
    mutating func assume(_ notification: Notification) { remember(notification) }

    private mutating func remember(_ notification: Notification) {
        guard notification.isState else { return }
        known.removeAll { $0.kind == notification.kind }
        if hasCapacity(for: notification, in: known) { known.append(notification) }
    }

    /// A state takes the position of the one before of its kind; an event of no other.
    private static func removeState(of notification: Notification, from list: inout [Notification]) {
        if notification.isEvent { return }
        list.removeAll { $0.kind == notification.kind && !$0.isEvent }
    }

    /// Whether a push can wait. `afterEnd`: for the next process.
    func hasCapacity(forPush push: Notification, afterEnd isAfterEnd: Bool) -> Bool {
        hasCapacity(for: push, in: isAfterEnd ? afterEnd : pending)
    }

    private func hasCapacity(for notification: Notification, in list: [Notification]) -> Bool {
        guard notification.isEvent else {
            return !notification.isOfOwnKind || list.count { $0.isOfOwnKind && !$0.isEvent } < Self.maximumKinds
        }
        var (count, bytes) = (1, notification.payload.utf8.count)
        for other in list where other.isEvent && other.isOfOwnKind == notification.isOfOwnKind {
            count += 1
            bytes += other.payload.utf8.count
        }
        return count <= Self.maximumEvents && bytes <= Self.maximumEventBytes
    }

    /// Nothing was delivered to a new process.
    mutating func reset() {
        pending = []
        known = []
    }

    // MARK: After the end that is under way

    /// Keeps a notification for the next process.
    mutating func fileForNext(_ notification: Notification) {
        Self.removeState(of: notification, from: &afterEnd)
        if hasCapacity(for: notification, in: afterEnd) { afterEnd.append(notification) }
    }

    /// The next process is launched.
    mutating func beginNext() {
        pending += afterEnd
        afterEnd = []
    }

    /// No process follows.
    mutating func dropNext() { afterEnd = [] }
}
