import Glibc
import TestKit
import Testing

@testable import Linux

@Suite("The memory of the daemon")
struct OwnMemoryTests {
    @Test("what becomes free in the middle of the heap goes back to the kernel, also of locked memory")
    func trim() throws {
        try inOwnProcess {
            let memory = OwnMemory()
            // Without CAP_IPC_LOCK the memory stays unlocked.
            memory.lock()
            let blocks = (0..<32_768).map { _ in
                let block = malloc(1000)!
                memset(block, 1, 1000)
                return block
            }
            // The last ones stay, so that the heap cannot end before them.
            for block in blocks.dropLast(8) { free(block) }
            let before = try #require(memory.resident())
            memory.trim()
            let after = try #require(memory.resident())
            #expect(before - min(before, after) > 16 << 20)
            for block in blocks.suffix(8) { free(block) }
        }
    }

    @Test("the free end of the heap goes back to the kernel, also after a large block was freed")
    func heapEnd() throws {
        try inOwnProcess {
            let memory = OwnMemory()
            memory.boundHeap()
            // By default malloc(3) keeps twice as much from then on.
            free(malloc(24 << 20))
            // Another thread of the test process, or what the Swift runtime makes at the first use of a type, may stay at the end of
            // the heap. Then the gap before it is filled, so that the next blocks lie behind it.
            var isReturned = false
            for _ in 0..<5 where !isReturned {
                isReturned = try returnsFreeEnd(memory)
                if !isReturned { _ = makeBlocks() }
            }
            #expect(isReturned)
        }
    }

    private func makeBlocks() -> [UnsafeMutableRawPointer] {
        (0..<16_384).map { _ in
            let block = malloc(1000)!
            memset(block, 1, 1000)
            return block
        }
    }

    private func returnsFreeEnd(_ memory: OwnMemory) throws -> Bool {
        let blocks = makeBlocks()
        let before = try #require(memory.resident())
        // It keeps the first ones of this size, too.
        for block in blocks.prefix(8) { free(block) }
        for block in blocks.dropFirst(8).reversed() { free(block) }
        let after = try #require(memory.resident())
        return before - min(before, after) > 8 << 20
    }
}
