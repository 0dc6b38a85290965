import Glibc
import LifecycleCore

/// The files of an app's manifest, with what tells whether they have changed since they were read.
struct ManifestFiles {
    /// The manifest and its drop-ins, in the order in which they were read.
    let paths: [String]
    /// Of the files and of what can replace or extend them; `nil` for a file that did not exist.
    private let stamps: [Stamp?]

    /// As systemd compares unit files, and the inode: an editor replaces a file.
    private struct Stamp: Equatable {
        let device: UInt64
        let inode: UInt64
        let size: Int64
        let seconds: Int64
        let nanoseconds: Int64

        init?(_ path: String) {
            var about = stat()
            guard stat(path, &about) == 0 else { return nil }
            device = UInt64(about.st_dev)
            inode = UInt64(about.st_ino)
            size = Int64(about.st_size)
            seconds = Int64(about.st_mtim.tv_sec)
            nanoseconds = Int64(about.st_mtim.tv_nsec)
        }
    }

    /// Call it before the files are read: a change while they are read counts as one after that.
    init(of id: AppID, _ paths: [String], in folders: Folders) {
        self.paths = paths
        stamps = Self.stamps(of: id, paths, folders)
    }

    /// Whether a file was changed, replaced or removed, or another manifest or drop-in was added.
    func haveChanged(of id: AppID, in folders: Folders) -> Bool {
        Self.stamps(of: id, paths, folders) != stamps
    }

    /// Of the manifest in each folder, of the folders of drop-ins, and of the drop-ins.
    private static func stamps(of id: AppID, _ paths: [String], _ folders: Folders) -> [Stamp?] {
        var result: [Stamp?] = []
        for folder in [folders.config, folders.vendor] {
            result.append(Stamp("\(folder)/apps/\(id).app"))
            result.append(Stamp("\(folder)/apps/\(id).app.d"))
        }
        for path in paths.dropFirst() { result.append(Stamp(path)) }
        return result
    }
}
