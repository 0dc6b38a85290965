import LifecycleCore
import Linux

/// What a daemon that ended without a word has left.
struct RecoveredState {
    var core: LifecycleCore
    var notes: [String: [UInt8]] = [:]
    /// Effects of the last event that were not performed; the first of them perhaps. And how many were.
    var effects: [Effect] = []
    var effectsPerformed = 0
    /// Events that the core has not heard of.
    var events: [(event: Event, at: Instant)] = []
    /// The last instant that is known of it.
    var last = Instant.origin
    /// Whose notify socket was being read: something that it said may be lost.
    var reading: RunID?
    /// Of another boot: nothing of it lives.
    var isOfAnotherBoot = false
    /// Said in the log.
    var remarks: [String] = []
    /// How many daemons have died of it.
    fileprivate(set) var fatalities: UInt64 = 0
    /// What it was read from: whether this daemon dies of it, too, is counted there.
    fileprivate var file: MappedFile?
    /// Where the next daemon may write on: all of the file is as it was meant.
    fileprivate(set) var place: Logbook.Place?
}

extension Logbook {
    /// A daemon that dies of what it finds must not do so for ever: from the second time on the events that nobody has
    /// decided on are left out, and after the fourth everything is. To be killed by others is not to die of it.
    private static let cautiousAfter: UInt64 = 2
    private static let givesUpAfter: UInt64 = 4

    /// - Returns: `nil` where there is nothing to go on with.
    /// - Throws: what is wrong with it. Then there is nothing to go on with either.
    static func read(at path: String) throws -> RecoveredState? {
        guard exists(at: path) else { return nil }
        let file = try MappedFile(at: path, creating: nil)
        guard file.size >= Word.entries, file.word(at: Word.magic) == magic else {
            throw Problem("\(path): no logbook of Greenroom's")
        }
        let version = file.word(at: Word.version)
        guard version == Self.version else { throw Problem("\(path): version \(version), expected \(Self.version)") }
        let fatalities = file.word(at: Word.fatalities)
        guard fatalities < givesUpAfter else { throw Problem("\(path): \(fatalities) daemons have died of it") }
        file.countOwnEnd(at: Word.fatalities)
        let length = file.word(at: Word.length)
        guard length <= UInt64(file.size - Word.entries) else {
            throw Problem("\(path): \(length) bytes of entries in a file of \(file.size)")
        }
        var reading = Reading(
            path: path, progress: file.word(at: Word.progress), isCautious: fatalities >= cautiousAfter)
        try reading.take(file.bytes(at: Word.entries, count: Int(length)))
        var recovered = try reading.result()
        recovered.file = file
        recovered.fatalities = fatalities
        let number = file.word(at: Word.reading)
        recovered.reading = number == 0 ? nil : RunID(number)
        let boot = file.bytes(at: Word.boot, count: 36)
        if recovered.remarks.isEmpty {
            recovered.place = Place(
                file: file, end: Word.entries + Int(length), snapshotEnd: reading.snapshotEnd,
                eventsBegun: reading.eventsBegun)
        }
        recovered.isOfAnotherBoot = boot != Array(bootID().utf8.prefix(36))
        return recovered
    }

    private struct Reading {
        let path: String
        let progress: UInt64
        let isCautious: Bool
        private var recovered: RecoveredState?
        private var eventsRead: UInt64 = 0
        private(set) var snapshotEnd = Word.entries

        init(path: String, progress: UInt64, isCautious: Bool) {
            self.path = path
            self.progress = progress
            self.isCautious = isCautious
        }

        var eventsBegun: UInt64 { progress >> Logbook.effectBits }
        private var effectsPerformed: Int { Int(progress & (1 << Logbook.effectBits - 1)) }

        mutating func take(_ bytes: [UInt8]) throws {
            var rest = bytes[...]
            while !rest.isEmpty {
                let offset = rest.startIndex + Word.entries
                guard let entry = Self.next(&rest) else {
                    // Whole entries only are counted in, so this is damage, and what follows is worth nothing.
                    guard recovered != nil else { throw Problem("\(path): byte \(offset): the snapshot is damaged") }
                    recovered?.remarks.append(
                        "\(path): byte \(offset): a damaged entry, and all after it, are left out")
                    return
                }
                do {
                    try take(entry)
                } catch let error as SavedError {
                    throw Problem("\(path): entry at byte \(offset): \(error)")
                }
            }
        }

        private static func next(_ rest: inout ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
            func word(_ at: Int) -> UInt32 {
                (0..<4).reduce(0) { $0 | UInt32(rest[rest.startIndex + at + $1]) << (8 * UInt32($1)) }
            }
            guard rest.count >= 9 else { return nil }
            let (length, checksum) = (Int(word(0)), word(4))
            guard length >= 1, length <= rest.count - 8 else { return nil }
            let entry = rest.dropFirst(8).prefix(length)
            guard Checksum.crc32(entry.prefix(1)) ^ Checksum.crc32(entry.dropFirst()) == checksum else { return nil }
            rest = rest.dropFirst(8 + length)
            return entry
        }

        private mutating func take(_ entry: ArraySlice<UInt8>) throws {
            let content = entry.dropFirst()
            switch entry.first.flatMap(Kind.init) {
            case .core:
                recovered = RecoveredState(core: LifecycleCore(recovering: try SavedCore(reading: content)))
                snapshotEnd += content.count + 9
            case .event: try takeEvent(content)
            case .note:
                let record = try LoggedRecord(reading: content)
                recovered?.notes[record.name] = record.content
            case nil: throw Problem("\(path): an entry of an unknown kind")
            }
        }

        private mutating func takeEvent(_ content: ArraySlice<UInt8>) throws {
            let logged = try LoggedEvent(reading: content)
            let (event, now) = (logged.event, logged.at)
            eventsRead += 1
            recovered?.last = now
            guard eventsRead <= eventsBegun else {
                if !isCautious { recovered?.events.append((event, now)) }
                return
            }
            let effects = recovered?.core.handle(event, at: now) ?? []
            guard eventsRead == eventsBegun else { return }
            let done = effectsPerformed
            recovered?.effects = Array(effects.dropFirst(done))
            recovered?.effectsPerformed = done
        }

        func result() throws -> RecoveredState {
            guard var recovered else { throw Problem("\(path): no snapshot") }
            if eventsBegun > eventsRead {
                recovered.remarks.append("\(path): \(eventsBegun - eventsRead) events are missing")
            }
            if isCautious {
                recovered.remarks.append("\(path): daemons have died of it; undecided events are left out")
            }
            return recovered
        }
    }
}
