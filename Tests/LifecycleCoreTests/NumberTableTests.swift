import Testing

@testable import LifecycleCore

@Suite("Number table")
struct NumberTableTests {
    /// Numbers that are close together, far apart, and multiples of a power of two.
    private static func number(_ kind: Int, _ random: inout RandomGenerator) -> UInt64 {
        let small = UInt64.random(in: 0..<48, using: &random)
        return switch kind {
        case 0: small
        case 1: 1 << 40 + small
        case 2: small << 32
        default: small &* 0x9e37_79b9_7f4a_7c15
        }
    }

    @Test("the table equals a dictionary after random insertions, changes and removals", arguments: 0..<4)
    func dictionary(kind: Int) {
        var random = RandomGenerator(state: UInt64(kind))
        var table = NumberTable()
        var model: [UInt64: Int] = [:]
        for step in 0..<4000 {
            let number = Self.number(kind, &random)
            let index = random.isOne(in: 2) ? nil : step
            table[number] = index
            model[number] = index
            #expect(table.count == model.count)
            #expect(table[number] == index)
            let other = Self.number(kind, &random)
            #expect(table[other] == model[other])
            if step % 50 == 0 {
                #expect(table.numbers == model.keys.sorted())
                #expect(model.allSatisfy { table[$0.key] == $0.value })
            }
        }
    }

    @Test("tables with the same entries are equal, whatever happened to them before")
    func equality() {
        var random = RandomGenerator(state: 3)
        for _ in 0..<100 {
            let entries = (0..<20).map { UInt64($0) * UInt64.random(in: 1...3, using: &random) }
            var table = NumberTable()
            for number in entries { table[number] = Int(number) + 1 }
            var other = NumberTable()
            // Entries that are removed again make the other table larger and move its entries.
            let removed = (1000..<1200).map { UInt64($0) }
            for number in (entries + removed).shuffled(using: &random) { other[number] = Int(number) + 1 }
            for number in removed.shuffled(using: &random) { other[number] = nil }
            #expect(table == other && other == table)
            #expect(table.hashValue == other.hashValue)
            other[entries[7]] = -1 + 1
            #expect(table != other && other != table)
            other[entries[7]] = nil
            #expect(table != other && other != table)
        }
    }

    @Test("an empty table has no number, and removing an absent number has no effect")
    func empty() {
        var table = NumberTable()
        #expect(table[0] == nil)
        table[0] = nil
        #expect(table == NumberTable())
        table[5] = 1
        table[6] = nil
        #expect(table.numbers == [5])
        #expect(table.count == 1)
    }
}
