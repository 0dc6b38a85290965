import CLinux
import Glibc
import Posix

/// The folder of a socket in the file system, opened so that no other user can have led this process elsewhere.
///
/// bind(2) follows links in the folders of a path, but not in its last part. So the folder itself may belong to an app's user: the
/// socket is made there or nowhere. The folders above it must be such that no other user can replace the next one.
struct SocketFolder: ~Copyable {
    private let folder: Descriptor
    private let path: String
    private let name: String

    /// Creates what is missing, as mkdir -p does.
    /// - Parameter mode: of folders that are created.
    init(of path: String, creating mode: UInt32) throws(SystemError) {
        let (parent, name) = try splitPath(path)
        let folder = try Self.open(parent, mode, path)
        self.path = path
        self.name = name
        self.folder = folder
    }

    private static func open(_ parent: String, _ mode: UInt32, _ path: String) throws(SystemError) -> Descriptor {
        guard parent.utf8.first == UInt8(ascii: "/") else {
            throw SystemError(call: "bind: not an absolute path:", errno: EINVAL, path: path)
        }
        var folder = try Descriptor.open("/", clinux_path_only | O_DIRECTORY)
        var reached = ""
        for name in parent.split(separator: "/").map(String.init) where name != "." {
            if name == ".." { throw SystemError(call: "bind", errno: EINVAL, path: path) }
            folder = try next(name, in: folder, reached, mode, path)
            reached += "/" + name
        }
        return folder
    }

    private static func next(
        _ name: String, in folder: borrowing Descriptor, _ reached: String, _ mode: UInt32, _ path: String
    ) throws(SystemError) -> Descriptor {
        var about = Glibc.stat()
        try checkErrno(fstat(folder.raw, &about), "stat", path)
        let isShared = try trust(about, reached, path)
        let isMade = mkdirat(folder.raw, name, 0o700) == 0
        if !isMade, errno != EEXIST { throw SystemError(call: "mkdir", errno: errno, path: reached + "/" + name) }
        try checkErrno(fstatat(folder.raw, name, &about, AT_SYMLINK_NOFOLLOW), "stat", reached + "/" + name)
        let isLink = about.st_mode & S_IFMT == S_IFLNK
        // In a sticky folder the owner of an entry can replace it; any link leads where its owner has chosen.
        if isShared || isLink, about.st_uid != 0, about.st_uid != geteuid() {
            throw distrust(reached + "/" + name, "it belongs to uid \(about.st_uid), who can replace it", path)
        }
        do {
            let next = try folder.open(name, clinux_path_only | O_DIRECTORY | (isLink ? 0 : O_NOFOLLOW))
            if isMade { try checkErrno(chmod("/proc/self/fd/\(next.raw)", mode), "chmod", reached + "/" + name) }
            return next
        } catch {
            throw SystemError(call: error.call, errno: error.errno, path: reached + "/" + name)
        }
    }

    /// Checks that no other user can replace the folders in a folder.
    /// - Returns: whether other users have entries of their own in it (sticky(7)).
    private static func trust(_ about: Glibc.stat, _ folder: String, _ path: String) throws(SystemError) -> Bool {
        let name = folder.isEmpty ? "/" : folder
        if about.st_uid != 0, about.st_uid != geteuid() {
            throw distrust(name, "it belongs to uid \(about.st_uid), who can replace folders in it", path)
        }
        let isPrivateGroup = about.st_gid == 0 || about.st_gid == getegid()
        let isShared = about.st_mode & S_IWOTH != 0 || about.st_mode & S_IWGRP != 0 && !isPrivateGroup
        if isShared, about.st_mode & S_ISVTX == 0 {
            throw distrust(
                name, "other users can replace folders in it (mode \(String(about.st_mode & 0o7777, radix: 8)))", path)
        }
        return isShared
    }

    private static func distrust(_ folder: String, _ reason: String, _ path: String) -> SystemError {
        SystemError(
            call: "bind: the folder \(folder.printable()) is not safe, because \(reason):", errno: EPERM, path: path)
    }

    // MARK: The file

    private func entry() throws(SystemError) -> Descriptor {
        do {
            return try folder.open(name, clinux_path_only | O_NOFOLLOW)
        } catch {
            throw SystemError(call: error.call, errno: error.errno, path: path)
        }
    }

    /// Gives the file that was just made its owner.
    func own(_ owner: Owner?) throws(SystemError) -> FileIdentity {
        let entry = try entry()
        guard let identity = FileIdentity(of: entry) else {
            throw SystemError(call: "bind: another process has replaced", errno: EEXIST, path: path)
        }
        if let owner { try check(clinux_change_owner(entry.raw, owner.uid, owner.gid), "chown", path) }
        return identity
    }

    /// Changes the mode and the owner of the file.
    func set(_ mode: UInt32, _ owner: Owner?) throws(SystemError) {
        let entry = try entry()
        guard FileIdentity(of: entry) != nil else { throw SystemError(call: "chmod", errno: EEXIST, path: path) }
        try checkErrno(chmod("/proc/self/fd/\(entry.raw)", mode), "chmod", path)
        let owner = owner ?? Owner(uid: geteuid(), gid: getegid())
        try check(clinux_change_owner(entry.raw, owner.uid, owner.gid), "chown", path)
    }

    /// Removes the file of a socket that no process has any more.
    /// - Throws: EEXIST for another file, EADDRINUSE if a process has the socket.
    func removeStale(_ type: ListenType, _ address: ListenAddress) throws(SystemError) {
        do throws(SystemError) {
            guard FileIdentity(of: try entry()) != nil else {
                throw SystemError(call: "bind: a file that is not a socket is at", errno: EEXIST, path: path)
            }
        } catch  where error.errno == ENOENT {
            return
        }
        if try isInUse(type, address) {
            throw SystemError(call: "bind: another program has the socket", errno: EADDRINUSE, path: path)
        }
        if unlinkat(folder.raw, name, 0) < 0, errno != ENOENT {
            throw SystemError(call: "unlink", errno: errno, path: path)
        }
    }

    /// Connects without blocking. A process that only holds the descriptor of a process that has ended (a service manager, for
    /// example) accepts no connections.
    private func isInUse(_ type: ListenType, _ address: ListenAddress) throws(SystemError) -> Bool {
        let number = socket(
            AF_UNIX, type.number | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue), 0)
        let probe = Descriptor(adopting: try checkErrno(number, "socket AF_UNIX"))
        guard var bound = try address.candidates().first else { return false }
        let length = socklen_t(bound.length)
        let result = withUnsafePointer(to: &bound.bytes) { bytes in
            bytes.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(probe.raw, $0, length) }
        }
        if result < 0 { return errno != ECONNREFUSED && errno != ENOENT }
        guard type != .datagram else { return true }
        // The process that called listen(2); 0: outside of this pid namespace.
        let listener = try PeerCredentials(ofSocket: probe).pid
        return !(listener > 0 && kill(listener, 0) < 0 && errno == ESRCH)
    }
}
