import Glibc
import Posix

/// The cgroup of one run of one app.
final class CgroupLeaf {
    /// In the folder of the root: "photos.run3", or "photos.run3_1" if that still exists. No file of the kernel has such a name.
    struct Name {
        let app: String
        let run: UInt64
        var attempt: UInt8 = 0

        init(app: String, run: UInt64) { (self.app, self.run) = (app, run) }

        /// - Parameter text: `nil` is the result for what is no such name.
        init?(_ text: String) {
            // App IDs can contain dots, digits and underscores, so the search starts at the end.
            guard let dot = text.lastIndex(of: "."), dot > text.startIndex, text[dot...].hasPrefix(".run") else {
                return nil
            }
            let numbers = text[text.index(dot, offsetBy: 4)...].split(separator: "_", maxSplits: 1)
            guard let first = numbers.first, let run = UInt64(first) else { return nil }
            self.init(app: String(text[..<dot]), run: run)
            if let second = numbers.dropFirst().first {
                guard let attempt = UInt8(second) else { return nil }
                self.attempt = attempt
            }
            guard self.text == text else { return nil }
        }

        var text: String { "\(app).run\(run)" + (attempt == 0 ? "" : "_\(attempt)") }
    }

    private let name: Name
    var path: String { "\(root.path)/\(name.text)" }
    let root: CgroupRoot
    let folder: SharedDescriptor
    /// `cgroup.events` and, with the memory controller, `memory.stat`: reading them again costs a third of opening them again.
    private let events: Descriptor
    private let memory: Descriptor?
    /// `cgroup.freeze`, open while the group is frozen: to open it takes longer than to thaw a small app.
    private var freezer: Descriptor?

    /// Creates the group. It must not exist: once `cgroup.kill` was written, the kernel also kills every process that is
    /// created in the group later.
    static func make(_ name: Name, root: CgroupRoot) throws(SystemError) -> CgroupLeaf {
        let path = "\(root.path)/\(name.text)"
        try checkErrno(mkdir(path, 0o755), "mkdir", path)
        return try CgroupLeaf(existing: name, root: root)
    }

    init(existing name: Name, root: CgroupRoot) throws(SystemError) {
        self.name = name
        self.root = root
        let path = "\(root.path)/\(name.text)"
        folder = SharedDescriptor(try Descriptor.open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW))
        events = try openFile("cgroup.events", O_RDONLY | O_NOCTTY, in: folder)
        memory = root.hasMemoryController ? try openFile("memory.stat", O_RDONLY | O_NOCTTY, in: folder) : nil
    }

    /// Writes to a file of the group. If the group no longer exists, nothing happens, as in an empty group.
    func write(_ text: String, to file: String) throws(SystemError) {
        try unlessGone(file) { () throws(SystemError) in try writeControlFile(file, text, in: folder) }
    }

    private func unlessGone(_ file: String, _ body: () throws(SystemError) -> Void) throws(SystemError) {
        do {
            try body()
        } catch {
            if error.meansGone { return }
            throw SystemError(call: error.call, errno: error.errno, path: "\(path)/\(file)")
        }
    }

    func freeze() throws(SystemError) {
        try unlessGone("cgroup.freeze") { () throws(SystemError) in
            let file = try openFile("cgroup.freeze", O_WRONLY | O_NONBLOCK | O_NOFOLLOW, in: folder)
            try writeControl("1", to: file, "cgroup.freeze")
            freezer = consume file
        }
    }

    func thaw() throws(SystemError) {
        guard let file = freezer.take() else { return try write("0", to: "cgroup.freeze") }
        try unlessGone("cgroup.freeze") { () throws(SystemError) in try writeControl("0", to: file, "cgroup.freeze") }
    }

    func has(_ file: String) -> Bool { faccessat(folder.raw, file, F_OK, 0) == 0 }

    /// Reads a key of cgroup.events ("populated", "frozen"); false if the group no longer exists.
    func event(_ name: String) throws(SystemError) -> Bool {
        guard let bytes = try events.readStartIfPresent("cgroup.events", limit: 256) else { return false }
        return flatKeyed(bytes, name) == 1
    }

    func value(_ file: String, _ key: String) throws(SystemError) -> UInt64? {
        try readRecord(at: file, in: folder, limit: 16 * 1024).flatMap { flatKeyed($0, key) }
    }

    /// `nil` without the memory controller.
    func footprint() throws(SystemError) -> Footprint? {
        if !root.hasMemoryController { return nil }
        guard let stat = try memory?.readStartIfPresent("memory.stat", limit: 16 * 1024) else { return Footprint() }
        // The file is missing if the kernel was started without swap accounting.
        let swapped = try readFileIfPresent(at: "memory.swap.current", in: folder, limit: 64) ?? []
        var scanner = ByteScanner(swapped)
        return Footprint(parsingStat: stat, swapped: scanner.number() ?? 0)
    }

    /// The most groups that are examined. An app can create groups below its own, at any depth.
    static let mostGroups = 4096

    /// Returns this group and all below it, each before its children.
    private func groups() throws(SystemError) -> [String] {
        if try !hasChildren(folder.descriptor, path) { return [path] }
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
                    group == path ? ("cgroup.procs", folder) : (group + "/cgroup.procs", nil)
                bytes = try readFileIfPresent(at: name, in: directory, limit: 4 << 20)
            } catch  where error.errno == EOPNOTSUPP {
                continue  // a threaded group: its processes are listed in a group above
            }
            var scanner = ByteScanner(bytes ?? [])
            while let line = scanner.line() {
                // 0 if the process is in a pid namespace that is not visible here.
                if let pid: Int32 = parseNumber(line), pid > 0 { pids.append(pid) }
            }
        }
        return pids
    }

    /// Removes the group and those below it, children first. False if a process is still in one of them.
    func remove() throws(SystemError) -> Bool {
        for group in try groups().reversed() {
            if rmdir(group) == 0 || errno == ENOENT { continue }
            if errno == EBUSY { return false }
            throw SystemError(call: "rmdir", errno: errno, path: group)
        }
        return true
    }
}

/// Returns the value of a key in "key value" lines.
func flatKeyed(_ bytes: [UInt8], _ key: String) -> UInt64? {
    var scanner = ByteScanner(bytes)
    while let line = scanner.line() {
        var words = ByteScanner(line)
        if words.word()?.elementsEqual(key.utf8) == true { return words.number() }
    }
    return nil
}

/// Returns the names of the groups directly below one; none if it no longer exists.
func subfolders(of path: String) throws(SystemError) -> [String] {
    let folder: Descriptor
    do {
        folder = try Descriptor.open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
    } catch {
        if error.meansGone { return [] }
        throw error
    }
    if try !hasChildren(folder, path) { return [] }
    return try folderEntries(at: path, onlyFolders: true).sorted()
}

/// Whether a cgroup has children, by its link count: 2, and 1 for each child. Most have none and need not be listed.
private func hasChildren(_ folder: borrowing Descriptor, _ path: String) throws(SystemError) -> Bool {
    var about = Glibc.stat()
    try checkErrno(fstat(folder.raw, &about), "fstat", path)
    return about.st_nlink != 2
}
