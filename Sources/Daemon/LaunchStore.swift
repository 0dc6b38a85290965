import Glibc
import LifecycleCore
import Linux
import Posix

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

    /// In place, as a new file for each launch would cost more than all else of it. The width is fixed, so that a crash
    /// leaves the old number or the new one: so few bytes lie in one sector.
    func record(_ app: AppID, _ count: Int) throws {
        let digits = String(count)
        let line = String(repeating: "0", count: max(0, Self.width - digits.utf8.count)) + digits + "\n"
        let file = try Descriptor.open(path(app), O_WRONLY | O_CREAT | O_NOFOLLOW, mode: 0o644)
        try writeAll(Array(line.utf8), to: file, path: path(app))
    }

    /// Of the largest number.
    private static let width = String(Int.max).utf8.count

    private func path(_ app: AppID) -> String { folder + "/" + app.name }
}
