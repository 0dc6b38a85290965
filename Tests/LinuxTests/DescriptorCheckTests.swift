import Glibc
import Posix
import TestKit
import Testing

@testable import Linux

@Suite("Which descriptors of other programs can be kept")
struct DescriptorCheckTests {
    private func open(_ path: String) throws -> Descriptor {
        try Descriptor.open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY)
    }

    @Test("sockets, pipes, pidfds, memfds and devices of a terminal are kept (L18)")
    func accepted() throws {
        let check = DescriptorCheck()
        let pair = try SocketPair()
        #expect(check.reasonToRefuse(pair.near) == nil)
        let pipe = try Pipe()
        #expect(check.reasonToRefuse(pipe.read) == nil)
        #expect(check.reasonToRefuse(pipe.write) == nil)
        let process = try #require(try Linux.Process.open(getpid()))
        #expect(check.reasonToRefuse(process.descriptor.descriptor) == nil)
        let memory = try MemoryFile.empty("check")
        #expect(check.reasonToRefuse(memory) == nil)
        // Nothing so far needed the table of mounts.
        #expect(check.bytesRead == 0)
        for path in ["/dev/null", "/dev/ptmx"] where access(path, R_OK) == 0 {
            let device = try open(path)
            #expect(check.reasonToRefuse(device) == nil)
        }
    }

    @Test("the refusal names the file system, the device or the object (L18)")
    func refused() throws {
        let check = DescriptorCheck()
        let rows = [
            ("/proc/self/status", "a file of the file system proc"),
            ("/proc", "a file of the file system proc"),
            ("/dev/fuse", "the character device 10:229"),
        ]
        for (path, reason) in rows where access(path, R_OK) == 0 {
            let file = try open(path)
            #expect(check.reasonToRefuse(file) == reason)
        }
        let namespace = try open("/proc/self/ns/mnt")
        #expect(check.reasonToRefuse(namespace)?.hasPrefix("the object mnt:[") == true)
        #expect(check.bytesRead > 0)
    }

    @Test("of the mounts of another namespace 256 KiB are read; with more, none is known (L43)")
    func foreignMounts() throws {
        let scratch = try Scratch()
        let file = try open("/")
        let line = try "\(mountID(of: file)) 1 8:1 / / rw - ext4 /dev/vda rw\n"
        for (count, reason) in [(1, nil), (10_000, "a file of a mount that greenroomd does not see")] {
            try createDirectories(at: "\(scratch.path)/77")
            _ = try scratch.file("77/mountinfo", String(repeating: line, count: count))
            let check = DescriptorCheck(mountsOf: 77, ProcFS(root: scratch.path))
            #expect(check.reasonToRefuse(file) == reason)
        }
    }

    /// The mount of a file, from a file of the kernel that this test reads on its own.
    private func mountID(of file: borrowing Descriptor) throws -> Substring {
        let text = String(decoding: try readFile(at: "/proc/self/fdinfo/\(file.raw)", limit: 4096), as: UTF8.self)
        let line = try #require(text.split(separator: "\n").first { $0.hasPrefix("mnt_id:") })
        return try #require(line.split(separator: "\t").last)
    }

    @Test("the file systems of servers are known by the type of the mount (L10)")
    func servers() throws {
        let id = try mountID(of: open("/"))
        func server(_ type: String) -> String? {
            let line = "\(id) 1 0:9 / / rw - \(type) host:/export rw\n"
            return DescriptorCheck(mountInfo: Array(line.utf8)).serverFileSystem(of: "/")
        }
        for type in ["nfs", "nfs4", "cifs", "smb3", "fuse", "fuse.sshfs", "fuseblk", "9p", "virtiofs", "afs", "ceph"] {
            #expect(server(type) == type.split(separator: ".")[0].description)
        }
        for type in ["ext4", "xfs", "btrfs", "tmpfs", "squashfs", "overlay"] { #expect(server(type) == nil) }
        #expect(DescriptorCheck().serverFileSystem(of: "/does/not/exist") == nil)
    }

    @Test("a file is accepted by the type of its mount; one of a mount that is not in the table is refused (L18)")
    func mounts() throws {
        let folder = try open("/")
        let id = try mountID(of: folder)
        func reason(_ type: String, _ id: Substring) -> String? {
            let line = "\(id) 1 8:1 / / rw,relatime shared:1 master:2 - \(type) /dev/sda1 rw\n"
            return DescriptorCheck(mountInfo: Array(line.utf8)).reasonToRefuse(folder)
        }
        #expect(reason("ext4", id) == nil)
        #expect(reason("btrfs", id) == nil)
        for type in ["fuse", "fuse.sshfs", "nfs4", "overlay", "cifs", "9p", "virtiofs"] {
            let name = type.split(separator: ".")[0]
            #expect(reason(type, id) == "a file of the file system \(name)")
        }
        #expect(reason("ext4", id + "0") == "a file of a mount that greenroomd does not see")
        #expect(DescriptorCheck(mountInfo: Array("-\n\n1 -\nx".utf8)).reasonToRefuse(folder) != nil)
    }
}
