extension Receipt: SavedRecord {
    package static var blank: Receipt {
        Receipt(
            id: 0, app: .blank, run: RunID(0), pid: nil, state: .notRunning, namespace: .exit, code: 0, explanation: "",
            exit: .unknown, wall: .zero, cpu: .zero, memory: 0)
    }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &id)
        try coder.required(2, &app)
        try coder.required(3, &run)
        try coder.optional(4, &pid)
        try coder.required(5, &state)
        try coder.required(6, &namespace)
        try coder.required(7, &code)
        try coder.required(8, &explanation)
        try coder.optional(9, &deadline)
        try coder.list(10, &candidates, upTo: Self.maximumCandidates)
        try coder.field(11, &exit)
        try coder.required(12, &wall)
        try coder.field(13, &cpu)
        try coder.size(14, &memory)
        try coder.optional(15, &remaining)
        try coder.optional(16, &failure)
        try coder.size(17, &peakMemory)
        try coder.flag(18, &mayReturn)
        try coder.flag(19, &isForMemory)
    }

    package var fault: String? { id > SavedLimits.counter ? "receipt \(id) is out of bounds" : nil }
}

extension Receipt.DeadlineUse: SavedRecord {
    package static var blank: Receipt.DeadlineUse {
        Receipt.DeadlineUse(what: .launch, allowed: .zero, wall: .zero, cpu: nil)
    }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &what)
        try coder.required(2, &allowed)
        try coder.required(3, &wall)
        try coder.optional(4, &cpu)
        try coder.field(5, &credited)
        try coder.optional(6, &hiddenSockets)
        try coder.optional(7, &obstacle)
    }
}

extension Receipt.Candidate: SavedRecord {
    package static var blank: Receipt.Candidate {
        Receipt.Candidate(app: .blank, state: .notRunning, memory: 0)
    }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &app)
        try coder.required(2, &state)
        try coder.size(3, &memory)
    }
}

extension RemainingProcesses: SavedRecord {
    package static var blank: RemainingProcesses { RemainingProcesses(count: 0, names: []) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &count)
        try coder.list(2, &names, upTo: Self.maximumNames)
    }
}

extension ExitStatus: SavedUnion {
    package func save(to writer: inout ByteWriter) {
        switch self {
        case .exited(let code): writer.put(case: 1, code)
        case .signaled(let signal, let coreDumped): writer.put(case: 2, signal, coreDumped)
        case .unknown: writer.put(case: 3)
        case .lost: writer.put(case: 4)
        }
    }

    package init?(case number: UInt64, _ values: inout RecordReader) throws(SavedError) {
        switch number {
        case 1: self = .exited(try values.next())
        case 2: self = .signaled(try values.next(), coreDumped: try values.next())
        case 3: self = .unknown
        case 4: self = .lost
        default: return nil
        }
    }
}

extension AppID {
    /// The ID of a record before any field was read.
    package static var blank: AppID {
        guard let id = AppID("blank") else { preconditionFailure("'blank' is an app ID") }
        return id
    }
}
