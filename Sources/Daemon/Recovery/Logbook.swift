import LifecycleCore
import Linux

/// What this daemon leaves to the next, whatever becomes of it: the core as it was once, and every event since. The core
/// is deterministic, so its events are its state (law 10). An event is in here before the core decides on it, and how many
/// of its effects were performed is counted, so that the next daemon does neither twice.
///
/// A file in the runtime folder, written as memory: an entry costs a copy of some dozen bytes and survives SIGKILL.
/// Machine crashes do not matter: the apps are gone as well.
///
/// ```
/// 0   "greenlog" · version        16  boot ID            56  length of all entries
/// 64  events begun << 24 | effects of the last one that were performed
/// 72  recoveries that daemons have died of              80  the run whose socket is being read, or 0
/// 128 entries: length, CRC-32, kind, content
/// ```
final class Logbook {
    enum Word {
        static let magic = 0
        static let version = 8
        static let boot = 16
        static let length = 56
        static let progress = 64
        static let fatalities = 72
        static let reading = 80
        static let entries = 128
    }
    enum Kind: UInt8 { case core = 1, event, note }

    static let magic: UInt64 = 0x676f_6c6e_6565_7267  // "greenlog"
    static let version: UInt64 = 1
    /// Of an effect's place among those of one event.
    static let effectBits: UInt64 = 24
    private static let smallest = 128 << 10
    /// More than any daemon needs: 10,000 apps with all that they may have.
    private static let largest = 1 << 30

    private let path: String
    private var file: MappedFile?
    private var writer = ByteWriter()
    private var end = Word.entries
    private var eventsBegun: UInt64 = 0
    /// Where the entries after the snapshot begin.
    private var snapshotEnd = Word.entries
    private var notes: [String: [UInt8]] = [:]
    /// A recovery is under way: dying of it is counted.
    private var isRecovering = false
    /// How many daemons have died of it before.
    private var fatalities: UInt64 = 0
    private var reading: UInt64 = 0
    /// What can't be kept is said once; the daemon goes on without.
    var logWarning: (String) -> Void = { _ in }

    init(path: String) { self.path = path }

    /// Begins with a core. What was in the file before is replaced at once and as a whole.
    func begin(_ core: LifecycleCore, notes: [String: [UInt8]]) {
        self.notes = notes
        attempt { try compact(core) }
    }

    /// A file that is as it was meant.
    struct Place {
        let file: MappedFile
        let end: Int
        let snapshotEnd: Int
        let eventsBegun: UInt64
    }

    /// Goes on in the file that a daemon before this one has left: if this one dies at once, nothing is lost either.
    func goOn(_ recovered: RecoveredState) {
        isRecovering = true
        fatalities = recovered.fatalities
        guard let place = recovered.place else { return begin(recovered.core, notes: recovered.notes) }
        file = place.file
        end = place.end
        snapshotEnd = place.snapshotEnd
        eventsBegun = place.eventsBegun
        notes = recovered.notes
    }

    // MARK: While the daemon runs

    /// Before the core decides on it.
    func keep(_ event: Event, at now: Instant) {
        write(.event) { LoggedEvent(event, at: now).save(to: &$0) }
    }

    /// The core has decided; no effect of it was performed yet.
    func beginEffects() {
        eventsBegun += 1
        file?.publish(eventsBegun << Self.effectBits, at: Word.progress)
    }

    func performed(_ count: Int) {
        file?.publish(eventsBegun << Self.effectBits | UInt64(count), at: Word.progress)
    }

    /// From before a message is taken out of a run's notify socket until all that it says is kept: a daemon that ends
    /// between the two takes it along.
    func read(from run: RunID, _ body: () -> Bool) -> Bool {
        reading = run.number
        file?.publish(reading, at: Word.reading)
        defer { hasRead() }
        return body()
    }

    /// All that the message says is kept.
    func hasRead() {
        guard reading != 0 else { return }
        reading = 0
        file?.publish(0, at: Word.reading)
    }

