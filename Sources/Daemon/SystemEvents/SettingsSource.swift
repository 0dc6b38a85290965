import Glibc
import Linux
import Posix
import Systemd

/// The file that `SettingsFile=` of an app names. The folder is watched, so that a file which is replaced, or which does not exist yet,
/// is noticed; while the folder does not exist, the nearest one above it is.
final class SettingsSource {
    private let loop: EventLoop
    private let path: String
    private let report: (String) -> Void
    private var source: ReadingSource?
    /// The folder that is watched: its device and inode.
    private var watched: [UInt64]?
    /// The most folders that are created one in the other between two looks.
    private static let mostFolders = 16

    /// - Parameter report: gets the time of the last change in seconds since 1970 and the size, `1764264000.123456789 512`, or
    ///   `absent`. The daemon does not read the file.
    init(_ loop: EventLoop, path: String, report: @escaping (String) -> Void) {
        self.loop = loop
        self.path = path
        self.report = report
        source = try? ReadingSource(loop, []) { [weak self] in self?.read() }
    }

    private func read() {
        // A folder may have been created or replaced since the last look, also since the watch of the one above it began.
        for _ in 0..<Self.mostFolders where Self.nearestFolder(of: path)?.identity != watched { watch() }
        report(Self.state(of: path))
    }

    private func watch() {
        guard let folder = Self.nearestFolder(of: path), let watch = try? FolderWatch(folder.path, for: .contents)
        else { return }
        let trigger = ReadingSource.Trigger(descriptor: watch.descriptor) { FolderWatch.clear($0) }
        try? source?.watch([trigger])
        watched = folder.identity
    }

    /// The nearest folder above a path that exists.
    private static func nearestFolder(of path: String) -> (path: String, identity: [UInt64])? {
        var folder = path[...]
        while let end = folder.lastIndex(of: "/") {
            folder = folder[..<end]
            let name = folder.isEmpty ? "/" : String(folder)
            var about = Glibc.stat()
            if stat(name, &about) == 0, about.st_mode & S_IFMT == S_IFDIR {
                return (name, [UInt64(about.st_dev), UInt64(about.st_ino)])
            }
        }
        return nil
    }

    static func state(of path: String) -> String {
        var about = Glibc.stat()
        guard stat(path, &about) == 0, about.st_mode & S_IFMT == S_IFREG else { return "absent" }
        let nanoseconds = String(about.st_mtim.tv_nsec)
        let padding = String(repeating: "0", count: max(0, 9 - nanoseconds.utf8.count))
        return "\(about.st_mtim.tv_sec).\(padding)\(nanoseconds) \(about.st_size)"
    }
}
