extension ActivationCause: SavedCase {}
extension ResignCause: SavedCase {}

extension Notice: SavedUnion {
    package func save(to writer: inout ByteWriter) {
        switch self {
        case .willResignActive(let cause): writer.put(case: 1, cause)
        case .didEnterBackground: writer.put(case: 2)
        case .willEnterForeground: writer.put(case: 3)
        case .didBecomeActive(let cause): writer.put(case: 4, cause)
        case .willTerminate: writer.put(case: 5)
        case .memoryWarning(let level): writer.put(case: 6, level)
        case .tasksExpiring: writer.put(case: 7)
        case .openURL(let url): writer.put(case: 8, url)
        case .willSuspend: writer.put(case: 9)
        case .didResume(let time, let changed): writer.put(case: 10, time, SavedKinds(list: changed))
        case .scene(let id, let notice): writer.put(case: 120, id, notice)
        case .takeSnapshot: writer.put(case: 140)
        case .takeSceneSnapshot(let id): writer.put(case: 180, id)
        case .withdraw: writer.put(case: 183)
        case .sceneClosed(let id): writer.put(case: 181, id)
        case .didDiscardScenes(let list): writer.put(case: 182, SavedScenes(list: list))
        }
    }

    package init?(case number: UInt64, _ values: inout RecordReader) throws(SavedError) {
        switch number {
        case 1:
            // Releases before 0.3.0 wrote no cause here and below.
            var cause: ResignCause?
            try values.optional(1, &cause)
            self = .willResignActive(cause ?? .background)
        case 2: self = .didEnterBackground
        case 3: self = .willEnterForeground
        case 4:
            var cause: ActivationCause?
            try values.optional(1, &cause)
            self = .didBecomeActive(cause ?? .return)
        case 5: self = .willTerminate
        case 6: self = .memoryWarning(try values.next())
        case 7: self = .tasksExpiring
        case 8: self = .openURL(try values.next())
        case 9: self = .willSuspend
        case 10:
            let (time, changed): (Duration, SavedKinds) = (try values.next(), try values.next())
            self = .didResume(after: time, changed: changed.list)
        case 120: self = .scene(try values.next(), try values.next())
        case 140: self = .takeSnapshot
        case 180: self = .takeSceneSnapshot(try values.next())
        case 183: self = .withdraw
        case 181: self = .sceneClosed(try values.next())
        case 182:
            let scenes: SavedScenes = try values.next()
            self = .didDiscardScenes(scenes.list)
        default: return nil
        }
    }
}

/// Kinds of notifications, as one value of a case.
private struct SavedKinds: SavedRecord {
    static var blank: SavedKinds { SavedKinds(list: []) }
    var list: [String]

    mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.list(1, &list, upTo: Notification.kinds.count + 1 + 2 * NotificationQueue.maximumKinds)
    }
}

extension URLQueue: SavedRecord {
    package static var blank: URLQueue { URLQueue() }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.list(1, &pending, upTo: Self.maximum + 1)
        try coder.list(2, &afterEnd, upTo: Self.maximum + 1)
    }
}

extension URLQueue.Entry: SavedRecord {
    package static var blank: URLQueue.Entry { URLQueue.Entry(url: "") }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &url)
        try coder.optional(2, &request)
        try coder.flag(3, &isOfLaunch)
    }
}