    /// Something that the core does not know; `nil`: no longer. The last of a name counts.
    func note(_ name: String, _ content: [UInt8]?) {
        guard notes[name] != content else { return }
        notes[name] = content
        write(.note) { LoggedRecord(name: name, content: content).save(to: &$0) }
    }

    func isNoted(_ name: String) -> Bool { notes[name] != nil }

    /// Between two events: when the events take more room than a new snapshot, they make room for one. So each event pays
    /// for its share of it, however many apps there are.
    func settle(_ core: LifecycleCore) {
        guard end - snapshotEnd > max(Self.smallest / 2, 2 * snapshotEnd) else { return }
        attempt { try compact(core) }
    }

    /// A snapshot and nothing else: what a daemon of another version reads.
    func close(_ core: LifecycleCore) { attempt { try compact(core) } }

    /// The apps have ended: there is nothing to go on with.
    func remove() {
        file = nil
        _ = try? removeFile(at: path)
    }

    /// The recovery came through.
    func noteRecovered() {
        isRecovering = false
        MappedFile.stopCountingOwnEnd()
        file?.publish(0, at: Word.fatalities)
        // What the daemon before this one was reading is in the events by now.
        file?.publish(0, at: Word.reading)
    }

    // MARK: Writing

    private func write(_ kind: Kind, _ content: (inout ByteWriter) -> Void) {
        guard file != nil else { return }
        writer.clear()
        content(&writer)
        attempt { try append(kind, writer.bytes) }
    }

    private func append(_ kind: Kind, _ content: [UInt8]) throws {
        guard let file else { return }
        let entry = Self.entry(kind, content)
        if end + entry.count > file.size {
            MappedFile.stopCountingOwnEnd()
            defer { if isRecovering { file.countOwnEnd(at: Word.fatalities) } }
            try file.grow(to: min(Self.largest, 2 * (file.size + entry.count)))
        }
        file.store(entry, at: end)
        end += entry.count
        file.publish(UInt64(end - Word.entries), at: Word.length)
    }

    private static func entry(_ kind: Kind, _ content: [UInt8]) -> [UInt8] {
        var entry: [UInt8] = []
        entry.reserveCapacity(content.count + 9)
        let checksum = Checksum.crc32([kind.rawValue]) ^ Checksum.crc32(content)
        for word in [UInt32(content.count + 1), checksum] {
            for shift in 0..<4 { entry.append(UInt8(truncatingIfNeeded: word >> (8 * shift))) }
        }
        entry.append(kind.rawValue)
        entry.append(contentsOf: content)
        return entry
    }

    private func compact(_ core: LifecycleCore) throws {
        var entries = Self.entry(.core, core.saved.bytes)
        for (name, content) in notes.sorted(by: { $0.key < $1.key }) {
            entries += Self.entry(.note, LoggedRecord(name: name, content: content).savedBytes)
        }
        let new = path + ".new"
        _ = try removeFile(at: new)
        let file = try MappedFile(at: new, creating: max(Self.smallest, 4 * (entries.count + Word.entries)))
        file.store(entries, at: Word.entries)
        file.store(Array(bootID().utf8.prefix(Word.length - Word.boot)), at: Word.boot)
        file.publish(reading, at: Word.reading)
        file.publish(Self.version, at: Word.version)
        file.publish(UInt64(entries.count), at: Word.length)
        if isRecovering { file.publish(fatalities, at: Word.fatalities) }
        file.publish(Self.magic, at: Word.magic)
        try file.rename(to: path)
        if isRecovering { file.countOwnEnd(at: Word.fatalities) }
        self.file = file
        end = Word.entries + entries.count
        snapshotEnd = end
        eventsBegun = 0
    }

    /// A log with a hole would be worse than none.
    private func attempt(_ body: () throws -> Void) {
        do { try body() } catch {
            logWarning("a daemon that follows this one will not find its apps again: \(error)")
            remove()
        }
    }
}
