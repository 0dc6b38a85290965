import Glibc
import Posix
import TestKit
import Testing

@testable import Linux

@Suite("Helper threads that hold up the end of the process")
struct BlockedHelperTests {
    /// Writes a page that is never filled to its standard output, a pipe: the kernel holds the lock of the pipe meanwhile.
    /// userfaultfd(2) has the number 323 or 282.
    private static let script = """
        import ctypes, fcntl, mmap, os, struct
        libc = ctypes.CDLL(None, use_errno=True)
        fd = libc.syscall(323 if os.uname().machine == "x86_64" else 282, os.O_CLOEXEC)
        m = mmap.mmap(-1, 65536, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        address = ctypes.addressof(ctypes.c_char.from_buffer(m))
        fcntl.ioctl(fd, 0xc018aa3f, struct.pack("QQQ", 0xaa, 0, 0))  # UFFDIO_API
        fcntl.ioctl(fd, 0xc020aa00, struct.pack("QQQQ", address, 65536, 1, 0))  # UFFDIO_REGISTER
        os.write(1, m)
        """

    @Test(
        "a question about a pipe whose lock another process holds is named with its app until that process ends",
        .enabled(if: access("/usr/bin/python3", X_OK) == 0 && geteuid() == 0, "needs python3 and root"))
    func heldLock() throws {
        try inOwnProcess {
            let pipe = try Pipe()
            try pipe.write.setNonBlocking(false)
            let write = SharedDescriptor(try pipe.write.duplicate())
            var starting = try startProcess(
                SpawnRequest(
                    executable: "/usr/bin/python3", arguments: ["-c", Self.script],
                    environment: ["PATH=/usr/bin:/bin"], standardOutput: write))
            _ = try starting.finalOutcome()
            // The numbers of write(2). A process that has ended: the kernel does not permit userfaultfd(2).
            var isWriting = false
            try eventually("it writes, or has ended") {
                let bytes = try readFileIfPresent(at: "/proc/\(starting.pid)/syscall", limit: 256) ?? []
                let call = String(decoding: bytes, as: UTF8.self).split(separator: " ").first
                isWriting = call == "1" || call == "64"
                return isWriting || starting.process.isOver
            }
            if isWriting {
                #expect(BlockedHelper.all == [])
                let helper = try HelperThread(name: "input", .examines, owner: "web")
                #expect(try helper.examineInput(try pipe.read.duplicate(), token: 1))
                try eventually("the thread waits") { BlockedHelper.all == [BlockedHelper(.examining, owner: "web")] }
                #expect(helper.pending == 1)
                try starting.process.signal(SIGKILL)
                try eventually("it has an answer") { BlockedHelper.all == [] }
                try eventually("the answer is there") { try helper.collect().count == 1 }
            } else {
                try starting.process.signal(SIGKILL)
            }
            _ = try starting.process.waitForEnd()
        }
    }

    @Test("a socket that lingers is not named: a signal ends its close")
    func lingering() throws {
        try inOwnProcess {
            let closer = DescriptorCloser()
            closer.setOwner("web")
            let (writer, reader) = try #require(lingeringConnection())
            closer.close(Descriptor(adopting: writer))
            while fcntl(writer, F_GETFD) >= 0 { poll(nil, 0, 1) }
            #expect(BlockedHelper.all == [])
            #expect(closer.pending == 1)
            close(reader)
            while closer.pending > 0 { poll(nil, 0, 1) }
        }
    }
}
