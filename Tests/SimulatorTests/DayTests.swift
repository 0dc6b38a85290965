import Glibc
import LifecycleSimulator
import Testing

@Suite("Simulated day")
struct DayTests {
    @Test("docs/HACKING.md has the table of a day of a handheld")
    func table() throws {
        let block = (["$ greenroom-sim day"] + DayTable().lines).joined(separator: "\n")
        #expect(try Self.text(of: "docs/HACKING.md").contains("\n\(block)\n"), "\(block)")
    }

    @Test("each wake of the day has its time, its cause and its cost, which make up the times of the table")
    func wakes() throws {
        let table = DayTable().lines
        let lines = DayTable(isTraced: true).lines
        let wakes = Array(lines.dropLast(table.count + 1))
        #expect(lines.suffix(table.count) == table[...])
        #expect(wakes.count == 2 + (20 + 65 + 27) + 2 + 4 + (4 + 2))
        #expect(wakes == wakes.sorted { Self.minutes($0) < Self.minutes($1) })
        let notes = wakes.filter { $0.contains("  notes ") }
        #expect(notes.count { $0.contains("launched by user") } == 1)
        #expect(notes.count { $0.contains("woken by timer") } == 2)
        #expect(notes.reduce(0) { $0 + Self.cost($1) } == 8 * 60 + 25)
        let example = try #require(notes.first { $0.contains("timer") })
        #expect(try Self.text(of: "docs/HACKING.md").contains("`\(example)`"), "\(example)")
    }

    /// - Returns: from the begin of the day, at 6:30, to the time of a line; the end of the sleep is the last one.
    private static func minutes(_ line: String) -> Int {
        let parts = line.prefix { $0 != " " }.split(separator: ":").compactMap { Int($0) }
        return (parts[0] * 60 + parts[1] + 1440 - 391) % 1440
    }

    /// In seconds: less than an hour.
    private static func cost(_ line: String) -> Int {
        let words = line.split(separator: " awake for ").last?.split(separator: " ") ?? []
        return words.reduce(0) { sum, word in
            let number = Int(word.prefix(while: \.isNumber)) ?? 0
            return sum + (word.hasSuffix("min") ? number * 60 : number)
        }
    }

    /// - Parameter path: in the source tree.
    private static func text(of path: String) throws -> String {
        let root = #filePath.split(separator: "/").dropLast(3).map { "/" + $0 }.joined()
        let file = try #require(fopen("\(root)/\(path)", "r"))
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 1 << 20)
        let count = fread(&bytes, 1, bytes.count, file)
        return String(decoding: bytes.prefix(count), as: UTF8.self)
    }
}
