import Control
import LifecycleCore
import Linux
import Posix
import Reports
import Systemd

/// Records what the next daemon needs if this one dies: a snapshot of the core, every event since, and records of what
/// the core does not know. The core is deterministic, so its events are its state. An event is recorded before the core
/// handles it, and each effect is counted after it was performed.
///
/// A file in the runtime folder, written through a memory mapping: an entry costs a copy of some dozen bytes and
/// survives SIGKILL. It does not survive a crash of the machine, and neither do the apps.
///
/// There is a second file of some size, `PATH.new`, for the next snapshot: so the logbook is continued while the file system
/// is full. If an entry cannot be written all the same, the file stays as it is, says that it lacks events, and is replaced as
/// soon as there is space (docs/decisions/recovery.md).
///
/// `LogbookFormat` is the layout of the file. A file that was replaced is a segment of the recording.
///
/// The file format, the snapshot and the records are read by other versions of greenroomd. Events are replayed only by
/// the version that wrote them. A stop, a restart and a reexec end with a snapshot, so no event is left then.
final class Logbook {
    typealias Word = LogbookFormat.Word
    typealias Kind = LogbookFormat.Kind
    static let effectBits = LogbookFormat.effectBits
    static let headSize = LogbookFormat.headSize

    /// The version that writes the events of this file: up to 16 bytes.
    static let writer = ControlNames.version
    static let smallest = 128 << 10
    /// The most bytes by which the file grows at once: the kernel fills them with zeros.
    static let growth = 1 << 20
    /// The largest file in bytes. 10,000 apps with all that they may have need less.
    static let largest = 1 << 30

    private let path: String
    private let journal: Journal
    /// Keeps the files that are replaced; `nil`: they are not kept.
    let recording: Recording?
    private var file: MappedFile?
    /// The file that will replace this one.
    private var compaction: LogbookCompaction?
    private var content = ByteWriter()
    /// The offset behind the last entry.
    private var end = Word.entries
    /// The offset behind the snapshot and the records that were written with it.
    private var snapshotEnd = Word.entries
    /// Events before the snapshot, and events since that the core has handled.
    private var firstEvent: UInt64 = 0
    private var eventsHandled: UInt64 = 0
    /// Events since the snapshot, handled or not.
    private var eventsRecorded: UInt64 = 0
    /// How many effects of the last one were performed.
    private var effectsPerformed = 0
    private var records: [String: [UInt8]] = [:]
    /// While this is not 0, new entries are written but not published.
    private var batches = 0
    /// A recovery is in progress. If the daemon dies of it, that is counted.
    private var isRecovering = false
    /// How many daemons have died of this recovery.
    private var fatalities: UInt64 = 0
    private var reading: UInt64 = 0
    /// The size to which the file for the next snapshot was made, since the last one.
    private var spareReserved = Int.max

    // MARK: A file that cannot be written

    /// Entries are missing in the file at the path. The next snapshot contains what they say.
    private(set) var isIncomplete = false
    /// Where the published entries end.
    private var publishedEnd = Word.entries
    /// The entries that the new file has to contain and the old one does not. Empty while no new file is made.
    private var overflow: [UInt8] = []
    /// Of a file that another daemon wrote: no less than the number of its events.
    private var foreignEvents: UInt64 = 0
    /// When a file that could not be written is tried again; `nil`: all is written.
    private(set) var nextAttempt: Duration?
    private var retryInterval = Logbook.shortestRetry
    /// A warning about the file was logged since it was last complete.
    private var isWarned = false
    /// Called with the time of the next attempt.
    var onRetry: ((Duration) -> Void)?

    static let shortestRetry = Duration.milliseconds(100)
    static let longestRetry = Duration.seconds(60)
    /// The most bytes of `overflow`: some 100,000 events. With more, another new file is begun.
    static let largestOverflow = 8 << 20

    init(path: String, journal: Journal, recording: Recording? = nil) {
        self.path = path
        self.journal = journal
        self.recording = recording
    }

    /// Creates the file with a snapshot of the core. It replaces the previous file at once and as a whole.
    /// - Parameter firstEvent: how many events came before.
    /// - Parameter old: the file of the previous daemon. If there is no space for another one, it stays, and says that it lacks
    ///   events.
    func create(
        _ core: LifecycleCore, records: [String: [UInt8]], firstEvent: UInt64 = 0, replacing old: MappedFile? = nil
    ) {
        self.records = records
        self.firstEvent = firstEvent
        isIncomplete = true
        if attempt({ try compact(core) }) { return reserve(spareSize) }
        guard let old else { return }
        file = old
        end = Word.entries + Int(min(old.word(at: Word.length), UInt64(old.size - Word.entries)))
        publishedEnd = end
        // An entry has at least so many bytes.
        foreignEvents = UInt64(end / Self.headSize)
        publishProgress()
    }

