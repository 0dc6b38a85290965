import Testing

@testable import LifecycleCore

@Suite("Indexed heap")
struct IndexedHeapTests {
    @Test("the heap equals a sorted list after random insertions, changes and removals")
    func model() {
        var random = RandomGenerator(state: 7)
        var heap = IndexedHeap<Int>()
        var model: [AppIndex: Int] = [:]
        for _ in 0..<5000 {
            let slot = AppIndex(Int.random(in: 0..<40, using: &random))
            let key = random.isOne(in: 3) ? nil : Int.random(in: 0..<20, using: &random)
            heap.set(slot, to: key)
            model[slot] = key
            let sorted = model.sorted { ($0.value, $0.key) < ($1.value, $1.key) }.map(\.key)
            #expect(heap.count == model.count)
            #expect(heap.first?.index == sorted.first)
            #expect(heap.first?.key == sorted.first.flatMap { model[$0] })
            #expect(heap.smallest(5) == Array(sorted.prefix(5)))
            #expect(heap.key(of: slot) == key)
        }
    }

    @Test("equal keys come in the order of their slots")
    func equalKeys() {
        var heap = IndexedHeap<Int>()
        for slot: AppIndex in [4, 1, 3, 0, 2] { heap.set(slot, to: 9) }
        heap.set(1, to: nil)
        heap.set(1, to: 9)
        #expect(heap.smallest(10) == [0, 1, 2, 3, 4])
    }

    @Test("an empty heap has no first element, and removing an absent slot has no effect")
    func empty() {
        var heap = IndexedHeap<Int>()
        #expect(heap.first == nil)
        #expect(heap.smallest(3) == [])
        heap.set(5, to: nil)
        #expect(heap.count == 0)
        #expect(heap.key(of: 5) == nil)
        #expect(heap.key(of: 500) == nil)
    }
}
