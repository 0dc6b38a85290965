import LifecycleCore
import Linux
import Posix

/// A new file for the logbook, made in steps: a snapshot of the core, the records, and the entries that were appended to the
/// old file since then. With 10,000 apps it takes some 50 ms.
final class LogbookCompaction {
    private typealias Word = Logbook.Word

    /// Nothing of it counts before the logbook has published its length and renamed it.
    private(set) var file: MappedFile?
    /// The offset behind the last entry.
    private(set) var end = Word.entries
    /// The offset behind the records.
    private(set) var snapshotEnd = Word.entries
    /// How many events of the old file the snapshot contains.
    let eventsHandled: UInt64
    private let path: String
    private var part = Part.saving
    private var saving: CoreSaving
    /// The bytes of the core, and how many are in the file.
    private var core: [UInt8] = []
    private var copied = 0
    private var checksum = Checksum()
    private var records: ArraySlice<String>
    /// The offset in the old file of the first entry that is not in this one.
    private var tail: Int
    /// How many bytes of the entries that the old file lacks are in this one.
    private var overflowCopied = 0

    private enum Part { case saving, core, records, space, tail }

    /// How many bytes a step copies, and how many records.
    static let bytesPerStep = 1 << 16
    static let recordsPerStep = 32

    /// - Parameters:
    ///   - records: the names of all records.
    ///   - eventsHandled: how many events of the old file the core has handled.
    ///   - tail: the end of the old file.
    init(_ path: String, _ core: SavedCore, records: [String], eventsHandled: UInt64, tail: Int) {
        self.path = path
        saving = CoreSaving(core)
        self.records = records[...]
        self.eventsHandled = eventsHandled
        self.tail = tail
    }

    /// Does the next step.
    /// - Parameters:
    ///   - records: all records as they are now. A change since the beginning is also in the old file, behind `tail`.
    ///   - old: the old file, if there is one.
    ///   - oldEnd: its end.
    ///   - overflow: the entries that follow those of the old file.
    /// - Returns: whether there is more to do.
    func advance(
        records all: [String: [UInt8]], old: MappedFile?, end oldEnd: Int, overflow: [UInt8]
    ) throws -> Bool {
        switch part {
        case .saving:
            if saving.advance() { break }
            core = saving.bytes
            // The copy of the apps is no longer needed.
            saving = CoreSaving(SavedCore.blank)
            end = Word.entries + Logbook.headSize
            file = try Self.makeFile(at: path)
            part = .core
        case .core:
            let step = core[copied..<min(core.count, copied + Self.bytesPerStep)]
            try append(Array(step))
            checksum.update(step)
            copied += step.count
            if copied == core.count { endCore() }
        case .records:
            for name in records.prefix(Self.recordsPerStep) {
                guard let record = all[name] else { continue }
                try append(Logbook.entry(.record, LoggedRecord(name: name, content: record).savedBytes))
            }
            records = records.dropFirst(Self.recordsPerStep)
            guard records.isEmpty else { break }
            snapshotEnd = end
            part = .space
        case .space:
            // For the events until the next compaction. Without the space they are written as long as they can be.
            if !((try? grow(to: 4 * end)) ?? false) { part = .tail }
        case .tail:
            try copyTail(old, oldEnd, overflow)
            return tail < oldEnd || overflowCopied < overflow.count
        }
        return true
    }

    private func copyTail(_ old: MappedFile?, _ oldEnd: Int, _ overflow: [UInt8]) throws {
        if let old, tail < oldEnd {
            let count = min(Self.bytesPerStep, oldEnd - tail)
            try append(old.bytes(at: tail, count: count))
            tail += count
        } else {
            tail = max(tail, oldEnd)
            let piece = overflow.dropFirst(overflowCopied).prefix(Self.bytesPerStep)
            try append(Array(piece))
            overflowCopied += piece.count
        }
    }

    /// The file before the last one, if there is one: its blocks are allocated already.
    private static func makeFile(at path: String) throws -> MappedFile {
        if let spare = try? MappedFile(at: path, creating: nil), spare.size >= Logbook.smallest,
            (try? spare.fill()) != nil
        {
            spare.store([UInt8](repeating: 0, count: Word.entries), at: 0)
            return spare
        }
        _ = try removeFile(at: path)
        return try MappedFile(at: path, creating: Logbook.smallest)
    }

    private func endCore() {
        let kind = Logbook.Kind.core
        let sum = Checksum.crc32([kind.rawValue]) ^ checksum.value
        file?.store(Logbook.entryHead(kind, count: core.count, checksum: sum), at: Word.entries)
        core = []
        part = .records
    }

    private func append(_ bytes: [UInt8]) throws {
        guard end + bytes.count <= Logbook.largest else {
            throw Problem("\(path) cannot be larger than \(Logbook.largest) bytes")
        }
        while try grow(to: end + bytes.count) {}
        file?.store(bytes, at: end)
        end += bytes.count
    }

    /// Makes the file larger, by a part of what is missing.
    /// - Returns: whether it was too small.
    private func grow(to size: Int) throws -> Bool {
        guard let file, file.size < min(size, Logbook.largest) else { return false }
        try file.grow(to: min(size, file.size + Logbook.growth, Logbook.largest))
        return true
    }
}
