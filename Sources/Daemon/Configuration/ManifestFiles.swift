import Glibc
import LifecycleCore

/// The files of an app's manifest, with what tells whether they have changed since they were read.
struct ManifestFiles {
    /// The manifest. Of most apps it is the file that the app's name gives in the first folder.
    private let manifest: String?
    private let dropIns: [String]
    /// Of the files and of what can replace or extend them. One number for all: it differs if one of them was changed.
    private let stamps: Int
    /// Of an instance: its template, whose files are examined for all instances together.
    private let template: Template?

    /// Call it before the files are read: a change while they are read counts as one after that.
    /// - Parameter paths: the manifest and its drop-ins, in the order in which they were read.
    init(of id: AppID, _ paths: [String], in folders: Folders, template: Template? = nil) {
        manifest = paths.first == Self.path(of: id, in: folders) ? nil : paths.first ?? ""
        dropIns = Array(paths.dropFirst())
        self.template = template
        stamps = Self.stamps(of: id, dropIns, in: folders, template)
    }

    /// The manifest and its drop-ins, in the order in which they were read.
    func paths(of id: AppID, in folders: Folders) -> [String] {
        let first = manifest ?? Self.path(of: id, in: folders)
        return (first.isEmpty ? [] : [first]) + dropIns
    }

    /// Whether a file was changed, replaced or removed, or another manifest or drop-in was added.
    func haveChanged(of id: AppID, in folders: Folders) -> Bool {
        if Self.stamps(of: id, dropIns, in: folders, template) != stamps { return true }
        return template?.hasChanged(in: folders) ?? false
    }

    private static func path(of id: AppID, in folders: Folders) -> String { "\(folders.config)/apps/\(id.name).app" }

    private static func stamps(of id: AppID, _ dropIns: [String], in folders: Folders, _ template: Template?) -> Int {
        let own = dropIns.filter { template?.owns($0) != true }
        return FileStamp.ofManifest(id.name, own, folders).hashValue
    }
}

/// Identifies the contents of a file as systemd compares unit files, and the inode: an editor replaces a file.
struct FileStamp: Hashable {
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
