extension BackgroundModes: Storable {
    package func store(in writer: inout ByteWriter) { writer.put(byte: rawValue) }
    package init(from reader: inout ByteReader) throws(SavedError) { self.init(rawValue: try reader.byte()) }
}

extension AppPolicy: Storable {
    package func store(in writer: inout ByteWriter) {
        writer.put(readiness)
        writer.put(launchAtStart)
        writer.put(relaunch)
        writer.put(launchDeadline)
        writer.put(backgroundDeadline)
        writer.put(terminateDeadline)
        writer.put(extendedDeadlineMax)
        writer.put(backgroundTime)
        writer.put(expirationNotice)
        writer.put(suspendDelay)
        writer.put(watchdog)
        writer.put(exitsOnSuspend)
        writer.put(usesProtectedData)
        writer.put(backgroundModes)
        writer.put(signed: Int64(jetsamPriority))
        writer.put(setting: memoryHigh)
        writer.put(setting: suspendedMemoryHigh)
    }

    package init(from reader: inout ByteReader) throws(SavedError) {
        self.init()
        readiness = try reader.take()
        launchAtStart = try reader.optional()
        relaunch = try reader.take()
        launchDeadline = try reader.optional()
        backgroundDeadline = try reader.optional()
        terminateDeadline = try reader.optional()
        extendedDeadlineMax = try reader.optional()
        backgroundTime = try reader.optional()
        expirationNotice = try reader.take()
        suspendDelay = try reader.take()
        watchdog = try reader.optional()
        exitsOnSuspend = try reader.flag()
        usesProtectedData = try reader.flag()
        backgroundModes = try reader.take()
        jetsamPriority = Int(try reader.signed())
        memoryHigh = try reader.setting()
        suspendedMemoryHigh = try reader.setting()
    }
}

extension ManagerPolicy: Storable {
    package func store(in writer: inout ByteWriter) {
        writer.put(counter: foregroundLimit)
        writer.put(setting: budget)
        writer.put(jetsamOrder)
        writer.put(warningAvailable)
        writer.put(criticalAvailable)
    }

    package init(from reader: inout ByteReader) throws(SavedError) {
        self.init()
        foregroundLimit = try reader.counter("ForegroundLimit=")
        budget = try reader.setting()
        jetsamOrder = try reader.take()
        warningAvailable = try reader.take()
        criticalAvailable = try reader.take()
    }
}

extension MemoryAmount: Storable {
    package func store(in writer: inout ByteWriter) {
        switch self {
        case .bytes(let bytes):
            writer.put(byte: 0)
            writer.put(number: bytes)
        case .percent(let percent):
            writer.put(byte: 1)
            writer.put(signed: Int64(percent))
        }
    }

    package init(from reader: inout ByteReader) throws(SavedError) {
        switch try reader.byte() {
        case 0: self = .bytes(try reader.number())
        case 1: self = .percent(Int(try reader.signed()))
        case let other: throw reader.unknown(other, "amount of memory")
        }
    }
}

extension Launch: Storable {
    package func store(in writer: inout ByteWriter) {
        writer.put(state)
        writer.put(reason)
        writer.put(url.map(StoredText.init))
        writer.put(isFirst)
    }

    package init(from reader: inout ByteReader) throws(SavedError) {
        let state: LaunchState = try reader.take()
        let reason: LaunchReason = try reader.take()
        let url: StoredText? = try reader.optional()
        self.init(state: state, reason: reason, url: url?.text)
        isFirst = try reader.flag()
    }
}

/// A text that is no name: an URL, a task's name, a sentence.
struct StoredText: Storable {
    var text: String
    init(_ text: String) { self.text = text }
    func store(in writer: inout ByteWriter) { writer.put(text: text) }
    init(from reader: inout ByteReader) throws(SavedError) {
        text = try reader.text(upTo: SavedLimits.text, "a text")
    }
}

extension Notification: Storable {
    package func store(in writer: inout ByteWriter) {
        writer.put(text: kind)
        writer.put(text: payload)
    }

    package init(from reader: inout ByteReader) throws(SavedError) {
        let kind = try reader.text(upTo: Self.maximumKindLength, "a kind")
        let payload = try reader.text(upTo: Self.maximumPayload, "a payload")
        if kind == Self.push {
            self.init(pushed: payload)
        } else if let notification = Notification(kind: kind, payload: payload) {
            self = notification
        } else {
            throw reader.error("no kind of notification")
        }
    }
}

extension NotificationQueue: Storable {
    /// Those of an app's own are bounded, of the others there is one each.
    private static var limit: Int { maximumKinds + Notification.kinds.count + 1 }

    package func store(in writer: inout ByteWriter) {
        writer.put(pending)
        writer.put(known)
    }

    package init(from reader: inout ByteReader) throws(SavedError) {
        let pending: [Notification] = try reader.take(upTo: Self.limit, "notifications")
        let known: [Notification] = try reader.take(upTo: Self.limit, "notifications")
        self.init(pending: pending, known: known)
    }
}
