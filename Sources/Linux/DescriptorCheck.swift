import CLinux
import Glibc
package import Posix

/// Whether descriptors of other programs can be kept open: whether no close(2) of them can wait for a file system.
///
/// What is kept is duplicated and closed again wherever it goes: in systemd's descriptor store, in the next daemon, in apps.
/// The server of a FUSE or NFS file can make each close(2) wait, and no signal ends that. fstat(2) and fstatfs(2) can wait as
/// well, so a file is known by its mount: the kernel reports the mount of a descriptor (proc_pid_fdinfo(5)) and the type of
/// the mount (proc_pid_mountinfo(5)) without a file system.
///
/// The mounts are read once, when the first file is checked. An open file keeps its mount and the mount's ID, so the answer is
/// exact for descriptors that are open by then: use a new check for each message.
package final class DescriptorCheck {
    /// Local file systems of the kernel, whose files have no operation that waits at each close(2), and whose fstat(2) does not
    /// wait. Not overlay: the file systems below it can be of any type.
    private static let localTypes: Set<String> = [
        "ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "bcachefs", "zfs", "vfat", "exfat", "iso9660", "udf",
        "squashfs",
        "erofs", "tmpfs", "ramfs", "rootfs", "devtmpfs", "devpts",
    ]

    /// File systems whose files a server has, on another machine or in another process of this one.
    private static let serverTypes: Set<String> = [
        "nfs", "nfs4", "cifs", "smb3", "fuse", "fuseblk", "virtiofs", "9p", "afs", "ceph", "coda", "lustre",
    ]

    /// The major numbers of memory devices, terminals, input, framebuffers, cameras, sound, pseudoterminals and graphics
    /// (kernel: admin-guide/devices.txt). The close of one may wait for its hardware, for a time that its driver limits.
    private static let deviceNumbers: Set<UInt64> = [
        1, 4, 5, 13, 29, 81, 116, 136, 137, 138, 139, 140, 141, 142, 143, 226,
    ]

    /// What can be kept, as the end of a sentence.
    package static let accepted =
        "sockets, pipes, memfds, eventfd, timerfd, signalfd, inotify, epoll, pidfd, files of local file systems, terminals, and "
        + "graphics, input, camera and sound devices"

    /// The longest mountinfo in bytes: about 20,000 mounts.
    private static let longestTable = 4 << 20
    /// The same of another mount namespace: about 1,300 mounts. With more, none is known.
    static let longestForeignTable = 256 << 10

    /// The type of each mount by its ID; `nil`: not read yet.
    private var types: [Int: String]?
    /// How many bytes of mountinfo were read.
    package private(set) var bytesRead = 0

    package init() {}

    /// - Parameter mountInfo: /proc/self/mountinfo
    package init(mountInfo: [UInt8]) { types = Self.types(mountInfo) }

    /// For descriptors of a process whose mount namespace is another one. It can make as many mounts there as it likes.
    init(mountsOf pid: Int32, _ proc: ProcFS) {
        types = Self.types(((try? proc.read("mountinfo", of: pid, limit: Self.longestForeignTable)) ?? nil) ?? [])
    }

    /// Why the descriptor cannot be kept, as the end of a sentence; `nil`: it can. Never blocks.
    package func reasonToRefuse(_ descriptor: borrowing Descriptor) -> String? {
        let number = descriptor.raw
        switch DescriptorKind(of: number) {
        case .socket, .pipe, .event, .memory: return nil
        case .other(let name): return name.isEmpty ? "an unknown object" : "the object \(name)"
        case .file: break
        }
        guard let mount = Self.mountID(of: number), let type = type(ofMount: mount) else {
            return "a file of a mount that greenroomd does not see"
        }
        guard Self.localTypes.contains(type) else { return "a file of the file system \(type)" }
        var about = Glibc.stat()
        guard fstat(number, &about) == 0 else { return "a file of an unknown kind" }
        switch about.st_mode & S_IFMT {
        case S_IFREG, S_IFDIR, S_IFIFO, S_IFLNK, S_IFSOCK: return nil
        case S_IFCHR:
            let (major, minor) = Self.numbers(ofDevice: UInt64(about.st_rdev))
            return Self.deviceNumbers.contains(major) ? nil : "the character device \(major):\(minor)"
        default: return "a block device"
        }
    }

    /// The type of the file system that a file is on, if a server has its files: it can change them at any time, whatever the
    /// permissions of the file say. `nil`: the kernel has them, or the mount is not known.
    package func serverFileSystem(of path: String) -> String? {
        guard let file = try? Descriptor.open(path, clinux_path_only), let mount = Self.mountID(of: file.raw),
            let type = type(ofMount: mount), Self.serverTypes.contains(type)
        else { return nil }
        return type
    }

    /// gnu_dev_major(3) and gnu_dev_minor(3), which are not in Swift's Glibc module.
    private static func numbers(ofDevice device: UInt64) -> (major: UInt64, minor: UInt64) {
        let major = (device >> 8) & 0xfff | (device >> 32) & 0xffff_f000
        let minor = device & 0xff | (device >> 12) & 0xffff_ff00
        return (major, minor)
    }

    // MARK: Mounts

    private static func mountID(of number: Int32) -> Int? {
        guard let file = try? Descriptor.open("/proc/self/fdinfo/\(number)", O_RDONLY) else { return nil }
        let raw = file.raw
        // The line is the third; what follows can be long.
        let size = 256
        guard let bytes = try? readBuffer(size, "read", nil, { read(raw, $0, size) }) else { return nil }
        var scanner = ByteScanner(bytes)
        while let line = scanner.line() {
            var words = ByteScanner(line)
            if words.word()?.text == "mnt_id:" { return words.number() }
        }
        return nil
    }

    private func type(ofMount id: Int) -> String? {
        if let types { return types[id] }
        let bytes = (try? readFile(at: "/proc/self/mountinfo", limit: Self.longestTable)) ?? []
        bytesRead += bytes.count
        let types = Self.types(bytes)
        self.types = types
        return types[id]
    }

    private static func types(_ mountInfo: [UInt8]) -> [Int: String] {
        var types: [Int: String] = [:]
        var scanner = ByteScanner(mountInfo)
        while let line = scanner.line() {
            var words = ByteScanner(line)
            // "36 35 98:0 /root /mount/point options optional… - type source super-options"
            guard let id: Int = words.number() else { continue }
            while let word = words.word(), word.text != "-" {}
            // The program that mounts a FUSE file system chooses what follows the dot.
            guard let type = words.word()?.prefix(while: { $0 != UInt8(ascii: ".") }) else { continue }
            types[id] = type.text
        }
        return types
    }
}
