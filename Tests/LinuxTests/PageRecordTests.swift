import CLinux
import Glibc
import Linux
import Posix
import TestKit
import Testing

@Suite("Pages that an app has touched since it was pushed out (L37)")
struct PageRecordTests {
    private func pairs(_ record: [UInt8]) -> [(UInt64, UInt64)] {
        record.withUnsafeBufferPointer { bytes in
            guard let start = bytes.baseAddress else { return [] }
            var found: [(UInt64, UInt64)] = []
            var (next, first, second): (UnsafePointer<UInt8>?, UInt64, UInt64) = (start, 0, 0)
            while clinux_pages_next(&next, start + bytes.count, &first, &second) { found.append((first, second)) }
            return found
        }
    }

    /// The ranges of pages of each process.
    private func ranges(_ record: [UInt8]) -> [Int32: [Range<UInt64>]] {
        var found: [Int32: [Range<UInt64>]] = [:]
        var (pid, page) = (Int32(0), UInt64(0))
        for (first, count) in pairs(record) {
            if count == 0 {
                (pid, page) = (Int32(first), 0)
                found[pid] = []
            } else {
                found[pid, default: []].append(page + first..<page + first + count)
                page += first + count
            }
        }
        return found
    }

    /// Records entries of pagemap: bit 63 is set if the page is in memory, bit 62 if it is in swap (proc_pid_pagemap(5)).
    private func record(
        of processes: [(Int32, from: UInt64, [UInt64])], atMost limit: UInt64 = 4096
    ) -> [UInt8]? {
        var pages = clinux_pages()
        pages.left = limit
        for (pid, first, entries) in processes {
            clinux_pages_begin(&pages, pid)
            guard clinux_pages_add(&pages, first, entries, entries.count) == 0 else { return nil }
        }
        clinux_pages_end(&pages)
        return withUnsafeBytes(of: pages.bytes) { [UInt8]($0.prefix(pages.length)) }
    }

    private func pagemap(_ count: Int, present: (Int) -> Bool) -> [UInt64] {
        (0..<count).map { present($0) ? 1 << 63 | 1 << 55 : 1 << 62 | 0x1234 }
    }

    @Test("pages in memory are ranges; those with fewer than 4 others between them are one (L37)")
    func merging() {
        let first: UInt64 = 0x7_ffff_0000
        func found(_ entries: [UInt64]) -> [Range<UInt64>]? {
            record(of: [(7, first, entries)]).flatMap { ranges($0)[7] }?.map {
                $0.lowerBound - first..<$0.upperBound - first
            }
        }
        #expect(found([]) == [])
        #expect(found(pagemap(100) { _ in false }) == [])
        #expect(found(pagemap(100) { $0 == 0 || $0 == 99 }) == [0..<1, 99..<100])
        #expect(found(pagemap(100) { $0 == 10 || $0 == 14 || $0 == 19 }) == [10..<15, 19..<20])
        #expect(found(pagemap(4096) { _ in true }) == [0..<4096])
    }

    @Test("each process has ranges of its own (L37)")
    func processes() throws {
        let all = pagemap(3) { _ in true }
        let found = try #require(record(of: [(4_194_304, 0, all), (8, 1 << 35, all), (9, 5, []), (10, 2, all)]))
        let far: UInt64 = 1 << 35
        let expected: [Int32: [Range<UInt64>]] = [4_194_304: [0..<3], 8: [far..<far + 3], 9: [], 10: [2..<5]]
        #expect(ranges(found) == expected)
    }

    @Test("too many pages are no record; of too many ranges the first are recorded (L37)")
    func bounds() throws {
        let ten = pagemap(10) { _ in true }
        let apart = pagemap(5) { $0 % 4 == 0 }
        #expect(record(of: [(1, 0, ten)], atMost: 10) != nil)
        #expect(record(of: [(1, 0, ten)], atMost: 9) == nil)
        // What lies between two is read too.
        #expect(record(of: [(1, 0, apart), (2, 0, apart)], atMost: 10) != nil)
        #expect(record(of: [(1, 0, apart), (2, 0, apart)], atMost: 9) == nil)
        let many = try #require(record(of: [(1, 0, pagemap(4096 * 17) { $0 % 17 == 0 })]))
        #expect(many.count <= 4096)
        let found = try #require(ranges(many)[1])
        let expected = (0..<UInt64(found.count)).map { index -> Range<UInt64> in index * 17..<index * 17 + 1 }
        #expect(found == expected)
        #expect(found.count > 2000)
    }

