/// One thing that an app says on its notify socket (sd_notify(3), and the contract's own X_GREENROOM_ names).
package enum NotifyMessage: Equatable, Sendable {
    case ready
    case stopping
    case status(String)
    /// An errno, 0 … 4095.
    case errno(Int32)
    case mainPID(Int32)
    case watchdog
    /// The app asks to be treated as if its watchdog had expired.
    case watchdogTrigger
    case extendTimeout(Duration)
    /// Keep the descriptors that came along, under this name.
    case storeDescriptors(name: String)
    case removeDescriptors(name: String)
    /// Close the one descriptor that came along when all that came before has been dealt with.
    case barrier
    case background
    case beginTask(String)
    case endTask(String)
    case wakeDone(WakeResult)

    package enum WakeResult: String, Sendable {
        case newData = "new-data"
        case noData = "no-data"
        case failed
    }
}

/// A datagram of a notify socket, taken apart. It is hostile until read: whatever it says, it cannot harm more than the
/// app that sent it.
///
/// Duplicates are decided as systemd (252, core/manager.c and core/service.c) does: of READY=1 and STOPPING=1 the last
/// counts, of every other key with one value the first; tasks may be many. Unknown keys are ignored without a word, for
/// newer programs may know more.
package struct NotifyDatagram: Equatable, Sendable {
    /// What it says, in its order.
    package var messages: [NotifyMessage] = []
    /// What could not be understood, a sentence each.
    package var complaints: [String] = []

    /// systemd's NOTIFY_BUFFER_MAX, which is PIPE_BUF.
    package static let maximumSize = 4096
    /// Bytes of a task's name: as long as an app's ID.
    package static let maximumTaskName = 128
    /// Complaints of one datagram, which could hold 2,000 wrong lines; the rest are counted.
    package static let maximumComplaints = 8

    /// - Parameter bytes: the whole datagram; one that was cut off by the receiver must be given with more than
    ///   `maximumSize` bytes, or not at all.
    package init(_ bytes: [UInt8]) {
        // One NUL at the end is permitted, as by systemd.
        let bytes = bytes.last == 0 ? bytes.dropLast() : bytes[...]
        if let reason = Self.reasonToRefuse(bytes) {
            complaints = ["The notification was refused as a whole: \(reason)."]
            return
        }
        // By bytes: as Swift's characters a line feed after "\r" and a "=" before an accent would be something else.
        let lines = bytes.split(separator: UInt8(ascii: "\n")).map { Substring(decoding: $0, as: UTF8.self) }
        if lines.contains("BARRIER=1") {
            readBarrier(lines.count)
            return
        }
        var reader = NotifyReader()
        for line in lines { reader.read(line) }
        messages = reader.finished()
        complaints = Array(reader.complaints.prefix(Self.maximumComplaints))
        let more = reader.complaints.count - complaints.count
        if more > 0 { complaints.append("\(more) more assignments of the notification were not understood.") }
    }

    private static func reasonToRefuse(_ bytes: ArraySlice<UInt8>) -> String? {
        if bytes.count > maximumSize { return "it is longer than \(maximumSize) bytes" }
        if bytes.contains(0) { return "it holds a NUL" }
        return String(validating: bytes, as: UTF8.self) == nil ? "it is not UTF-8" : nil
    }

    /// A barrier stands alone in its datagram, or all of it is ignored.
    private mutating func readBarrier(_ lines: Int) {
        if lines == 1 {
            messages = [.barrier]
        } else {
            complaints = ["The notification was refused as a whole: BARRIER=1 must stand alone."]
        }
    }
}

/// The assignments of a datagram, one after the other.
private struct NotifyReader {
    var complaints: [String] = []
    private var messages: [NotifyMessage] = []
    private var seen: Set<Substring> = []
    private var storeName: String?
    private var stores = false
    private var removes = false

    private static let single: Set<Substring> = [
        "STATUS", "ERRNO", "MAINPID", "EXTEND_TIMEOUT_USEC", "FDNAME", "X_GREENROOM_WAKE_DONE",
    ]

    mutating func read(_ line: Substring) {
        guard let equals = line.utf8.firstIndex(of: UInt8(ascii: "=")) else {
            complain("'\(shown(line))' is no assignment (KEY=VALUE)")
            return
        }
        let key = line[..<equals]
        let value = line[line.utf8.index(after: equals)...]
        if Self.single.contains(key), !seen.insert(key).inserted {
            complain("\(key)= came twice; the first counts")
            return
        }
        readValue(key, value)
    }

