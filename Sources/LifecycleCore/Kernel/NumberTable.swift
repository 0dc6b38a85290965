/// A dictionary from numbers that count up to apps. It is faster than `Dictionary`, because such numbers need no hash
/// function that withstands chosen keys: the core numbers runs, and the daemon numbers requests.
struct NumberTable: Hashable, Sendable {
    private struct Entry: Hashable, Sendable {
        var number: UInt64
        /// Of the app; -1: the entry is free.
        var index: Int
    }
    /// A power of two of entries, at most half of them used. An entry stands at the first free position from its hash on.
    private var entries: [Entry] = []
    private(set) var count = 0

    private static let free = Entry(number: 0, index: -1)

    static func == (a: Self, b: Self) -> Bool {
        a.count == b.count && a.entries.allSatisfy { $0.index < 0 || b[$0.number]?.number == $0.index }
    }

    func hash(into hasher: inout Hasher) { hasher.combine(count) }

    /// The numbers, in ascending order.
    var numbers: [UInt64] { entries.filter { $0.index >= 0 }.map(\.number).sorted() }

    /// The app of a number. Setting `nil` removes the number.
    subscript(number: UInt64) -> AppIndex? {
        get {
            guard count > 0 else { return nil }
            let entry = entries[position(of: number)]
            return entry.index < 0 ? nil : AppIndex(entry.index)
        }
        set {
            guard let newValue else { return remove(number) }
            if 2 * (count + 1) > entries.count { grow() }
            let position = position(of: number)
            if entries[position].index < 0 { count += 1 }
            entries[position] = Entry(number: number, index: newValue.number)
        }
    }

    /// Where `number` is, or where it would be.
    private func position(of number: UInt64) -> Int {
        let mask = entries.count - 1
        var position = home(of: number) & mask
        while entries[position].index >= 0, entries[position].number != number { position = (position + 1) & mask }
        return position
    }

    /// Fibonacci hashing: neighbouring numbers are far apart.
    private func home(of number: UInt64) -> Int {
        Int(truncatingIfNeeded: (number &* 0x9e37_79b9_7f4a_7c15) >> 32)
    }

    private mutating func grow() {
        let old = entries
        entries = Array(repeating: Self.free, count: max(8, 2 * old.count))
        for entry in old where entry.index >= 0 { entries[position(of: entry.number)] = entry }
    }

    /// Moves the entries behind the removed one up, so that each is still found from its hash on.
    private mutating func remove(_ number: UInt64) {
        guard count > 0 else { return }
        let mask = entries.count - 1
        var hole = position(of: number)
        guard entries[hole].index >= 0 else { return }
        count -= 1
        var next = (hole + 1) & mask
        while entries[next].index >= 0 {
            let distance = (next - (home(of: entries[next].number) & mask)) & mask
            if distance >= (next - hole) & mask {
                entries[hole] = entries[next]
                hole = next
            }
            next = (next + 1) & mask
        }
        entries[hole] = Self.free
    }
}
