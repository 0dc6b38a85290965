import LifecycleCore
import Linux

/// How often each app was launched (L9), a file an app: over restarts of the daemon too.
final class LaunchStore {
    private let folder: String

    init(folders: Folders) throws {
        folder = folders.launches
        try createDirectories(at: folder)
    }

    /// 0 where nothing is known, or what is there is no number.
    func count(_ app: AppID) -> Int {
        guard let bytes = try? readFileIfPresent(at: path(app), limit: 32) else { return 0 }
        return Int(String(decoding: bytes.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)).map { max(0, $0) } ?? 0
    }

    func record(_ app: AppID, _ count: Int) throws {
        try replaceFile(at: path(app), with: Array("\(count)\n".utf8))
    }

    private func path(_ app: AppID) -> String { folder + "/" + app.name }
}