    /// Makes the file for the next snapshot, or makes it larger, while there is space. The recording gives way to it.
    private func reserve(_ size: Int) {
        let path = path + ".new"
        repeat {
            let isMade = exists(at: path)
            do {
                let spare = try MappedFile(at: path, creating: isMade ? nil : size)
                return try spare.grow(to: size)
            } catch {
                if !isMade { _ = try? removeFile(at: path) }
            }
        } while recording?.removeOldest() ?? false
    }

    /// Makes the file for the next snapshot larger by a piece, after the recording has got the last one.
    /// - Returns: whether there is more to do.
    private func growSpare() -> Bool {
        guard file != nil, compaction == nil else { return false }
        spareReserved = min(spareSize, spareReserved + Self.growth)
        reserve(spareReserved)
        return spareReserved < spareSize
    }

    /// The size of the file for the next snapshot in bytes: twice that of the last one.
    private var spareSize: Int { min(Self.largest, max(Self.smallest, 2 * snapshotEnd)) }

    /// Where the next entry is written in an undamaged file.
    struct Position {
        let file: MappedFile
        let end: Int
        let snapshotEnd: Int
        let eventsHandled: UInt64
    }

    /// Continues the file of the previous daemon, so that nothing is lost if this daemon dies soon. A file that
    /// cannot be continued is replaced.
    func resumeLog(_ recovered: RecoveredState) {
        isRecovering = true
        fatalities = recovered.fatalities
        guard let position = recovered.position else {
            return create(
                recovered.core, records: recovered.records, firstEvent: recovered.eventNumber,
                replacing: recovered.file)
        }
        file = position.file
        end = position.end
        publishedEnd = end
        snapshotEnd = position.snapshotEnd
        eventsHandled = position.eventsHandled
        eventsRecorded = position.eventsHandled + UInt64(recovered.events.count)
        effectsPerformed = recovered.effectsPerformed
        firstEvent = recovered.eventNumber - position.eventsHandled
        records = recovered.records
        reserve(spareSize)
    }

    /// The recovery has succeeded.
    func endRecovery() {
        isRecovering = false
        MappedFile.stopCountingOwnEnd()
        file?.publish(0, at: Word.fatalities)
        // The loss of the message that the previous daemon was reading is recorded as an event now.
        file?.publish(0, at: Word.reading)
    }

    // MARK: Events

    /// Records an event, before the core handles it.
    func append(_ event: Event, at now: Instant) {
        eventsRecorded += 1
        write(.event) { LoggedEvent(event, at: now).save(to: &$0) }
    }

    /// The number of the event that the core handled last, counted since the first logbook.
    var eventNumber: UInt64 { firstEvent + eventsHandled }

    /// The core has handled an event. None of its effects was performed yet.
    func beginEffects() {
        eventsHandled += 1
        performed(0)
    }

    /// The first `count` effects of the event were performed.
    func performed(_ count: Int) {
        effectsPerformed = count
        publishProgress()
    }

    /// Of a file that lacks entries, more events were handled than it contains: the next daemon notices that.
    private func publishProgress() {
        let handled = isIncomplete ? foreignEvents + eventsRecorded + 1 : eventsHandled
        file?.publish(handled << Self.effectBits | UInt64(effectsPerformed), at: Word.progress)
    }

    // MARK: Messages

    /// A message is about to be read from a run's notify socket. If the daemon dies before `endReading`, the message
    /// is lost.
    func beginReading(of run: RunID) {
        reading = run.number
        file?.publish(reading, at: Word.reading)
    }

    /// The contents of the message are recorded.
    func endReading() {
        guard reading != 0 else { return }
        reading = 0
        file?.publish(0, at: Word.reading)
    }

    // MARK: Records

    /// Records something that the core does not know. It replaces the previous record of this name.
    func persist(_ record: [UInt8], as name: String) { update(name, record) }

    func removeRecord(_ name: String) { update(name, nil) }

    /// Whether the next daemon finds the file; true if there is none because it cannot be written.
    var isInPlace: Bool { file == nil || exists(at: path) }

    func record(_ name: String) -> [UInt8]? { records[name] }
    func hasRecord(_ name: String) -> Bool { records[name] != nil }
    var recordNames: [String] { Array(records.keys) }