    private mutating func readValue(_ key: Substring, _ value: Substring) {
        switch key {
        case "READY": readOne(key, value, .ready)
        case "STOPPING": readOne(key, value, .stopping)
        case "STATUS": messages.append(.status(printable(value)))
        case "ERRNO": readNumber(key, value, 0...4095) { .errno(Int32($0)) }
        // PID_MAX_LIMIT of 64 bit kernels (include/linux/threads.h).
        case "MAINPID": readNumber(key, value, 1...4_194_304) { .mainPID(Int32($0)) }
        case "WATCHDOG": readWatchdog(value)
        case "EXTEND_TIMEOUT_USEC": readNumber(key, value, 1...UInt64(Int64.max)) { .extendTimeout(.microseconds($0)) }
        case "FDSTORE": if isOne(key, value) { stores = true }
        case "FDSTOREREMOVE": if isOne(key, value) { removes = true }
        case "FDNAME": readDescriptorName(value)
        case "X_GREENROOM_BACKGROUND": readOne(key, value, .background)
        case "X_GREENROOM_BEGIN_TASK": readTask(key, value) { .beginTask($0) }
        case "X_GREENROOM_END_TASK": readTask(key, value) { .endTask($0) }
        case "X_GREENROOM_WAKE_DONE": readWakeResult(key, value)
        default: break
        }
    }

    /// The messages, once all lines are read: descriptors are named by a line that may come before or after.
    mutating func finished() -> [NotifyMessage] {
        // As systemd: without a name the descriptors are called "stored"; what to remove must be named.
        if stores { messages.append(.storeDescriptors(name: storeName ?? "stored")) }
        if removes {
            if let storeName {
                messages.append(.removeDescriptors(name: storeName))
            } else {
                complain("FDSTOREREMOVE=1 needs a valid FDNAME=")
            }
        }
        if let last = messages.lastIndex(where: { $0 == .ready || $0 == .stopping }) {
            let kept = messages[last]
            messages = messages[..<last].filter { $0 != .ready && $0 != .stopping } + [kept] + messages[(last + 1)...]
        }
        return messages
    }

    // MARK: Values

    private mutating func isOne(_ key: Substring, _ value: Substring) -> Bool {
        if value == "1" { return true }
        complain("\(key)=\(shown(value)): only \(key)=1 has a meaning")
        return false
    }

    private mutating func readOne(_ key: Substring, _ value: Substring, _ message: NotifyMessage) {
        if isOne(key, value) { messages.append(message) }
    }

    private mutating func readWatchdog(_ value: Substring) {
        switch value {
        case "1": messages.append(.watchdog)
        case "trigger": messages.append(.watchdogTrigger)
        default: complain("WATCHDOG=\(shown(value)): expected 1 or trigger")
        }
    }

    private mutating func readNumber(
        _ key: Substring, _ value: Substring, _ range: ClosedRange<UInt64>, _ make: (UInt64) -> NotifyMessage
    ) {
        let isDecimal = !value.isEmpty && value.utf8.allSatisfy { $0 >= 0x30 && $0 <= 0x39 }
        guard isDecimal, let number = UInt64(value), range.contains(number) else {
            complain("\(key)=\(shown(value)): expected a whole number from \(range.lowerBound) to \(range.upperBound)")
            return
        }
        messages.append(make(number))
    }

    /// fdname_is_valid of systemd: 1 to 255 printable ASCII characters, no colon (LISTEN_FDNAMES= uses it).
    private mutating func readDescriptorName(_ value: Substring) {
        let isValid =
            !value.isEmpty && value.utf8.count <= 255
            && value.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7f && $0 != UInt8(ascii: ":") }
        guard isValid else {
            complain("FDNAME=\(shown(value)): expected 1 to 255 printable ASCII characters without a colon")
            return
        }
        storeName = String(value)
    }

    private mutating func readTask(_ key: Substring, _ value: Substring, _ make: (String) -> NotifyMessage) {
        let isValid =
            !value.isEmpty && value.utf8.count <= NotifyDatagram.maximumTaskName
            && !value.unicodeScalars.contains(where: isControl)
        guard isValid else {
            complain(
                "\(key)=\(shown(value)): expected a name of 1 to \(NotifyDatagram.maximumTaskName) bytes "
                    + "without control characters")
            return
        }
        messages.append(make(String(value)))
    }

    private mutating func readWakeResult(_ key: Substring, _ value: Substring) {
        guard let result = NotifyMessage.WakeResult(rawValue: String(value)) else {
            complain("\(key)=\(shown(value)): expected new-data, no-data or failed")
            return
        }
        messages.append(.wakeDone(result))
    }

    private mutating func complain(_ sentence: String) {
        complaints.append(sentence + ".")
    }

    // MARK: Text

    /// A text for a log line: nothing that steers a terminal, and not too long.
    private func shown(_ text: Substring) -> String {
        let short = text.unicodeScalars.prefix(40)
        return printable(Substring(short)) + (short.endIndex < text.endIndex ? "…" : "")
    }

    private func printable(_ text: Substring) -> String {
        var result = String.UnicodeScalarView()
        for scalar in text.unicodeScalars { result.append(isControl(scalar) ? "\u{FFFD}" : scalar) }
        return String(result)
    }

    /// C0, DEL and C1, which a terminal may obey.
    private func isControl(_ scalar: Unicode.Scalar) -> Bool {
        scalar.value < 0x20 || (0x7f...0x9f).contains(scalar.value)
    }
}
