extension HookKind: SavedCase {}
extension StateReason: SavedCase {}

extension HookKinds: SavedValue {
    package static var form: SavedForm { .number }
    package func save(to writer: inout ByteWriter) { writer.put(number: UInt64(rawValue)) }
    package init(from reader: inout ByteReader) throws(SavedError) {
        self.init(rawValue: UInt8(try reader.number(upTo: 0xff, "hooks")))
    }
}

extension Hook: SavedRecord {
    package static var blank: Hook { Hook(.enterBackground, entering: .background, .requested) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &kind)
        try coder.required(2, &state)
        try coder.field(3, &reason)
        try coder.optional(4, &slept)
    }
}

extension HookOutcome: SavedUnion {
    package func save(to writer: inout ByteWriter) {
        switch self {
        case .ended(let status): writer.put(case: 1, status)
        case .notStarted(let sentence): writer.put(case: 2, sentence)
        }
    }

    package init?(case number: UInt64, _ values: inout RecordReader) throws(SavedError) {
        switch number {
        case 1: self = .ended(try values.next())
        case 2: self = .notStarted(try values.next())
        default: return nil
        }
    }
}

extension Hooks: SavedRecord {
    package static var blank: Hooks { Hooks() }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.field(1, &number)
        try coder.optional(2, &running)
        try coder.list(3, &waiting, upTo: Self.maximumWaiting)
        try coder.optional(4, &asleepSince)
        try coder.optional(5, &resumeReason)
        try coder.flag(6, &hasRefused)
        try coder.optional(7, &freezeAt)
    }

    package var fault: String? {
        if number < 0 { return "hook \(number)" }
        return running == nil && !waiting.isEmpty ? "hooks wait for none" : nil
    }
}

extension Hooks.Running: SavedRecord {
    package static var blank: Hooks.Running { Hooks.Running(hook: .blank, began: .origin, due: .origin) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &hook)
        try coder.required(2, &began)
        try coder.required(3, &due)
    }
}
