import Testing

@testable import LifecycleCore

@Suite("Number table")
struct NumberTableTests {
    enum Pool: CaseIterable {
        /// Consecutive numbers, as the core uses them.
        case consecutive
        case random
        /// Numbers with the same hash.
        case colliding
        /// Numbers whose hashes are at both ends of the table, so that entries wrap around.
        case atEnds

        func numbers(_ random: inout RandomGenerator) -> [UInt64] {
            // Multiplied by the factor of the hash function it gives 1, so that it makes numbers for given hashes.
            let inverse: UInt64 = 0xf1de_83e1_9937_733d
            return (0..<48 as Range<UInt64>).map { number in
                switch self {
                case .consecutive: number
                case .random: UInt64.random(in: 0 ... .max, using: &random)
                case .colliding: number &* inverse
                case .atEnds: (((number % 5) &- 2) << 32 | number) &* inverse
                }
            }
        }
    }

    @Test("the table equals a dictionary after random insertions, changes and removals", arguments: Pool.allCases)
    func dictionary(pool: Pool) throws {
        var random = RandomGenerator(state: 5)
        let numbers = pool.numbers(&random)
        var table = NumberTable()
        var model: [UInt64: AppIndex] = [:]
        for step in 0..<4000 {
            let number = random.pick(numbers)
            let index = random.isOne(in: 2) ? nil : AppIndex(step)
            table[number] = index
            model[number] = index
            // A wrong count can fill the table, in which a search then never ends.
            try #require(table.count == model.count)
            #expect(table[number] == index)
            let other = random.pick(numbers)
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
            for number in entries { table[number] = AppIndex(Int(number) + 1) }
            var other = NumberTable()
            // Entries that are removed again make the other table larger and move its entries.
            let removed = (1000..<1200).map { UInt64($0) }
            for number in (entries + removed).shuffled(using: &random) { other[number] = AppIndex(Int(number) + 1) }
            for number in removed.shuffled(using: &random) { other[number] = nil }
            #expect(table == other && other == table)
            #expect(table.hashValue == other.hashValue)
            other[entries[7]] = 0
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
