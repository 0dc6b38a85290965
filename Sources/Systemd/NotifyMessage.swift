import Posix

/// One assignment of an app on its notify socket (sd_notify(3), and Greenroom's own X_GREENROOM_ names).
package enum NotifyMessage: Equatable, Sendable {
    case ready
    case stopping
    case status(String)
    /// An errno, 0 … 4095.
    case errno(Int32)
    case mainPID(Int32)
    case watchdog
    /// The app asks to be treated as if its watchdog timeout had elapsed.
    case watchdogTrigger
    /// The time between heartbeats from now on; zero: none is expected.
    case watchdogTime(Duration)
    case extendTimeout(Duration)
    /// Store the descriptors of the datagram under this name. `type`: of a snapshot; `nil`: it is a PNG.
    case storeDescriptors(name: String, type: String? = nil)
    case removeDescriptors(name: String)
    /// Close the descriptor of the datagram after everything before it has been handled.
    case barrier
    case background
    case beginTask(String)
    case endTask(String)
    /// How far a task is. `title`: empty: it stays the same.
    case taskProgress(String, done: UInt64, total: UInt64, title: String)
    /// A background mode, by its name.
    case beginMode(String)
    case endMode(String)
    /// A scene, by its name. `role`: `nil` is the usual one.
    case beginScene(String, role: String? = nil)
    case endScene(String)
    /// `id`: the wake that is completed; `nil`: the oldest one.
    case wakeDone(WakeResult, id: UInt64? = nil)
    /// Nothing to do until something arrives; `false`: that is over.
    case idle(Bool)

    package enum WakeResult: String, Sendable {
        case newData = "new-data"
        case noData = "no-data"
        case failed
    }
}

/// A parsed datagram of a notify socket. Its contents affect only the app that sent it.
///
/// Duplicates are handled as in systemd (252, core/manager.c and core/service.c): of READY=1 and STOPPING=1 the last counts, of
/// every other key with one value the first; there may be several tasks. Unknown keys have no effect, since newer programs may
/// use them.
package struct NotifyDatagram: Equatable, Sendable {
    /// The assignments, in their order.
    package var messages: [NotifyMessage] = []
    /// The assignments that are not valid, a sentence each.
    package var warnings: [String] = []
    /// Keys that systemd defines and that have no effect here, each once (`whyIgnored`).
    package var ignoredKeys: [String] = []
    /// Keys that are neither known nor systemd's, each once, at most `maximumWarnings`: they may be typing errors.
    package var unknownKeys: [String] = []
    /// The number of lines, whatever they contain: a line costs the receiver work also if it is ignored.
    package private(set) var lines = 0

    /// systemd's NOTIFY_BUFFER_MAX, which is PIPE_BUF.
    package static let maximumSize = 4096
    /// Bytes of a task's name: as long as an app's ID.
    package static let maximumTaskName = 128
    /// Bytes of a status text as it is kept, with U+FFFD for each control character. A longer one is cut off.
    package static let maximumStatus = maximumSize
    /// Warnings for one datagram, which can contain 2,000 invalid lines; the rest are counted.
    package static let maximumWarnings = 8

    /// The keys that have an effect.
    package static let keys = [
        "READY", "STOPPING", "STATUS", "ERRNO", "MAINPID", "WATCHDOG", "WATCHDOG_USEC",
        "EXTEND_TIMEOUT_USEC", "FDSTORE", "FDSTOREREMOVE",
        "FDNAME", "BARRIER", "X_GREENROOM_BACKGROUND", "X_GREENROOM_BEGIN_TASK", "X_GREENROOM_END_TASK",
        "X_GREENROOM_TASK_PROGRESS", "X_GREENROOM_TASK_TITLE",
        "X_GREENROOM_BEGIN_MODE", "X_GREENROOM_END_MODE", "X_GREENROOM_WAKE_DONE", "X_GREENROOM_WAKE_ID",
        "X_GREENROOM_IDLE", "X_GREENROOM_BEGIN_SCENE", "X_GREENROOM_END_SCENE", "X_GREENROOM_SCENE_ROLE",
        "X_GREENROOM_SNAPSHOT_TYPE",
    ]
    /// Keys of sd_notify(3) (systemd 258) that need no answer. MONOTONIC_USEC= belongs to RELOADING=1, and FDPOLL=0 asks for what is
    /// done in any case. INVOCATION_ID= is for systemd itself.
    fileprivate static let otherKeys: Set<String> = ["MONOTONIC_USEC", "FDPOLL", "INVOCATION_ID"]
    /// Keys of sd_notify(3) that have no effect, with what counts here instead.
    private static let ignored: [String: String] = [
        "RELOADING": "the state of an app does not show that it reloads", "BUSERROR": "ERRNO= and STATUS= are shown",
        "VARLINKERROR": "ERRNO= and STATUS= are shown", "EXIT_STATUS": "the exit status of the main process counts",
        "NOTIFYACCESS": "NotifyAccess= of the manifest counts", "MAINPIDFD": "MAINPID= names the main process",
        "MAINPIDFDID": "MAINPID= names the main process", "RESTART_RESET": "Relaunch= has intervals of its own",
    ]

    /// What counts instead of a key that systemd defines, as the end of a sentence; `nil`: the key has an effect, or is not systemd's.
    package static func whyIgnored(_ key: String) -> String? { ignored[key] }

    /// - Parameter bytes: the whole datagram. One that the receiver has truncated must have more than `maximumSize` bytes.
    package init(_ bytes: [UInt8]) {
        // One NUL at the end is permitted, as by systemd.
        let bytes = bytes.last == 0 ? bytes.dropLast() : bytes[...]
        if let reason = Self.reasonToRefuse(bytes) {
            warnings = ["The message was ignored: \(reason)."]
            return
        }
        // By bytes: a Swift character can contain "\r" and a line feed, or "=" and an accent.
        let lines = bytes.split(separator: UInt8(ascii: "\n"))
        self.lines = lines.count
        if lines.contains(where: { $0.elementsEqual("BARRIER=1".utf8) }) {
            readBarrier(lines.count)
            return
        }
        var reader = NotifyReader()
        for line in lines { reader.read(line) }
        messages = reader.finished()
        warnings = reader.warnings
        ignoredKeys = reader.ignoredKeys
        unknownKeys = reader.unknownKeys
        if reader.unreported > 0 {
            warnings.append("\(reader.unreported) more assignments of the message are not valid.")
        }
    }

    private static func reasonToRefuse(_ bytes: ArraySlice<UInt8>) -> String? {
        if bytes.count > maximumSize { return "it is longer than \(maximumSize) bytes" }
        if bytes.contains(0) { return "it contains a NUL" }
        return String(validating: bytes, as: UTF8.self) == nil ? "it is not UTF-8" : nil
    }

    /// A barrier must be the only assignment of its datagram; otherwise all of it is ignored.
    private mutating func readBarrier(_ lines: Int) {
        if lines == 1 {
            messages = [.barrier]
        } else {
            warnings = ["The message was ignored: BARRIER=1 must be the only assignment."]
        }
    }
}