    private func update(_ name: String, _ record: [UInt8]?) {
        guard records[name] != record else { return }
        // Without spare capacity: each run has some small ones.
        records[name] = record.map { $0.withUnsafeBufferPointer(Array.init) }
        write(.record) { LoggedRecord(name: name, content: record).save(to: &$0) }
    }

    /// Makes the records of `body` atomic: if the daemon dies meanwhile, none of them counts.
    func batch(_ body: () -> Void) {
        batches += 1
        body()
        batches -= 1
        publishLength()
    }

    // MARK: Snapshots

    /// Replaces the events by a new snapshot when they take as much space as the last one: what is mapped counts as the daemon's
    /// memory. So the cost of an event does not depend on the number of apps. Called between two events. The new file is made in
    /// pieces; meanwhile this one is continued.
    func compactIfLarge(_ core: LifecycleCore, _ work: WorkQueue) {
        let isLarge = file != nil && end - snapshotEnd > max(Self.smallest / 2, snapshotEnd)
        if compaction != nil { return }
        guard isIncomplete || isLarge else { return nextAttempt = nil }
        if let nextAttempt, EventLoop.now() < nextAttempt { return }
        let compaction = beginCompaction(core)
        self.compaction = compaction
        work.add { [weak self, weak compaction] in
            // It is over if the file was replaced or removed.
            guard let self, let compaction, self.compaction === compaction else { return self?.growSpare() ?? false }
            var hasMore = false
            let isDone = self.attempt { hasMore = try self.advance(compaction) }
            return hasMore || isDone && self.spareReserved < self.spareSize
        }
    }

    /// Replaces the events by a snapshot, so that a daemon of another version can continue. If that fails, the events stay.
    func close(_ core: LifecycleCore) { attempt { try compact(core) } }

    /// Removes the file: all apps have ended.
    func remove() {
        if let file { recording?.add(file, at: path, end: publishedEnd) }
        file = nil
        compaction = nil
        isIncomplete = false
        overflow = []
        nextAttempt = nil
        _ = try? removeFile(at: path)
        _ = try? removeFile(at: path + ".new")
    }

    // MARK: Writing

    private func write(_ kind: Kind, _ put: (inout ByteWriter) -> Void) {
        guard file != nil || isIncomplete else { return }
        content.clear()
        put(&content)
        let entry = Self.entry(kind, content.bytes)
        if !isIncomplete {
            do { return try append(entry) } catch { beginGap(error) }
        }
        // Without a new file that is being made, the next snapshot contains what the entry says.
        guard compaction != nil else { return }
        overflow += entry
        if overflow.count > Self.largestOverflow { abandonCompaction() }
    }

    private func append(_ entry: [UInt8]) throws {
        guard let file else { return }
        if end + entry.count > file.size {
            // The counter is in the mapping that is replaced.
            MappedFile.stopCountingOwnEnd()
            defer { if isRecovering { file.countOwnEnd(at: Word.fatalities) } }
            try grow(file, for: entry.count)
        }
        file.store(entry, at: end)
        end += entry.count
        publishLength()
    }

    /// Makes the file larger: by a part of its size, so that this is rare, or if that is not possible by what is needed.
    private func grow(_ file: MappedFile, for count: Int) throws {
        guard end + count <= Self.largest else { throw Problem("\(path) cannot be larger than \(Self.largest) bytes") }
        do {
            try file.grow(to: min(Self.largest, end + count + min(file.size, Self.growth)))
        } catch {
            while true {
                do { return try file.grow(to: end + count) } catch {
                    guard recording?.removeOldest() ?? false else { throw error }
                }
            }
        }
    }

    /// Publishes the entries that were written.
    private func publishLength() {
        guard batches == 0, !isIncomplete else { return }
        publishedEnd = end
        file?.publish(UInt64(end - Word.entries), at: Word.length)
    }

    static func entry(_ kind: Kind, _ content: [UInt8]) -> [UInt8] {
        let checksum = Checksum.crc32([kind.rawValue]) ^ Checksum.crc32(content)
        var entry: [UInt8] = []
        entry.reserveCapacity(content.count + headSize)
        entry += entryHead(kind, count: content.count, checksum: checksum)
        entry += content
        return entry
    }

    /// - Parameters:
    ///   - count: the number of bytes of the content.
    ///   - checksum: of the kind and the content.
    static func entryHead(_ kind: Kind, count: Int, checksum: UInt32) -> [UInt8] {
        var head: [UInt8] = []
        head.reserveCapacity(headSize)
        for word in [UInt32(count + 1), checksum] {
            for shift in 0..<4 { head.append(UInt8(truncatingIfNeeded: word >> (8 * shift))) }
        }
        head.append(kind.rawValue)
        return head
    }

