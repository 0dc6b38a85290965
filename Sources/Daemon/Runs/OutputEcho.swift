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
        show(run, toEnd: true)
        positions[run] = nil
    }

    private func look() {
        for run in positions.keys.sorted(by: { $0.number < $1.number }) { show(run, toEnd: false) }
    }

    private func size(_ app: AppID) -> UInt64 {
        var about = Glibc.stat()
        guard fstatat(folder.raw, app.name, &about, AT_SYMLINK_NOFOLLOW) == 0 else { return 0 }
        return UInt64(clamping: about.st_size)
    }

    /// - Parameter toEnd: a last line without its end is shown, too.
    private func show(_ run: RunID, toEnd: Bool) {
        guard var position = positions[run] else { return }
        let size = size(position.app)
        guard size != position.offset else { return }
        // It was truncated.
        if size < position.offset { position.offset = 0 }
        if size - position.offset > UInt64(Self.mostBytes) {
            let skipped = size - UInt64(Self.mostBytes) - position.offset
            journal.show("(\(skipped) bytes are not shown)", of: position.app.name)
            position.offset = size - UInt64(Self.mostBytes)
        }
        let bytes = read(position, Int(size - position.offset))
        let lineFeed = UInt8(ascii: "\n")
        let isWhole = toEnd || bytes.count == Self.mostBytes
        let end = isWhole ? bytes.endIndex : bytes.lastIndex(of: lineFeed).map { $0 + 1 } ?? bytes.startIndex
        for line in bytes[..<end].split(separator: lineFeed) {
            let line = line.last == UInt8(ascii: "\r") ? line.dropLast() : line
            journal.show(String(decoding: line, as: UTF8.self), of: position.app.name)
        }
        position.offset += UInt64(end)
        positions[run] = position
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
