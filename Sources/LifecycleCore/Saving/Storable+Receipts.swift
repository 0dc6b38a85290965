extension ByteReader {
    mutating func candidates() throws(SavedError) -> [Receipt.Candidate] {
        try take(upTo: Receipt.maximumCandidates, "candidates")
    }
}

extension Receipt.Candidate: Storable {
    package func store(in writer: inout ByteWriter) {
        writer.put(app)
        writer.put(state)
        writer.put(size: memory)
    }

    package init(from reader: inout ByteReader) throws(SavedError) {
        self.init(app: try reader.take(), state: try reader.take(), memory: try reader.size())
    }
}

extension Receipt.DeadlineUse: Storable {
    package func store(in writer: inout ByteWriter) {
        writer.put(what)
        writer.put(allowed)
        writer.put(wall)
        writer.put(cpu)
    }

    package init(from reader: inout ByteReader) throws(SavedError) {
        self.init(
            what: try reader.take(), allowed: try reader.take(), wall: try reader.take(), cpu: try reader.optional())
    }
}

extension ExitStatus: Storable {
    package func store(in writer: inout ByteWriter) {
        switch self {
        case .exited(let code):
            writer.put(byte: 0)
            writer.put(signed: Int64(code))
        case .signaled(let signal, let coreDumped):
            writer.put(byte: coreDumped ? 2 : 1)
            writer.put(signed: Int64(signal))
        case .unknown: writer.put(byte: 3)
        case .lost: writer.put(byte: 4)
        }
    }

    package init(from reader: inout ByteReader) throws(SavedError) {
        switch try reader.byte() {
        case 0: self = .exited(try reader.int32("an exit status"))
        case 1: self = .signaled(try reader.int32("a signal"), coreDumped: false)
        case 2: self = .signaled(try reader.int32("a signal"), coreDumped: true)
        case 3: self = .unknown
        case 4: self = .lost
        case let other: throw reader.unknown(other, "way to end")
        }
    }
}

extension Receipt: Storable {
    package func store(in writer: inout ByteWriter) {
        writer.put(number: id)
        writer.put(app)
        writer.put(run)
        writer.put(pid: pid)
        writer.put(state)
        writer.put(namespace)
        writer.put(number: UInt64(code))
        writer.put(text: explanation)
        writer.put(deadline)
        writer.put(candidates)
        writer.put(exit)
        writer.put(wall)
        writer.put(cpu)
        writer.put(size: memory)
    }

    package init(from reader: inout ByteReader) throws(SavedError) {
        self.init(
            id: try reader.number(upTo: SavedLimits.counter, "receipt"), app: try reader.take(), run: try reader.take(),
            pid: try reader.pid(), state: try reader.take(), namespace: try reader.take(),
            code: UInt32(try reader.number(upTo: UInt64(UInt32.max), "a code")),
            explanation: try reader.text(upTo: SavedLimits.text, "an explanation"), deadline: try reader.optional(),
            candidates: try reader.candidates(), exit: try reader.take(), wall: try reader.take(),
            cpu: try reader.take(), memory: try reader.size())
    }
}
