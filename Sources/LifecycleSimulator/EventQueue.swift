/// A priority queue by time. Items with the same time come out in the order of insertion. The binary heap consists of
/// small entries; the items stay in `items`.
struct EventQueue<Item> {
    private struct Entry {
        var time: Microseconds
        var sequence: UInt64
        var slot: Int

        static func precedes(_ a: Entry, _ b: Entry) -> Bool {
            a.time < b.time || (a.time == b.time && a.sequence < b.sequence)
        }
    }

    private var entries: [Entry] = []
    private var items: [Item?] = []
    private var free: [Int] = []
    private var sequence: UInt64 = 0

    var count: Int { entries.count }
    var nextTime: Microseconds? { entries.first?.time }
    var next: Item? { entries.first.flatMap { items[$0.slot] } }

    mutating func push(_ item: Item, at time: Microseconds) {
        sequence += 1
        insert(Entry(time: time, sequence: sequence, slot: store(item)))
    }

    /// Postpones the next item. Of several items that are postponed to the same time, the order is kept.
    mutating func postponeNext(until time: Microseconds) {
        guard var entry = entries.first, time > entry.time else { return }
        entry.time = time
        entries[0] = entry
        siftDown(0)
    }

    mutating func pop() -> (time: Microseconds, item: Item)? {
        guard let first = entries.first, let item = items[first.slot] else { return nil }
        items[first.slot] = nil
        free.append(first.slot)
        let last = entries.removeLast()
        if !entries.isEmpty {
            entries[0] = last
            siftDown(0)
        }
        return (first.time, item)
    }

    private mutating func store(_ item: Item) -> Int {
        if let slot = free.popLast() {
            items[slot] = item
            return slot
        }
        items.append(item)
        return items.count - 1
    }

    private mutating func insert(_ entry: Entry) {
        entries.append(entry)
        var position = entries.count - 1
        while position > 0 {
            let parent = (position - 1) / 2
            guard Entry.precedes(entries[position], entries[parent]) else { return }
            entries.swapAt(position, parent)
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
            entries.swapAt(position, least)
            position = least
        }
    }
}
