import Glibc

/// The cgroup of one run of one app.
final class CgroupLeaf {
    let path: String
    let root: CgroupRoot
    let folder: Descriptor
    private let events: KeptFile
    private let memory: KeptFile?

    /// Makes a fresh group. It must not exist: a group that `cgroup.kill` was once written to kills everything born
    /// into it later.
    static func make(_ path: String, root: CgroupRoot) throws(SystemError) -> CgroupLeaf {
        try checkErrno(mkdir(path, 0o755), "mkdir", path)
        return try CgroupLeaf(existing: path, root: root)
    }

    init(existing path: String, root: CgroupRoot) throws(SystemError) {
        self.path = path
        self.root = root
        folder = try Descriptor.open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
        events = try KeptFile("cgroup.events", in: folder.raw)
        memory = root.hasMemoryController ? try KeptFile("memory.current", in: folder.raw) : nil
    }

    var eventsDescriptor: Int32 { events.descriptor.raw }

    /// A group that is gone is as good as empty, so writing to it does nothing.
    func write(_ text: String, to file: String) throws(SystemError) {
        do {
            try writeControlFile(file, text, in: folder.raw)
        } catch {
            if error.meansGone { return }
            throw SystemError(call: error.call, errno: error.errno, path: "\(path)/\(file)")
        }
    }

    func has(_ file: String) -> Bool { faccessat(folder.raw, file, F_OK, 0) == 0 }

    /// cgroup.events: "populated 1", "frozen 0".
    func event(_ name: String) throws(SystemError) -> Bool {
        guard let bytes = try events.readIfPresent(limit: 256) else { return false }
        return flatKeyed(bytes, name) == 1
    }

    func value(_ file: String, _ key: String) throws(SystemError) -> UInt64? {
        try readFileIfPresent(at: file, in: folder.raw, limit: 16 * 1024).flatMap { flatKeyed($0, key) }
    }

    /// memory.current, nil without the controller.
    func memoryCurrent() throws(SystemError) -> UInt64? {
        if !root.hasMemoryController { return nil }
        guard let bytes = try memory?.readIfPresent(limit: 64) else { return 0 }
        var scanner = ByteScanner(bytes)
        return scanner.number()
    }

    /// An app may make groups of its own below ours, as deep as it likes; beyond this many we look no further.
    static let mostGroups = 4096

    /// This group and all below it, each before its children.
    private func groups() throws(SystemError) -> [String] {
        if try !hasChildren(folder.raw, path) { return [path] }
        var found = [path]
        var index = 0
        while index < found.count, found.count < Self.mostGroups {
            for name in try subfolders(of: found[index]) { found.append("\(found[index])/\(name)") }
            index += 1
        }
        return found
    }

    func pids() throws(SystemError) -> [Int32] {
        var pids: [Int32] = []
        for group in try groups() {
            let bytes: [UInt8]?
            do {
                let (name, directory) =
                    group == path ? ("cgroup.procs", folder.raw) : (group + "/cgroup.procs", currentFolder)
                bytes = try readFileIfPresent(at: name, in: directory, limit: 4 << 20)
            } catch  where error.errno == EOPNOTSUPP {
                continue  // a threaded group; its processes are listed further up
            }
            var scanner = ByteScanner(bytes ?? [])
            while let line = scanner.line() {
                // 0 is a process of a pid namespace that we cannot see.
                if let pid: Int32 = parseNumber(line), pid > 0 { pids.append(pid) }
            }
        }
        return pids
    }

    /// rmdir, children first; false when something is still inside.
    func remove() throws(SystemError) -> Bool {
        for group in try groups().reversed() {
            if rmdir(group) == 0 || errno == ENOENT { continue }
            if errno == EBUSY { return false }
            throw SystemError(call: "rmdir", errno: errno, path: group)
        }
        return true
    }
}

/// Reads "key value" lines.
func flatKeyed(_ bytes: [UInt8], _ key: String) -> UInt64? {
    var scanner = ByteScanner(bytes)
    while let line = scanner.line() {
        var words = ByteScanner(line)
        if words.word()?.elementsEqual(key.utf8) == true { return words.number() }
    }
    return nil
}

/// The groups directly below one; none if it is gone.
func subfolders(of path: String) throws(SystemError) -> [String] {
    let folder: Descriptor
    do {
        folder = try Descriptor.open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
    } catch {
        if error.meansGone { return [] }
        throw error
    }
    if try !hasChildren(folder.raw, path) { return [] }
    return try folderEntries(at: path, onlyFolders: true).sorted()
}

/// A cgroup's link count is 2 and one for each child: most have none, and need not be listed.
private func hasChildren(_ folder: Int32, _ path: String) throws(SystemError) -> Bool {
    var about = Glibc.stat()
    try checkErrno(fstat(folder, &about), "fstat", path)
    return about.st_nlink != 2
}