    @Test("any bytes end, and any entries have ranges in order (L37)")
    func damaged() throws {
        for length in 0..<200 {
            #expect(pairs((0..<length).map { _ in UInt8.random(in: 0...255) }).count <= length)
            let entries = (0..<length).map { _ in UInt64.random(in: 0 ... .max) }
            let found = try #require(record(of: [(1, 100, entries)]).flatMap { ranges($0)[1] })
            #expect(found.allSatisfy { $0.lowerBound >= 100 && $0.upperBound <= 100 + UInt64(length) })
            #expect(zip(found, found.dropFirst()).allSatisfy { $0.upperBound + 4 <= $1.lowerBound })
        }
    }

    @Test(
        "swap is on a disk unless all of it is zram (L37)",
        arguments: [
            ("", false), ("Filename\tType\tSize\tUsed\tPriority\n", false),
            ("Filename\n/dev/zram0 partition 1000 0 100\n", false),
            ("Filename\n/dev/zram0 partition 1000 0 100\n/dev/zram1 partition 1000 0 100\n", false),
            ("Filename\n/swap\\040file file 1000 950 -2\n", true),
            ("Filename\n/dev/zram0 partition 1000 0 100\n/dev/vda2 partition 1000 0 -2\n", true),
        ])
    func disk(swaps: String, expected: Bool) throws {
        let scratch = try Scratch()
        _ = try scratch.file("swaps", swaps)
        #expect(ProcFS(root: scratch.path).hasDiskSwap == expected)
    }

    /// - Returns: what the thread makes of this file, and the error.
    private func perform(
        _ bytes: [UInt8], _ submit: (HelperThread, consuming Descriptor) throws -> Bool
    ) throws -> ([UInt8], errno: Int32) {
        let thread = try HelperThread(name: "reclaim", .reports)
        let file = try MemoryFile.empty("pages")
        try writeAll(bytes, to: file, path: "pages")
        #expect(try submit(thread, try file.duplicate()))
        try wait(for: try #require(thread.completions))
        let completion = try #require(try thread.collect().first)
        return (try #require(try MemoryFile.contents(file, limit: 4096)), completion.errno)
    }

    private func record(of pids: [Int32]) throws -> ([UInt8], errno: Int32) {
        try perform(pids.flatMap { withUnsafeBytes(of: $0) { [UInt8]($0) } }) { thread, file in
            try thread.recordPages(in: file, token: 1)
        }
    }

    @Test(
        "the pages of a process are found, and asked for; a process that has ended has none (L37)",
        .enabled(if: access("/usr/bin/python3", X_OK) == 0))
    func process() throws {
        let scratch = try Scratch()
        let script = """
            import ctypes, mmap, os, sys, time
            memory = mmap.mmap(-1, 40 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            if sys.argv[2] == 'all': memory[:] = b'x' * len(memory)
            for page in 3, 4, 100, 9000: memory[page * 4096] = 1
            with open(sys.argv[1] + '.new', 'w') as file:
                file.write(str(ctypes.addressof(ctypes.c_char.from_buffer(memory)) // 4096))
            os.rename(sys.argv[1] + '.new', sys.argv[1])
            time.sleep(1000)
            """
        func start(_ kind: String) throws -> (Process, first: UInt64) {
            let path = "\(scratch.path)/\(kind)"
            var starting = try startProcess(
                SpawnRequest(
                    executable: "/usr/bin/python3", arguments: ["-c", script, path, kind],
                    environment: ["PATH=/usr/bin:/bin"]))
            #expect(try starting.finalOutcome() == .executed)
            try eventually("it has touched its pages") { access(path, F_OK) == 0 }
            return (
                starting.process,
                try #require(UInt64(String(decoding: try readFile(at: path, limit: 64), as: UTF8.self)))
            )
        }
        let (some, first) = try start("some")
        let (all, _) = try start("all")
        let found = try record(of: [some.pid])
        #expect(found.errno == 0)
        let pages = try #require(ranges(found.0)[some.pid])
        for page in [3, 4, 100, 9000] as [UInt64] { #expect(pages.contains { $0.contains(first + page) }, "\(page)") }
        for page in [50, 5000, 10_000] as [UInt64] { #expect(!pages.contains { $0.contains(first + page) }, "\(page)") }
        #expect(try record(of: [some.pid, all.pid]).errno == E2BIG)
        func bringBack(until end: Duration) throws -> Int32 {
            try perform(found.0) { try $0.bringBack($1, until: end, token: 1) }.errno
        }
        // EPERM: without CAP_SYS_NICE.
        #expect(try [0, geteuid() == 0 ? 0 : EPERM].contains(bringBack(until: .seconds(1 << 40))))
        #expect(try bringBack(until: .zero) == 0)
        for process in [some, all] {
            try process.signal(SIGKILL)
            _ = try process.waitForEnd()
        }
        #expect(try record(of: [some.pid, all.pid]) == ([], 0))
        #expect(try bringBack(until: .seconds(1 << 40)) == 0)
    }
}
