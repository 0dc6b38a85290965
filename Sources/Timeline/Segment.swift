package import LifecycleCore

/// A file of the recording: a snapshot of the core, and the events since.
package struct Segment: Sendable {
    /// Why a file cannot be played, in one sentence.
    package struct Problem: Error, Hashable, Sendable {
        package var sentence: String
    }

    /// Of the file, for sentences.
    package let name: String
    package let boot: String
    /// Events before the snapshot, counted since the daemon was started with no app running.
    package let firstEvent: UInt64
    /// CLOCK_REALTIME less CLOCK_MONOTONIC, in microseconds, when the snapshot was made and when the file was replaced; `nil`: not
    /// known.
    package let clock: Int64?
    package let lastClock: Int64?
    package let core: LifecycleCore
    package private(set) var events: [LoggedEvent] = []
    /// What is missing at its end; `nil`: nothing.
    package private(set) var problem: String?

    /// - Parameters:
    ///   - bytes: of the whole file; what a copy lacks at its end is missing.
    ///   - version: the version of this program: only events of the same version lead to the states that the daemon had.
    package init(_ bytes: [UInt8], name: String, version: String) throws(Problem) {
        typealias Word = LogbookFormat.Word
        func word(_ offset: Int) -> UInt64 { (0..<8).reduce(0) { $0 | UInt64(bytes[offset + $1]) << (8 * UInt64($1)) } }
        func text(_ range: Range<Int>) -> String {
            String(decoding: bytes[range].prefix { $0 != 0 }, as: UTF8.self)
        }
        self.name = name
        guard bytes.count >= Word.entries, word(Word.magic) == LogbookFormat.magic else {
            throw Problem(sentence: "\(name) is not a recording of greenroomd")
        }
        let format = word(Word.format)
        guard format == LogbookFormat.version else {
            throw Problem(sentence: "\(name): file format \(format), expected \(LogbookFormat.version)")
        }
        let writer = text(Word.writer..<Word.clock)
        guard writer == version else {
            throw Problem(
                sentence:
                    "\(name): greenroomd \(printable(writer)) recorded it, and greenroomctl \(version) cannot play its events; use "
                    + "greenroomctl \(printable(writer))")
        }
        boot = text(Word.boot..<Word.boot + 36)
        firstEvent = word(Word.firstEvent)
        clock = Self.clock(word(Word.clock))
        lastClock = Self.clock(word(Word.lastClock))
        let length = word(Word.length)
        let published = Int(clamping: min(length, UInt64(bytes.count - Word.entries)))
        var entries = LogbookEntries(bytes[Word.entries..<Word.entries + published])
        guard let first = entries.next(), first.first == LogbookFormat.Kind.core.rawValue else {
            throw Problem(sentence: "\(name): byte \(Word.entries): the snapshot is damaged")
        }
        do {
            core = LifecycleCore(recovering: try SavedCore(reading: first.dropFirst()))
        } catch {
            throw Problem(sentence: "\(name): byte \(Word.entries): the snapshot cannot be read: \(error)")
        }
        readEvents(&entries, isCut: length > UInt64(published))
        let handled = word(Word.progress) >> LogbookFormat.effectBits
        if problem == nil, length > UInt64(published) {
            problem = "\(name) is cut at byte \(bytes.count): what follows is missing"
        }
        if problem == nil, handled > UInt64(events.count) {
            problem = "\(name): \(handled - UInt64(events.count)) events are missing at its end"
        }
    }

    private static func clock(_ word: UInt64) -> Int64? { word == 0 ? nil : Int64(bitPattern: word) }

    /// Reads events up to the first entry that is damaged: without that one, those that follow would lead to other states.
    private mutating func readEvents(_ entries: inout LogbookEntries, isCut: Bool) {
        while !entries.isAtEnd {
            let offset = entries.offset
            guard let entry = entries.next() else {
                // The last entry of a file that is cut is not damaged.
                if isCut, !entries.skip() { return }
                problem =
                    "\(name): byte \(offset): the entry is damaged; the events that follow in this file are left out"
                return
            }
            guard let kind = entry.first.flatMap(LogbookFormat.Kind.init) else {
                problem =
                    "\(name): byte \(offset): an entry of an unknown kind; the events that follow in this file are left out"
                return
            }
            guard kind == .event else { continue }
            do {
                events.append(try LoggedEvent(reading: entry.dropFirst()))
            } catch {
                problem =
                    "\(name): byte \(offset): the event cannot be read: \(error); the events that follow in this file are left out"
                return
            }
        }
    }
}

/// Text of a damaged or foreign file, without control characters.
private func printable(_ text: String) -> String {
    String(
        String.UnicodeScalarView(
            text.unicodeScalars.map { $0.isASCII && $0.value >= 0x20 && $0.value != 0x7f ? $0 : "?" }))
}