/// Reads the assignments of a datagram.
private struct NotifyReader {
    /// At most `NotifyDatagram.maximumWarnings`.
    private(set) var warnings: [String] = []
    /// How many more there would be.
    private(set) var unreported = 0
    private(set) var ignoredKeys: [String] = []
    /// At most `NotifyDatagram.maximumWarnings`.
    private(set) var unknownKeys: [String] = []
    private var messages: [NotifyMessage] = []
    private var seen: Set<String> = []
    private var storeName: String?
    private var snapshotType: String?
    private var stores = false
    private var removes = false

    private var wakeResult: NotifyMessage.WakeResult?
    private var wakeID: UInt64?
    private var sceneRole: String?
    private var taskTitle: String?

    private static let single: Set<String> = [
        "STATUS", "ERRNO", "MAINPID", "WATCHDOG_USEC", "EXTEND_TIMEOUT_USEC", "FDNAME", "X_GREENROOM_WAKE_DONE",
        "X_GREENROOM_WAKE_ID",
        "X_GREENROOM_IDLE", "X_GREENROOM_BEGIN_SCENE", "X_GREENROOM_END_SCENE", "X_GREENROOM_SCENE_ROLE",
        "X_GREENROOM_SNAPSHOT_TYPE", "X_GREENROOM_TASK_PROGRESS", "X_GREENROOM_TASK_TITLE",
    ]

    /// The largest number that JSON has exactly. Wakes are counted from 1.
    private static let largestWakeID: UInt64 = 1 << 53

    /// Bytes of a key that is compared with those that are known, which are shorter.
    private static let longestKey = 64

    /// Lines that are not valid or not known take no memory: a datagram can contain 2,000 of them.
    mutating func read(_ line: ArraySlice<UInt8>) {
        guard let equals = line.firstIndex(of: UInt8(ascii: "=")) else {
            warn("'\(shown(Substring(decoding: line, as: UTF8.self)))' is not an assignment (KEY=VALUE)")
            return
        }
        let name = line[..<equals]
        guard name.count <= Self.longestKey else { return }
        let key = String(decoding: name, as: UTF8.self)
        let value = Substring(decoding: line[(equals + 1)...], as: UTF8.self)
        if Self.single.contains(key), !seen.insert(key).inserted {
            warn("\(key)= is assigned twice; the first assignment counts")
            return
        }
        readValue(key, value)
    }

