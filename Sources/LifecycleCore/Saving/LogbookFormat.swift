/// The layout of the logbook, which the daemon writes and recovers from, and of the segments of the recording: a segment is a logbook
/// that was replaced.
///
/// ```
/// 0   "greenlog" · file format        16  boot ID              56  length of all entries in bytes
/// 64  events handled << 24 | effects of the last one that were performed
/// 72  recoveries that daemons died of                80  the run whose notify socket is being read, or 0
/// 88  events before the snapshot                     96  version of greenroomd that wrote the events
/// 112 CLOCK_REALTIME less CLOCK_MONOTONIC, in microseconds, when the snapshot was made; 0: an older daemon made it
/// 120 the same when the file was replaced; 0: it was not
/// 128 entries: length, CRC-32, kind, content
/// ```
package enum LogbookFormat {
    /// Offsets in the file.
    package enum Word {
        package static let magic = 0
        package static let format = 8
        package static let boot = 16
        package static let length = 56
        package static let progress = 64
        package static let fatalities = 72
        package static let reading = 80
        package static let firstEvent = 88
        package static let writer = 96
        package static let clock = 112
        package static let lastClock = 120
        package static let entries = 128
    }
    package enum Kind: UInt8 { case core = 1, event, record }

    package static let magic: UInt64 = 0x676f_6c6e_6565_7267  // "greenlog"
    /// The version of the file's layout. It changes only if another daemon could not read the entries.
    package static let version: UInt64 = 2
    /// Bits of `Word.progress` for the number of performed effects.
    package static let effectBits: UInt64 = 24
    /// The size of an entry without its content in bytes.
    package static let headSize = 9
}

/// Splits the entries of a logbook. An entry whose checksum is wrong is damage: incomplete entries are not published.
package struct LogbookEntries {
    private var rest: ArraySlice<UInt8>
    private let start: Int

    /// - Parameter bytes: all entries, without the header of the file.
    package init(_ bytes: ArraySlice<UInt8>) {
        rest = bytes
        start = bytes.startIndex
    }

    package var isAtEnd: Bool { rest.isEmpty }
    /// The offset of the next entry in the file.
    package var offset: Int { rest.startIndex - start + LogbookFormat.Word.entries }

    /// The kind and the content of the next entry; `nil`: it is damaged.
    package mutating func next() -> ArraySlice<UInt8>? {
        guard let length else { return nil }
        let entry = rest.dropFirst(8).prefix(length)
        let checksum = Checksum.crc32(entry.prefix(1)) ^ Checksum.crc32(entry.dropFirst())
        guard checksum == word(4) else { return nil }
        rest = rest.dropFirst(8 + length)
        return entry
    }

    /// Skips a damaged entry, if its length can be right.
    package mutating func skip() -> Bool {
        guard let length else { return false }
        rest = rest.dropFirst(8 + length)
        return true
    }

    /// The length of the next entry's kind and content; `nil`: there is no such entry.
    private var length: Int? {
        guard rest.count >= LogbookFormat.headSize else { return nil }
        let length = Int(word(0))
        return length >= 1 && length <= rest.count - 8 ? length : nil
    }

    private func word(_ offset: Int) -> UInt32 {
        (0..<4).reduce(0) { $0 | UInt32(rest[rest.startIndex + offset + $1]) << (8 * UInt32($1)) }
    }
}
