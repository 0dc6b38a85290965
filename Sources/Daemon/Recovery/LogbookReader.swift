import LifecycleCore
import Linux
import Posix

extension Logbook {
    /// If this many daemons died of a recovery, the events that the core has not handled are ignored.
    private static let cautiousAfter: UInt64 = 2
    /// If this many died, the whole file is ignored. A daemon that another process killed does not count.
    private static let givesUpAfter: UInt64 = 4

    /// Reads what the previous daemon recorded.
    /// - Returns: `nil` if there is no file.
    /// - Throws: why the file cannot be used.
    static func read(at path: String) throws -> RecoveredState? {
        guard exists(at: path) else { return nil }
        let file = try MappedFile(at: path, creating: nil)
        guard file.size >= Word.entries, file.word(at: Word.magic) == LogbookFormat.magic else {
            throw Problem("\(path) is not a logbook of greenroomd")
        }
        let format = file.word(at: Word.format)
        guard format == LogbookFormat.version else {
            throw Problem("\(path): file format \(format), expected \(LogbookFormat.version)")
        }
        let fatalities = file.word(at: Word.fatalities)
        guard fatalities < givesUpAfter else {
            throw Problem("\(path): \(fatalities) daemons crashed while they recovered from it")
        }
        file.countOwnEnd(at: Word.fatalities)
        let length = file.word(at: Word.length)
        guard length <= UInt64(file.size - Word.entries) else {
            throw Problem("\(path): \(length) bytes of entries in a file of \(file.size)")
        }
        var reading = Reading(
            path: path, writer: text(file.bytes(at: Word.writer, count: Word.clock - Word.writer)),
            progress: file.word(at: Word.progress), isCautious: fatalities >= cautiousAfter)
        try reading.take(file.bytes(at: Word.entries, count: Int(length)))
        var recovered = try reading.result()
        recovered.file = file
        recovered.fatalities = fatalities
        recovered.eventNumber = file.word(at: Word.firstEvent) &+ reading.eventsHandled
        let number = file.word(at: Word.reading)
        recovered.reading = number == 0 ? nil : RunID(number)
        // Another version's file is replaced: it must not contain events of this version.
        if recovered.warnings.isEmpty, reading.canReplay {
            recovered.position = Position(
                file: file, end: Word.entries + Int(length), snapshotEnd: reading.snapshotEnd,
                eventsHandled: reading.eventsHandled)
        }
        recovered.isOfAnotherBoot = file.bytes(at: Word.boot, count: 36) != Array(bootID().utf8.prefix(36))
        return recovered
    }

    private static func text(_ bytes: [UInt8]) -> String {
        String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
    }

    private struct Reading {
        let path: String
        /// The version that wrote the events.
        let writer: String
        let progress: UInt64
        let isCautious: Bool
        private var recovered: RecoveredState?
        private var eventsRead: UInt64 = 0
        private(set) var snapshotEnd = Word.entries
        /// The offset of the first damaged entry.
        private var damage: Int?

        init(path: String, writer: String, progress: UInt64, isCautious: Bool) {
            self.path = path
            self.writer = writer
            self.progress = progress
            self.isCautious = isCautious
        }

        /// The count of the previous daemon.
        var eventsHandled: UInt64 { progress >> Logbook.effectBits }
        private var effectsPerformed: Int { Int(progress & (1 << Logbook.effectBits - 1)) }
        var canReplay: Bool { writer == Logbook.writer }

        /// Reads all entries. Incomplete entries are not published, so an entry whose checksum is wrong is damage. Events after
        /// it are ignored: without the one before, they would lead to another state. Each record stands alone, so those after
        /// the damage are read, as far as the lengths of the entries lead to them.
        mutating func take(_ bytes: [UInt8]) throws {
            var entries = LogbookEntries(bytes[...])
            while !entries.isAtEnd {
                let offset = entries.offset
                guard let entry = entries.next() else {
                    guard recovered != nil else { throw Problem("\(path): byte \(offset): the snapshot is damaged") }
                    if damage == nil { damage = offset }
                    guard entries.skip() else { return }
                    continue
                }
                do {
                    try take(entry)
                } catch let error as SavedError {
                    throw Problem("\(path): entry at byte \(offset): \(error)")
                }
            }
        }

        private mutating func take(_ entry: ArraySlice<UInt8>) throws {
            let content = entry.dropFirst()
            switch entry.first.flatMap(Kind.init) {
            case .core:
                // There is one snapshot. Another one would be what the damage made of an event.
                guard recovered == nil else { return }
                recovered = RecoveredState(core: LifecycleCore(recovering: try SavedCore(reading: content)))
                snapshotEnd += content.count + 9
            case .event:
                guard damage == nil else { return }
                eventsRead += 1
                if canReplay { try replay(content) }
            case .record:
                let record = try LoggedRecord(reading: content)
                recovered?.records[record.name] = record.content
            case nil:
                // A newer version may have added a kind.
                if canReplay { throw Problem("\(path): an entry of an unknown kind") }
            }
        }

        private mutating func replay(_ content: ArraySlice<UInt8>) throws {
            let logged = try LoggedEvent(reading: content)
            let (event, now) = (logged.event, logged.at)
            recovered?.last = now
            guard eventsRead <= eventsHandled else {
                if !isCautious { recovered?.events.append((event, now)) }
                return
            }
            let effects = recovered?.core.handle(event, at: now) ?? []
            guard eventsRead == eventsHandled else { return }
            let performed = effectsPerformed
            recovered?.effects = Array(effects.dropFirst(performed))
            recovered?.effectsPerformed = performed
        }

        func result() throws -> RecoveredState {
            guard var recovered else { throw Problem("\(path): no snapshot") }
            if let damage {
                recovered.lacksEvents = true
                recovered.warnings.append(
                    "\(path): byte \(damage): the entry is damaged; it and all events that follow are ignored, and apps are "
                        + "recovered as they were before them")
            } else if !canReplay, eventsRead > 0 {
                recovered.lacksEvents = true
                recovered.warnings.append(
                    "\(path): greenroomd \(Logbook.writer) cannot replay the last \(eventsRead) events, which greenroomd "
                        + "\(writer) wrote; apps are recovered as they were before them")
            } else if eventsHandled > eventsRead {
                recovered.lacksEvents = true
                recovered.warnings.append("\(path): \(eventsHandled - eventsRead) events are missing")
            }
            if isCautious {
                recovered.warnings.append(
                    "\(path): daemons crashed while they recovered from it; events that were not handled are ignored")
            }
            return recovered
        }
    }
}