    private mutating func readValue(_ key: String, _ value: Substring) {
        switch key {
        case "READY": readOne(key, value, .ready)
        case "STOPPING": readOne(key, value, .stopping)
        case "STATUS": messages.append(.status(value.printable(upTo: NotifyDatagram.maximumStatus)))
        case "ERRNO": readNumber(key, value, 0...4095) { .errno(Int32($0)) }
        // PID_MAX_LIMIT of 64 bit kernels (include/linux/threads.h).
        case "MAINPID": readNumber(key, value, 1...4_194_304) { .mainPID(Int32($0)) }
        case "WATCHDOG": readWatchdog(value)
        // As in systemd, 0 and the largest number (USEC_INFINITY) end the watchdog.
        case "WATCHDOG_USEC":
            readNumber(key, value, 0...UInt64.max) { .watchdogTime($0 > UInt64(Int64.max) ? .zero : .microseconds($0)) }
        case "EXTEND_TIMEOUT_USEC": readNumber(key, value, 1...UInt64(Int64.max)) { .extendTimeout(.microseconds($0)) }
        case "FDSTORE": if isOne(key, value) { stores = true }
        case "FDSTOREREMOVE": if isOne(key, value) { removes = true }
        case "FDNAME": readDescriptorName(value)
        case "X_GREENROOM_BACKGROUND": readOne(key, value, .background)
        case "X_GREENROOM_BEGIN_TASK": readName(key, value) { .beginTask($0) }
        case "X_GREENROOM_END_TASK": readName(key, value) { .endTask($0) }
        case "X_GREENROOM_TASK_PROGRESS": readProgress(key, value)
        case "X_GREENROOM_TASK_TITLE": taskTitle = String(value)
        case "X_GREENROOM_BEGIN_MODE": readName(key, value) { .beginMode($0) }
        case "X_GREENROOM_END_MODE": readName(key, value) { .endMode($0) }
        case "X_GREENROOM_BEGIN_SCENE": readName(key, value) { .beginScene($0) }
        case "X_GREENROOM_END_SCENE": readName(key, value) { .endScene($0) }
        case "X_GREENROOM_SCENE_ROLE": sceneRole = String(value)
        case "X_GREENROOM_WAKE_DONE": readWakeResult(key, value)
        case "X_GREENROOM_WAKE_ID":
            if let id = number(key, value, 1...Self.largestWakeID) { wakeID = id }
        case "X_GREENROOM_IDLE": readIdle(key, value)
        case "X_GREENROOM_SNAPSHOT_TYPE": readSnapshotType(key, value)
        // Any other value than 1.
        case "BARRIER": break
        default: recordUnknown(key)
        }
    }

    private mutating func recordUnknown(_ key: String) {
        if NotifyDatagram.whyIgnored(key) != nil {
            if !ignoredKeys.contains(key) { ignoredKeys.append(key) }
            return
        }
        guard unknownKeys.count < NotifyDatagram.maximumWarnings, !NotifyDatagram.otherKeys.contains(key),
            !unknownKeys.contains(key)
        else { return }
        unknownKeys.append(key)
    }

    /// Returns the messages after all lines have been read: the name of descriptors may be before or after FDSTORE=1.
    mutating func finished() -> [NotifyMessage] {
        // As in systemd: descriptors without a name are called "stored"; FDSTOREREMOVE=1 needs a name.
        if snapshotType != nil, !stores || storeName != "snapshot" {
            warn("X_GREENROOM_SNAPSHOT_TYPE= needs FDSTORE=1 and FDNAME=snapshot")
            snapshotType = nil
        }
        if stores { messages.append(.storeDescriptors(name: storeName ?? "stored", type: snapshotType)) }
        if removes {
            if let storeName {
                messages.append(.removeDescriptors(name: storeName))
            } else {
                warn("FDSTOREREMOVE=1 needs a valid FDNAME=")
            }
        }
        finishWake()
        finishScene()
        finishProgress()
        if let last = messages.lastIndex(where: { $0 == .ready || $0 == .stopping }) {
            let kept = messages[last]
            messages = messages[..<last].filter { $0 != .ready && $0 != .stopping } + [kept] + messages[(last + 1)...]
        }
        return messages
    }

    /// The number of a wake may be before or after its result. With one that is not valid no wake is completed: it was meant
    /// for one that is not the oldest.
    private mutating func finishWake() {
        guard let wakeResult else {
            if wakeID != nil { warn("X_GREENROOM_WAKE_ID= needs a valid X_GREENROOM_WAKE_DONE=") }
            return
        }
        if wakeID == nil, seen.contains("X_GREENROOM_WAKE_ID") { return }
        messages.append(.wakeDone(wakeResult, id: wakeID))
    }

    /// The role of a scene may be before or after its name.
    private mutating func finishScene() {
        guard let sceneRole else { return }
        for index in messages.indices {
            guard case .beginScene(let name, _) = messages[index] else { continue }
            return messages[index] = .beginScene(name, role: sceneRole)
        }
        warn("X_GREENROOM_SCENE_ROLE= needs a valid X_GREENROOM_BEGIN_SCENE=")
    }

