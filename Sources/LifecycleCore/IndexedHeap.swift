/// A binary heap of slots by key, in which each slot stands at most once and can be moved or taken out: O(log n), the
/// smallest in O(1). Equal keys come in the order of their slots, so that the order never depends on history.
struct IndexedHeap<Key: Comparable & Hashable & Sendable>: Hashable, Sendable {
    private struct Entry: Hashable {
        var key: Key
        var slot: Int

        static func precedes(_ a: Entry, _ b: Entry) -> Bool {
            a.key < b.key || (a.key == b.key && a.slot < b.slot)
        }
    }

    private var entries: [Entry] = []
    /// Where a slot stands in `entries`; -1: nowhere.
    private var positions: [Int] = []

    /// The same slots with the same keys are the same heap, however they came to stand in it.
    static func == (a: Self, b: Self) -> Bool {
        a.entries.count == b.entries.count && a.entries.allSatisfy { b.key(of: $0.slot) == $0.key }
    }

    func hash(into hasher: inout Hasher) { hasher.combine(entries.count) }

    var count: Int { entries.count }
    var first: (key: Key, slot: Int)? { entries.first.map { ($0.key, $0.slot) } }

    func key(of slot: Int) -> Key? {
        guard slot < positions.count, positions[slot] >= 0 else { return nil }
        return entries[positions[slot]].key
    }

    /// Puts `slot` in its place for `key`; `nil` takes it out.
    mutating func set(_ slot: Int, to key: Key?) {
        while positions.count <= slot { positions.append(-1) }
        let position = positions[slot]
        switch (key, position >= 0) {
        case (nil, false): break
        case (nil, true): remove(at: position)
        case (let key?, false):
            entries.append(Entry(key: key, slot: slot))
            positions[slot] = entries.count - 1
            siftUp(entries.count - 1)
        case (let key?, true):
            if entries[position].key == key { return }
            entries[position].key = key
            siftUp(position)
            siftDown(positions[slot])
        }
    }

    /// The slots of the smallest keys, in order, at most `limit`.
    func smallest(_ limit: Int) -> [Int] {
        var found: [Int] = []
        var frontier = entries.isEmpty ? [] : [0]
        while found.count < limit, !frontier.isEmpty {
            var best = 0
            for i in frontier.indices where Entry.precedes(entries[frontier[i]], entries[frontier[best]]) { best = i }
            let position = frontier.remove(at: best)
            found.append(entries[position].slot)
            for child in [2 * position + 1, 2 * position + 2] where child < entries.count { frontier.append(child) }
        }
        return found
    }

    private mutating func remove(at position: Int) {
        positions[entries[position].slot] = -1
        let last = entries.removeLast()
        guard position < entries.count else { return }
        entries[position] = last
        positions[last.slot] = position
        siftUp(position)
        siftDown(positions[last.slot])
    }

    private mutating func siftUp(_ start: Int) {
        var position = start
        while position > 0 {
            let parent = (position - 1) / 2
            guard Entry.precedes(entries[position], entries[parent]) else { return }
            exchange(position, parent)
            position = parent
        }
    }

    private mutating func siftDown(_ start: Int) {
        var position = start
        while true {
            var least = position
            for child in (2 * position + 1)...(2 * position + 2)
            where child < entries.count && Entry.precedes(entries[child], entries[least]) {
                least = child
            }
            if least == position { return }
            exchange(position, least)
            position = least
        }
    }

    private mutating func exchange(_ a: Int, _ b: Int) {
        entries.swapAt(a, b)
        positions[entries[a].slot] = a
        positions[entries[b].slot] = b
    }
}
