import Glibc
import LifecycleCore
import Linux
import Posix

/// How often each app was launched (L9), or when its timers elapsed last (L30): one file for each app in the state folder, with a
/// number.
final class LaunchStore {
    private let folder: String

    convenience init(folders: Folders) throws { try self.init(folder: folders.launches) }

    init(folder: String) throws(SystemError) {
        self.folder = folder
        try createDirectories(at: folder)
    }

    /// - Returns: 0 if the app was never launched, or its file does not contain a number.
    func count(_ app: AppID) -> Int {
        guard let bytes = try? readFileIfPresent(at: path(app), limit: 32) else { return 0 }
        return Int(String(decoding: bytes.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)).map { max(0, $0) } ?? 0
    }

    /// Records the count. The file is overwritten in place: to create a file takes longer than the rest of a launch.
    /// The number has a fixed width, so its bytes are in one sector, and a crash leaves the old number or the new one.
    func record(_ app: AppID, _ count: Int) throws {
        let digits = String(count)
        let line = String(repeating: "0", count: max(0, Self.width - digits.utf8.count)) + digits + "\n"
        // A FIFO in its position would block until it is read.
        let flags = O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY
        let file = try Descriptor.open(path(app), flags, mode: 0o644)
        try file.refuseIrregular(path(app))
        try writeAll(Array(line.utf8), to: file, path: path(app))
    }

    /// Removes the count of an app that no longer exists.
    func remove(_ app: AppID) throws { try removeFile(at: path(app)) }

    /// Digits of the largest number.
    private static let width = String(Int.max).utf8.count

    private func path(_ app: AppID) -> String { folder + "/" + app.name }
}