    /// The title of a task may be before or after its progress.
    private mutating func finishProgress() {
        guard let taskTitle else { return }
        for index in messages.indices {
            guard case .taskProgress(let name, let done, let total, _) = messages[index] else { continue }
            return messages[index] = .taskProgress(name, done: done, total: total, title: taskTitle)
        }
        warn("X_GREENROOM_TASK_TITLE= needs a valid X_GREENROOM_TASK_PROGRESS=")
    }

    // MARK: Values

    private mutating func isOne(_ key: String, _ value: Substring) -> Bool {
        if value == "1" { return true }
        warn("\(key)=\(shown(value)): expected 1")
        return false
    }

    private mutating func readOne(_ key: String, _ value: Substring, _ message: NotifyMessage) {
        if isOne(key, value) { messages.append(message) }
    }

    private mutating func readWatchdog(_ value: Substring) {
        switch value {
        case "1": messages.append(.watchdog)
        case "trigger": messages.append(.watchdogTrigger)
        default: warn("WATCHDOG=\(shown(value)): expected 1 or trigger")
        }
    }

    private mutating func readIdle(_ key: String, _ value: Substring) {
        switch value {
        case "1": messages.append(.idle(true))
        case "0": messages.append(.idle(false))
        default: warn("\(key)=\(shown(value)): expected 1 or 0")
        }
    }

    private mutating func readSnapshotType(_ key: String, _ value: Substring) {
        guard MediaType.isValid(value) else {
            return warn("\(key)=\(shown(value)): expected \(MediaType.expected)")
        }
        snapshotType = String(value)
    }

    private mutating func readNumber(
        _ key: String, _ value: Substring, _ range: ClosedRange<UInt64>, _ make: (UInt64) -> NotifyMessage
    ) {
        if let number = number(key, value, range) { messages.append(make(number)) }
    }

    private mutating func number(_ key: String, _ value: Substring, _ range: ClosedRange<UInt64>) -> UInt64? {
        guard let number = decimal(value), range.contains(number) else {
            warn("\(key)=\(shown(value)): expected a whole number from \(range.lowerBound) to \(range.upperBound)")
            return nil
        }
        return number
    }

    /// fdname_is_valid of systemd: 1 to 255 printable ASCII characters, no colon (LISTEN_FDNAMES= uses it).
    private mutating func readDescriptorName(_ value: Substring) {
        let isValid =
            !value.isEmpty && value.utf8.count <= 255
            && value.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7f && $0 != UInt8(ascii: ":") }
        guard isValid else {
            warn("FDNAME=\(shown(value)): expected 1 to 255 printable ASCII characters without a colon")
            return
        }
        storeName = String(value)
    }

    private mutating func readName(_ key: String, _ value: Substring, _ make: (String) -> NotifyMessage) {
        let isValid =
            !value.isEmpty && value.utf8.count <= NotifyDatagram.maximumTaskName
            && !value.unicodeScalars.contains(where: \.isControl)
        guard isValid else {
            warn(
                "\(key)=\(shown(value)): expected a name of 1 to \(NotifyDatagram.maximumTaskName) bytes "
                    + "without control characters")
            return
        }
        messages.append(make(String(value)))
    }

    /// `DONE/TOTAL NAME`.
    private mutating func readProgress(_ key: String, _ value: Substring) {
        let parts = value.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: false)
        let numbers = parts[0].split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, numbers.count == 2, let done = decimal(numbers[0]), let total = decimal(numbers[1])
        else { return warn("\(key)=\(shown(value)): expected DONE/TOTAL NAME, such as 40/100 export") }
        readName(key, parts[1]) { .taskProgress($0, done: done, total: total, title: "") }
    }

    private mutating func readWakeResult(_ key: String, _ value: Substring) {
        guard let result = NotifyMessage.WakeResult(rawValue: String(value)) else {
            warn("\(key)=\(shown(value)): expected new-data, no-data or failed")
            return
        }
        wakeResult = result
    }

    private mutating func warn(_ sentence: @autoclosure () -> String) {
        if warnings.count < NotifyDatagram.maximumWarnings {
            warnings.append(sentence() + ".")
        } else {
            unreported += 1
        }
    }
}

private func decimal(_ text: Substring) -> UInt64? {
    !text.isEmpty && text.utf8.allSatisfy { $0 >= 0x30 && $0 <= 0x39 } ? UInt64(text) : nil
}

/// A text for a log line: at most 40 characters, without control characters.
private func shown(_ text: Substring) -> String {
    let short = text.unicodeScalars.prefix(40)
    return String(short).printable() + (short.endIndex < text.endIndex ? "…" : "")
}
