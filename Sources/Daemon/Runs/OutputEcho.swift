import Glibc
import LifecycleCore
import Linux
import Posix
import Systemd

/// Shows on the daemon's terminal what apps write to their files (`OutputFiles`), a line each: `web │ GET /`.
///
/// For those who start a daemon in a terminal to see what their apps do. The output itself does not depend on it: the apps write to
/// their files, and what the terminal does not take in time is not shown.
final class OutputEcho {
    /// How far the file of an app was shown.
    private struct Position {
        let app: AppID
        var offset: UInt64
        /// Where the output of a run that has ended ends.
        var end: UInt64?
    }

    /// The most bytes of an app that are shown at a time, five times a second: more could not be read on a terminal, whose
    /// buffer takes as much at once (n_tty).
    private static let mostBytes = 4 << 10
    private let folder: SharedDescriptor
    private let journal: Journal
    private var source: ReadingSource?
    private var positions: [RunID: Position] = [:]

    /// - Parameter path: the folder of the files; `folder` is the same one.
    init(_ path: String, _ folder: SharedDescriptor, loop: EventLoop, journal: Journal) throws(SystemError) {
        self.folder = folder
        self.journal = journal
        let watch = try FolderWatch(path, for: .writes)
        let trigger = ReadingSource.Trigger(descriptor: watch.descriptor) { FolderWatch.clear($0) }
        source = try ReadingSource(loop, [trigger]) { [weak self] in self?.look() }
    }

    /// - Parameter offset: where the output of the run begins in the file; `nil`: only what comes is shown.
    func follow(_ run: RunID, of app: AppID, from offset: UInt64?) {
        positions[run] = Position(app: app, offset: offset ?? size(app))
    }

    /// The run has ended: shows the rest.
    func end(_ run: RunID) {
        guard let app = positions[run]?.app else { return }
        positions[run]?.end = size(app)
        show(run)
    }

    private func look() {
        for run in positions.keys.sorted(by: { $0.number < $1.number }) { show(run) }
    }

    private func size(_ app: AppID) -> UInt64 {
        var about = Glibc.stat()
        guard fstatat(folder.raw, app.name, &about, AT_SYMLINK_NOFOLLOW) == 0 else { return 0 }
        return UInt64(clamping: about.st_size)
    }

    private func show(_ run: RunID) {
        guard var position = positions[run] else { return }
        // It was truncated.
        if size(position.app) < position.offset { (position.offset, position.end) = (0, position.end.map { _ in 0 }) }
        let end = position.end ?? size(position.app)
        if end > position.offset, !advance(&position, to: end) { source?.readAgain() }
        positions[run] = position.end.map { position.offset >= $0 } ?? false ? nil : position
    }

    /// - Returns: whether the terminal has taken it.
    private func advance(_ position: inout Position, to size: UInt64) -> Bool {
        let name = position.app.name
        if size - position.offset > UInt64(Self.mostBytes) {
            let skipped = size - UInt64(Self.mostBytes) - position.offset
            guard journal.show("(\(skipped) bytes are not shown)", of: name) else { return false }
            position.offset = size - UInt64(Self.mostBytes)
        }
        let bytes = read(position, Int(size - position.offset))
        if bytes.isEmpty {
            // It cannot be read.
            position.offset = size
            return true
        }
        let lineFeed = UInt8(ascii: "\n")
        // A last line without its end is shown if nothing follows, or if it is long.
        let isWhole = position.end != nil || bytes.count == Self.mostBytes
        var rest = bytes[
            ..<(isWhole ? bytes.endIndex : bytes.lastIndex(of: lineFeed).map { $0 + 1 } ?? bytes.startIndex)]
        while !rest.isEmpty {
            let line = rest.prefix { $0 != lineFeed }
            let text = line.last == UInt8(ascii: "\r") ? line.dropLast() : line
            guard text.isEmpty || journal.show(String(decoding: text, as: UTF8.self), of: name) else { return false }
            rest = rest.dropFirst(line.count + 1)
            position.offset += UInt64(min(line.count + 1, Int(size - position.offset)))
        }
        return true
    }

    private func read(_ position: Position, _ count: Int) -> [UInt8] {
        let flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY
        guard let file = try? folder.descriptor.open(position.app.name, flags),
            (try? file.refuseIrregular(position.app.name)) != nil
        else { return [] }
        let number = file.raw
        return [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            filled = max(0, pread(number, buffer.baseAddress, count, off_t(position.offset)))
        }
    }
}
