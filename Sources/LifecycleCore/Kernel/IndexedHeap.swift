/// A binary heap of apps by key. Each app is in it at most once; changing its key or removing it is O(log n), finding
/// the smallest O(1). Apps with equal keys are ordered by index, so that the order never depends on history.
struct IndexedHeap<Key: Comparable & Hashable & Sendable>: Hashable, Sendable {
    private struct Entry: Hashable {
        var key: Key
        var index: AppIndex

        static func precedes(_ a: Entry, _ b: Entry) -> Bool {
            a.key < b.key || (a.key == b.key && a.index < b.index)
        }
    }

    private var entries: [Entry] = []
    /// By number of the index: where the app is in `entries`; -1: nowhere. 32 bits are enough for any number of apps, and there are
    /// five heaps.
    private var positions: [Int32] = []

    /// Heaps are equal if they have the same apps with the same keys, however they are arranged.
    static func == (a: Self, b: Self) -> Bool {
        a.entries.count == b.entries.count && a.entries.allSatisfy { b.key(of: $0.index) == $0.key }
    }

    func hash(into hasher: inout Hasher) { hasher.combine(entries.count) }

    var count: Int { entries.count }
    var first: (key: Key, index: AppIndex)? { entries.first.map { ($0.key, $0.index) } }

    func key(of index: AppIndex) -> Key? {
        guard index.number < positions.count, positions[index.number] >= 0 else { return nil }
        return entries[Int(positions[index.number])].key
    }

    /// Sets the key of `index`; `nil` removes it.
    mutating func set(_ index: AppIndex, to key: Key?) {
        while positions.count <= index.number { positions.append(-1) }
        let position = Int(positions[index.number])
        switch (key, position >= 0) {
        case (nil, false): break
        case (nil, true): remove(at: position)
        case (let key?, false):
            entries.append(Entry(key: key, index: index))
            positions[index.number] = Int32(entries.count - 1)
            siftUp(entries.count - 1)
        case (let key?, true):
            let before = entries[position].key
            if before == key { return }
            entries[position].key = key
            if key < before { siftUp(position) } else { siftDown(position) }
        }
    }

    /// The apps with the smallest keys, in order, at most `limit`.
    func smallest(_ limit: Int) -> [AppIndex] {
        let count = min(limit, entries.count)
        guard count > 1 else { return entries.prefix(count).map(\.index) }
        var found: [AppIndex] = []
        found.reserveCapacity(count)
        // Taking the smallest one of it adds at most two.
        var frontier: [Int] = []
        frontier.reserveCapacity(count + 1)
        frontier.append(0)
        while found.count < count {
            var best = 0
            for i in frontier.indices where Entry.precedes(entries[frontier[i]], entries[frontier[best]]) { best = i }
            let position = frontier[best]
            frontier.swapAt(best, frontier.count - 1)
            frontier.removeLast()
            found.append(entries[position].index)
            for child in (2 * position + 1)...(2 * position + 2) where child < entries.count { frontier.append(child) }
        }
        return found
    }

    private mutating func remove(at position: Int) {
        positions[entries[position].index.number] = -1
        let last = entries.removeLast()
        if entries.isEmpty {
            // Many apps wait for their launch after a start, and hardly ever again.
            (entries, positions) = ([], [])
            return
        }
        guard position < entries.count else { return }
        entries[position] = last
        positions[last.index.number] = Int32(position)
        siftUp(position)
        siftDown(Int(positions[last.index.number]))
    }

    private mutating func siftUp(_ start: Int) {
        let entry = entries[start]
        var position = start
        while position > 0 {
            let parent = (position - 1) / 2
            guard Entry.precedes(entry, entries[parent]) else { break }
            put(entries[parent], at: position)
            position = parent
        }
        if position != start { put(entry, at: position) }
    }

    private mutating func siftDown(_ start: Int) {
        let entry = entries[start]
        var position = start
        while true {
            var child = 2 * position + 1
            guard child < entries.count else { break }
            if child + 1 < entries.count, Entry.precedes(entries[child + 1], entries[child]) { child += 1 }
            guard Entry.precedes(entries[child], entry) else { break }
            put(entries[child], at: position)
            position = child
        }
        if position != start { put(entry, at: position) }
    }

    private mutating func put(_ entry: Entry, at position: Int) {
        entries[position] = entry
        positions[entry.index.number] = Int32(position)
    }
}