    private func beginCompaction(_ core: LifecycleCore) -> LogbookCompaction {
        overflow = []
        return LogbookCompaction(
            path + ".new", core.saved, records: Array(records.keys), eventsHandled: eventsHandled, tail: end)
    }

    private func compact(_ core: LifecycleCore) throws {
        let compaction = beginCompaction(core)
        self.compaction = compaction
        while try advance(compaction) {}
    }

    /// Continues a new file, and replaces this one once it is complete.
    /// - Returns: whether there is more to do.
    private func advance(_ compaction: LogbookCompaction) throws -> Bool {
        if try compaction.advance(records: records, old: file, end: end, overflow: overflow) { return true }
        guard let file = compaction.file else { return false }
        let first = firstEvent + compaction.eventsHandled
        let handled = eventsHandled - compaction.eventsHandled
        let performed = handled == 0 ? 0 : effectsPerformed
        file.store(Array(bootID().utf8.prefix(Word.length - Word.boot)), at: Word.boot)
        file.store(Array(Self.writer.utf8.prefix(Word.clock - Word.writer)), at: Word.writer)
        file.publish(Recording.clock(), at: Word.clock)
        file.publish(first, at: Word.firstEvent)
        file.publish(reading, at: Word.reading)
        file.publish(LogbookFormat.version, at: Word.format)
        file.publish(UInt64(compaction.end - Word.entries), at: Word.length)
        file.publish(handled << Self.effectBits | UInt64(performed), at: Word.progress)
        if isRecovering { file.publish(fatalities, at: Word.fatalities) }
        file.publish(LogbookFormat.magic, at: Word.magic)
        try file.exchange(with: path)
        self.compaction = nil
        (firstEvent, eventsHandled, effectsPerformed) = (first, handled, performed)
        eventsRecorded -= min(eventsRecorded, compaction.eventsHandled)
        let (before, beforeEnd) = (self.file, publishedEnd)
        self.file = file
        end = compaction.end
        publishedEnd = end
        snapshotEnd = compaction.snapshotEnd
        if isRecovering { file.countOwnEnd(at: Word.fatalities) }
        endGap()
        if let before, recording?.add(before, at: path + ".new", end: beforeEnd) ?? false {
            spareReserved = min(spareSize, Self.growth)
            reserve(spareReserved)
        } else {
            // It is the file for the next snapshot now.
            try? before?.shrink(to: spareSize)
            spareReserved = spareSize
        }
        return false
    }
}

// MARK: A file that cannot be written

extension Logbook {
    /// Makes or continues a new file. If that fails, the old one stays, and is continued as long as it can be.
    /// - Returns: whether it succeeded.
    @discardableResult
    private func attempt(_ body: () throws -> Void) -> Bool {
        do {
            try body()
            return true
        } catch {
            abandonCompaction()
            // The next attempt has the space of the recording.
            recording?.removeAll()
            // The runtime folder was made again, and has no logbook.
            if !isIncomplete, file != nil, !exists(at: path) {
                isIncomplete = true
                publishProgress()
            }
            warnOnce(
                isIncomplete
                    ? "if greenroomd dies, the next one will not find all its apps: \(error); greenroomd tries again"
                    : "the logbook cannot be replaced by a snapshot, and grows: \(error); greenroomd tries again")
            return false
        }
    }

    /// The next attempt begins anew.
    private func abandonCompaction() {
        compaction = nil
        overflow = []
        retryLater()
    }

    /// The file cannot take an entry. Events after it would lead to another state, so there are no more in this file.
    private func beginGap(_ error: any Error) {
        isIncomplete = true
        // Of a batch none counts.
        if compaction != nil, let file { overflow += file.bytes(at: publishedEnd, count: end - publishedEnd) }
        end = publishedEnd
        publishProgress()
        warnOnce(
            "the logbook is full: if greenroomd dies, the next one will not know what happens from now on: \(error); "
                + "greenroomd tries again")
        if compaction == nil { retryLater() }
    }

    private func retryLater() {
        let at = EventLoop.now() + retryInterval
        nextAttempt = at
        retryInterval = min(Self.longestRetry, retryInterval * 2)
        onRetry?(at)
    }

    /// All is written.
    private func endGap() {
        (isIncomplete, foreignEvents, overflow) = (false, 0, [])
        (nextAttempt, retryInterval) = (nil, Self.shortestRetry)
        guard isWarned else { return }
        isWarned = false
        journal.log(.notice, MessageID.warning, "the logbook is complete again")
    }

    private func warnOnce(_ sentence: String) {
        if isWarned { return }
        isWarned = true
        journal.logWarning(sentence)
    }
}
