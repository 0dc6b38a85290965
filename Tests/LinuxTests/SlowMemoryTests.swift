import Glibc
import Posix
import TestKit
import Testing

@testable import Linux

@Suite("Memory of other processes", .timeLimit(.minutes(2)))
struct SlowMemoryTests {
    /// Prints the address of a page that is never filled, or 0 if the kernel does not permit it. userfaultfd(2) has the number
    /// 323 or 282.
    private static let script = """
        import ctypes, fcntl, mmap, os, signal, struct
        libc = ctypes.CDLL(None, use_errno=True)
        fd = libc.syscall(323 if os.uname().machine == "x86_64" else 282, os.O_CLOEXEC)
        m = mmap.mmap(-1, 65536, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        address = ctypes.addressof(ctypes.c_char.from_buffer(m))
        try:
            fcntl.ioctl(fd, 0xc018aa3f, struct.pack("QQQ", 0xaa, 0, 0))  # UFFDIO_API
            fcntl.ioctl(fd, 0xc020aa00, struct.pack("QQQQ", address, 65536, 1, 0))  # UFFDIO_REGISTER
        except (OSError, ValueError): address = 0
        print(address, flush=True)
        signal.pause()
        """

    @Test(
        "a page that is never filled delays the daemon by 100 ms, and others are read on",
        .enabled(if: access("/usr/bin/python3", X_OK) == 0))
    func hanging() throws {
        try inOwnProcess {
            let pipe = try Pipe()
            try pipe.read.setNonBlocking(false)
            try pipe.write.setNonBlocking(false)
            var request = SpawnRequest(
                executable: "/usr/bin/python3", arguments: ["-c", Self.script], environment: ["PATH=/usr/bin:/bin"])
            request.standardOutput = SharedDescriptor(try pipe.write.duplicate())
            var starting = try startProcess(request)
            request.standardOutput = nil
            let output = pipe.closingWrite()
            _ = try starting.finalOutcome()
            var bytes: [UInt8] = []
            var byte: UInt8 = 0
            while read(output.raw, &byte, 1) == 1, byte != 0x0a { bytes.append(byte) }
            let address = try #require(UInt64(String(decoding: bytes, as: UTF8.self)))
            if address != 0 {
                let hanging = readMemory(of: starting.pid, address, 16)
                #expect(hanging == nil)
            }
            let value: UInt64 = 4711
            var own: [UInt8]?
            // The thread that reads has 100 ms for it.
            try eventually("its own memory is read") {
                own = withUnsafeBytes(of: value) {
                    readMemory(of: getpid(), UInt64(UInt(bitPattern: $0.baseAddress)), 8)
                }
                return own != nil
            }
            #expect(own == withUnsafeBytes(of: value) { Array($0) })
            try starting.process.signal(SIGKILL)
            _ = try starting.process.waitForEnd()
        }
    }
}
