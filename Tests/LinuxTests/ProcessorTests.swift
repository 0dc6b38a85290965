import Glibc
import Posix
import TestKit
import Testing

@testable import Linux

@Suite("Processor time and listeners")
struct ProcessorTests {
    @Test("the total of full in cpu.pressure is the time without a processor")
    func pressure() {
        let text = """
            some avg10=1.00 avg60=2.00 avg300=3.00 total=17208365
            full avg10=0.00 avg60=0.99 avg300=2.08 total=11268519

            """
        #expect(fullStallTime(Array(text.utf8)) == .microseconds(11_268_519))
        for text in ["", "some avg10=0.00 total=3\n", "full avg10=0.00\n", "full total=x\n", "full total=-\n"] {
            #expect(fullStallTime(Array(text.utf8)) == nil)
        }
    }

    @Test("without cpu.pressure the threads of the main process count")
    func schedstat() throws {
        let root = makeTemporaryFolder("greenroom-proc")
        defer { removeTree(root) }
        for (thread, text) in [("77", "1000000 2000000 5\n"), ("78", "3000000 500000 7\n"), ("79", "x\n")] {
            try createDirectories(at: "\(root)/77/task/\(thread)")
            try replaceFile(at: "\(root)/77/task/\(thread)/schedstat", with: Array(text.utf8))
        }
        let proc = ProcFS(root: root)
        #expect(
            try proc.processorUse(of: 77) == ProcessorUse(used: .milliseconds(4), waited: .milliseconds(2)))
        #expect(try proc.processorUse(of: 1) == ProcessorUse(used: .zero, waited: .zero))
        #expect(try proc.processorUse(of: nil) == ProcessorUse(used: .zero, waited: .zero))
    }

    @Test("this process uses processors")
    func own() throws {
        #expect(try ProcFS().processorUse(of: getpid()).used > .zero)
        #expect(usableProcessors() >= 1)
    }

    private static let tcp = """
          sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
           0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0000000000000000 100 0 0 10 0
           1: 0100007F:1F91 0100007F:A000 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 0000000000000000 20 4 30 10 -1

        """
    private static let unix = """
        Num       RefCount Protocol Flags    Type St Inode Path
        0000000000000000: 00000002 00000000 00010000 0001 01 4713 /run/a
        0000000000000000: 00000003 00000000 00000000 0001 03 4714 /run/a
        0000000000000000: 00000002 00000000 00010000 0001 01 4715

        """

    @Test("sockets that listen are found in the tables of the kernel")
    func tables() {
        #expect(listeningSockets(Array(Self.tcp.utf8), isUnix: false) == [4711])
        #expect(listeningSockets(Array(Self.unix.utf8), isUnix: true) == [4713, 4715])
        for text in ["", "x", "\n\n", "a\nb c d\n", "Num\n: : : 00010000\n"] {
            #expect(listeningSockets(Array(text.utf8), isUnix: true).isEmpty)
            #expect(listeningSockets(Array(text.utf8), isUnix: false).isEmpty)
        }
    }

    @Test(
        "a process listens if one of its descriptors is such a socket",
        arguments: [(4711, true), (4713, true), (4712, false), (4714, false)])
    func process(inode: Int, listens: Bool) throws {
        let root = makeTemporaryFolder("greenroom-proc")
        defer { removeTree(root) }
        for folder in ["fd", "net"] { try createDirectories(at: "\(root)/77/\(folder)") }
        symlink("socket:[\(inode)]", "\(root)/77/fd/3")
        symlink("/dev/null", "\(root)/77/fd/0")
        try replaceFile(at: "\(root)/77/net/tcp", with: Array(Self.tcp.utf8))
        try replaceFile(at: "\(root)/77/net/unix", with: Array(Self.unix.utf8))
        #expect(try ProcFS(root: root).listens(77) == listens)
        #expect(try ProcFS(root: root).listens(78) == false)
    }
}
