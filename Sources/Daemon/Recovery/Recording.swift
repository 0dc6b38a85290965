import Glibc
import LifecycleCore
import Linux
import Posix
import Systemd

/// Keeps the logbooks that were replaced, for `greenroomctl plot` and `replay`: each is a snapshot and the events since, so it
/// plays through the core as a recovery does. An event costs nothing more than without a recording: when the logbook is replaced by a
/// snapshot, the old file is cut to its contents and renamed to `FOLDER/N`, and the oldest files are removed.
///
/// The recording gives way to the logbook: if that cannot be written, the recording is removed.
final class Recording {
    /// The kept files, the oldest first.
    private var segments: [(number: UInt64, bytes: UInt64)] = []
    /// The sum of `bytes`.
    private var bytes: UInt64 = 0
    private var isListed = false
    private var isWarned = false
    private let folder: String
    private let journal: Journal

    /// The most bytes of all kept files (`TraceSize=`); 0: none are kept.
    var limit: UInt64 { didSet { bound() } }

    /// The most files that are looked at in the folder. Only the daemon writes there.
    private static let longestList = 100_000

    init(folder: String, limit: UInt64, journal: Journal) {
        self.folder = folder
        self.limit = limit
        self.journal = journal
    }

    /// CLOCK_REALTIME less CLOCK_MONOTONIC, in microseconds: what turns the instant of an event into a time for people.
    static func clock() -> UInt64 {
        let (seconds, attoseconds) = EventLoop.now().components
        let monotonic = UInt64(max(0, seconds)) * 1_000_000 + UInt64(attoseconds / 1_000_000_000_000)
        return realtimeMicroseconds() &- monotonic
    }

    /// Keeps a logbook that no longer counts.
    /// - Parameters:
    ///   - path: where it is.
    ///   - end: where its entries end.
    /// - Returns: whether it is in the folder, or removed because it is too large.
    @discardableResult
    func add(_ file: MappedFile, at path: String, end: Int) -> Bool {
        guard limit > 0 else { return false }
        list()
        let number = (segments.last?.number ?? 0) + 1
        do {
            if !exists(at: folder) { try createDirectories(at: folder, mode: 0o700) }
            file.publish(Self.clock(), at: LogbookFormat.Word.lastClock)
            try file.shrink(to: end)
            try checkErrno(rename(path, name(number)), "rename", name(number))
        } catch {
            if !isWarned { journal.logWarning("the recording lacks events: \(error)") }
            isWarned = true
            return false
        }
        isWarned = false
        segments.append((number, UInt64(end)))
        bytes += UInt64(end)
        bound()
        return true
    }

    /// Removes the oldest file, for its space.
    /// - Returns: whether there was one.
    func removeOldest() -> Bool {
        list()
        guard let first = segments.first else { return false }
        segments.removeFirst()
        bytes -= first.bytes
        _ = try? removeFile(at: name(first.number))
        return true
    }

    func removeAll() { while removeOldest() {} }

    private func bound() {
        list()
        while bytes > limit, removeOldest() {}
    }

    private func name(_ number: UInt64) -> String { "\(folder)/\(number)" }

    /// Finds what previous daemons have kept.
    private func list() {
        if isListed { return }
        isListed = true
        guard let names = try? KeptFolder(folder).names(limit: Self.longestList) else { return }
        for name in names {
            guard let number = UInt64(name), number < .max, String(number) == name else { continue }
            var about = stat()
            guard lstat(self.name(number), &about) == 0, about.st_mode & S_IFMT == S_IFREG else { continue }
            segments.append((number, UInt64(max(0, about.st_size))))
        }
        segments.sort { $0.number < $1.number }
        bytes = segments.reduce(0) { $0 + $1.bytes }
    }
}
