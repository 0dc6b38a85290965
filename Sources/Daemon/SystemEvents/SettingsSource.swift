import LifecycleCore
import Linux
import LoopPolicy
import Posix
import Systemd

/// The file that `SettingsFile=` of an app names. The folder is watched, so that a file which is replaced, or which does not exist yet,
/// is noticed; while the folder does not exist, the nearest one above it is.
final class SettingsSource {
    private let reader: FileStateReader
    private let report: (String) -> Void
    private var answers: EventSource?
    private var changes: ReadingSource?
    /// It has changed while it was read.
    private var isDue = false

    /// - Parameter report: gets the time of the last change in seconds since 1970 and the size, `1764264000.123456789 512`, or
    ///   `absent`. The daemon does not read the file.
    /// - Returns: `nil` if too many helper threads of the app wait for a file system already.
    init?(_ loop: EventLoop, _ app: AppID, path: String, report: @escaping (String) -> Void) throws(SystemError) {
        guard let reader = try FileStateReader(path: path, owner: app.name) else { return nil }
        self.reader = reader
        self.report = report
        if let completions = reader.completions {
            answers = try loop.addDescriptor(completions, events: .readable, kind: .helperAnswer) { [weak self] _ in
                TurnResult(self?.answered() ?? true)
            }
        }
        let trigger = ReadingSource.Trigger(descriptor: reader.changes) { FolderWatch.clear($0) }
        changes = try ReadingSource(loop, [trigger]) { [weak self] in self?.read() }
    }

    private func read() {
        isDue = reader.isBusy
        if !isDue { try? reader.read() }
    }

    private func answered() -> Bool {
        switch reader.take() {
        case .pending: return false
        case .absent: report("absent")
        case .present(let state): report(Self.payload(state))
        }
        if isDue { changes?.readSoon() }
        return true
    }

    static func payload(_ state: FileState) -> String {
        let nanoseconds = String(state.nanoseconds)
        let padding = String(repeating: "0", count: max(0, 9 - nanoseconds.utf8.count))
        return "\(state.seconds).\(padding)\(nanoseconds) \(state.size)"
    }
}
