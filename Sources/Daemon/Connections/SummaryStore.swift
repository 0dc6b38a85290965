import Glibc
import LifecycleCore
import Linux
import Posix

/// The state summaries of apps (`SetStateSummary`). Each app has two files in the state folder: `ID`, which the previous process
/// has set, and `ID~next`, which the current one has.
final class SummaryStore {
    /// The longest summary in bytes.
    static let maximumBytes = 1024
    /// App IDs contain no `~`.
    private static let next = "~next"
    private let folder: String

    init(folders: Folders) { folder = folders.summaries }

    /// What the process before the one that runs has set; `nil`: nothing.
    func last(of app: AppID) -> String? {
        guard let bytes = (try? readFileIfPresent(at: path(app), limit: Self.maximumBytes)) ?? nil else { return nil }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Keeps the summary of the process that runs.
    func set(_ text: String, of app: AppID) throws(SystemError) {
        try createDirectories(at: folder)
        try replaceFile(at: path(app) + Self.next, with: Array(text.utf8))
    }

    /// The app is launched: what its last process has set is what the new one gets.
    func launched(_ app: AppID) throws(SystemError) {
        let next = path(app) + Self.next
        if exists(at: next) {
            try checkErrno(rename(next, path(app)), "rename", next)
        } else {
            _ = try removeFile(at: path(app))
        }
    }

    /// The app is no longer known.
    func remove(_ app: AppID) throws(SystemError) {
        _ = try removeFile(at: path(app))
        _ = try removeFile(at: path(app) + Self.next)
    }

    private func path(_ app: AppID) -> String { folder + "/" + app.name }
}
