import Glibc
import Posix
import TestKit
import Testing

@testable import Linux

@Suite("Footprint")
struct FootprintTests {
    @Test("with a memory controller pages of files and reclaimable slab do not count, swap does (L38)")
    func counted() {
        let stat = """
            anon 104857600
            file 629145600
            kernel 5242880
            kernel_stack 98304
            pagetables 1048576
            shmem 20971520
            file_mapped 31457280
            slab_reclaimable 4194304
            slab 4718592
            """
        let footprint = Footprint(parsingStat: Array(stat.utf8), swapped: 3 << 20)
        #expect(footprint.bytes == (100 + 20 + 3 + 5 - 4) << 20)
        #expect(footprint.swapped == 3 << 20)
        #expect(footprint.resident == (100 + 30) << 20)
    }

    @Test("what is in swap and not freed yet is resident, and counted once")
    func cached() {
        let stat = "anon 1000\nshmem 300\nfile_mapped 500\ninactive_anon 2000\nactive_anon 800\nswapcached 1500\n"
        let footprint = Footprint(parsingStat: Array(stat.utf8), swapped: 4000)
        #expect(footprint.resident == 2800 - 300 + 500)
        #expect(footprint.bytes == 1000 + 300 + 4000)
    }

    @Test("before Linux 5.18 the kernel's memory is the sum of its parts")
    func older() {
        let stat = "anon 1048576\nkernel_stack 16384\npagetables 8192\npercpu 4096\nslab 10000\nslab_reclaimable 4000\n"
        #expect(Footprint(parsingStat: Array(stat.utf8), swapped: 0).bytes == 1_048_576 + 16384 + 8192 + 4096 + 6000)
    }

    @Test(
        "no text makes it trap",
        arguments: ["", "anon", "anon x", "anon 18446744073709551615\nshmem 1", "slab_reclaimable 9"])
    func invalid(_ text: String) { _ = Footprint(parsingStat: Array(text.utf8), swapped: .max) }

    @Test("a process's share of its memory is measured on the helper thread")
    func exact() throws {
        let thread = try HelperThread(name: "footprint", .reports)
        let proc = ProcFS()
        let own = try #require(try proc.memory(of: getpid()))
        #expect(try thread.measure(.memory, of: try proc.openFolder(of: getpid()), token: 7))
        var found: [HelperThread.Completion] = []
        try eventually("it is measured") {
            found += try thread.collect()
            return !found.isEmpty
        }
        #expect(found.map(\.token) == [7])
        #expect(found.map(\.errno) == [0])
        // Nothing of this process is shared with another but pages of files; it allocates meanwhile.
        #expect(found[0].bytes > own.anonymous / 2)
    }

    @Test("files in memory count once if they are open and have no name, and not if they are mapped")
    func files() throws {
        let thread = try HelperThread(name: "footprint", .reports)
        func measure(_ what: HelperThread.Measurement, _ token: UInt64) throws -> UInt64 {
            #expect(try thread.measure(what, of: try ProcFS().openFolder(of: getpid()), token: token))
            var found: [HelperThread.Completion] = []
            try eventually("it is measured") {
                found += try thread.collect()
                return !found.isEmpty
            }
            #expect(found.map(\.errno) == [0])
            return found[0].bytes
        }
        try inOwnProcess {
            let size = 3 << 20
            let before = try measure(.files, 1)
            let file = try MemoryFile.empty("kept")
            var block = [UInt8](repeating: 1, count: size)
            try #require(write(file.raw, &block, size) == size)
            #expect(try measure(.files, 2) == before + UInt64(size))
            // The same app: the file was found in another process of it.
            #expect(try measure(.files, 2) == 0)
            #expect(try measure(.mappedFiles, 2) == 0)
            try #require(mmap(nil, size, PROT_READ, MAP_SHARED, file.raw, 0) != MAP_FAILED)
            #expect(try measure(.mappedFiles, 2) == UInt64(size))
            #expect(try measure(.mappedFiles, 2) == 0)
        }
    }
}
