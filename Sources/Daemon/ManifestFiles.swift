import Glibc
import LifecycleCore

/// The files of an app's manifest, with what tells whether they have changed since they were read.
struct ManifestFiles {
    /// The manifest and its drop-ins, in the order in which they were read.
    let paths: [String]
    /// Of the files and of what can replace or extend them; `nil` for a file that did not exist.
    private let stamps: [FileStamp?]
    /// Of an instance: its template, whose files are examined for all instances together.
    private let template: Template?

    /// Call it before the files are read: a change while they are read counts as one after that.
    init(of id: AppID, _ paths: [String], in folders: Folders, template: Template? = nil) {
        self.paths = paths
        self.template = template
        stamps = FileStamp.ofManifest(id.name, Self.ownDropIns(paths, template), folders)
    }

    /// Whether a file was changed, replaced or removed, or another manifest or drop-in was added.
    func haveChanged(of id: AppID, in folders: Folders) -> Bool {
        if FileStamp.ofManifest(id.name, Self.ownDropIns(paths, template), folders) != stamps { return true }
        return template?.hasChanged(in: folders) ?? false
    }

    private static func ownDropIns(_ paths: [String], _ template: Template?) -> [String] {
        paths.dropFirst().filter { template?.owns($0) != true }
    }
}

/// Identifies the contents of a file as systemd compares unit files, and the inode: an editor replaces a file.
struct FileStamp: Equatable {
    private let device: UInt64
    private let inode: UInt64
    private let size: Int64
    private let seconds: Int64
    private let nanoseconds: Int64

    /// Links are followed; `nil`: there is no such file.
    init?(_ path: String) {
        var about = stat()
        guard stat(path, &about) == 0 else { return nil }
        device = UInt64(about.st_dev)
        inode = UInt64(about.st_ino)
        size = Int64(about.st_size)
        seconds = Int64(about.st_mtim.tv_sec)
        nanoseconds = Int64(about.st_mtim.tv_nsec)
    }

    /// Of the manifest of this name in each folder, of the folders of its drop-ins, and of these drop-ins.
    static func ofManifest(_ name: String, _ dropIns: [String], _ folders: Folders) -> [FileStamp?] {
        var result: [FileStamp?] = []
        for folder in [folders.config, folders.vendor] {
            result.append(FileStamp("\(folder)/apps/\(name).app"))
            result.append(FileStamp("\(folder)/apps/\(name).app.d"))
        }
        for path in dropIns { result.append(FileStamp(path)) }
        return result
    }
}
