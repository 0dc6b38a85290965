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
            // malloc(3) keeps small blocks for the next use, and what this needs is not to lie at the end of the heap.
            _ = try #require(memory.resident())
            // Another thread of the test process may use the end of the heap meanwhile.
            var isReturned = false
            for _ in 0..<20 where !isReturned { isReturned = try returnsFreeEnd(memory) }
            #expect(isReturned)
        }
    }

    private func returnsFreeEnd(_ memory: OwnMemory) throws -> Bool {
        let blocks = (0..<16_384).map { _ in
            let block = malloc(1000)!
            memset(block, 1, 1000)
            return block
        }
        let before = try #require(memory.resident())
        // It keeps the first ones of this size, too.
        for block in blocks.prefix(8) { free(block) }
        for block in blocks.dropFirst(8).reversed() { free(block) }
        let after = try #require(memory.resident())
        return before - min(before, after) > 8 << 20
    }
}
