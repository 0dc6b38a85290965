/// A change in the world that concerns an app (L31 … L33).
package struct Notification: Hashable, Sendable {
    package let kind: String
    package let payload: String

    /// The kinds that Greenroom knows of (L33); those of an app's own begin with `x-`.
    package static let kinds = [
        "accessory", "orientation", "time", "battery", "proximity", "protectedData", "display", "screenMode",
        "settings", "locale", "account", "memory",
    ]
    /// What the payload of a push is filed under.
    package static let push = "push"
    /// The longest name of a kind of an app's own, in bytes.
    package static let maximumKindLength = 64
    /// The longest payload, in bytes; what phones allow a push.
    package static let maximumPayload = 4096

    /// `nil` if `kind` is neither of L33 nor `x-` and letters, digits or `-`, or if the payload is too long.
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

    /// Of a kind of the app's own.
    var isOfItsOwn: Bool { kind.hasPrefix("x-") }

    /// It says how the world is, which may change back; an event is news each time.
    var isState: Bool {
        switch kind {
        case Self.push, "memory", "time": false
        default: !payload.isEmpty
        }
    }
}

/// What an app has not been told yet: of each kind the net change (L31).
struct NotificationQueue: Hashable, Sendable {
    /// Kinds of an app's own are bounded by this: nobody can fill the house with them.
    static let maximumKinds = 64

    private(set) var pending: [Notification] = []
    /// What the app was last told of each kind: a change back to that is none.
    private(set) var known: [Notification] = []

    init() {}

    /// As it was saved.
    init(pending: [Notification], known: [Notification]) {
        self.pending = pending
        self.known = known
    }

    enum Filing { case filed, undone, full }

    /// Keeps the net change of its kind. `isHeld`: it waits, as the app is suspended; a running app hears of everything.
    mutating func file(_ notification: Notification, isHeld: Bool) -> Filing {
        pending.removeAll { $0.kind == notification.kind }
        if isHeld, known.contains(notification) { return .undone }
        guard hasRoom(for: notification, in: pending) else { return .full }
        pending.append(notification)
        return .filed
    }

    /// What is due now, in the order it came.
    mutating func take(inForeground: Bool) -> [Notification] {
        if pending.isEmpty { return [] }
        let due = pending.filter { inForeground || !$0.waitsForForeground }
        pending.removeAll { inForeground || !$0.waitsForForeground }
        for notification in due { remember(notification) }
        return due
    }

    /// What it need not be told, as it goes without saying.
    mutating func assume(_ notification: Notification) { remember(notification) }

    private mutating func remember(_ notification: Notification) {
        guard notification.isState else { return }
        known.removeAll { $0.kind == notification.kind }
        if hasRoom(for: notification, in: known) { known.append(notification) }
    }

    private func hasRoom(for notification: Notification, in list: [Notification]) -> Bool {
        !notification.isOfItsOwn || list.count(where: \.isOfItsOwn) < Self.maximumKinds
    }

    /// A new process knows nothing.
    mutating func reset() {
        pending = []
        known = []
    }
}
