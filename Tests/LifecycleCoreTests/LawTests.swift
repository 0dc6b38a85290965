import Glibc
import LifecycleCore
import Testing

/// The laws of docs/ARCHITECTURE.md that the core has to keep.
@Suite("Laws")
struct LawTests {
    /// The core's sources, by name.
    private static func sources() throws -> [String: [Substring]] {
        let folder = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
        let path = "/" + folder + "/Sources/LifecycleCore"
        let directory = try #require(opendir(path), "\(path) can't be read")
        defer { closedir(directory) }
        var all: [String: [Substring]] = [:]
        while let entry = readdir(directory) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            guard name.hasSuffix(".swift") else { continue }
            all[name] = try contents(of: path + "/" + name).split(separator: "\n")
        }
        return all
    }

    private static func contents(of path: String) throws -> String {
        let file = try #require(fopen(path, "r"), "\(path) can't be read")
        defer { fclose(file) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while case let count = fread(&buffer, 1, buffer.count, file), count > 0 { bytes += buffer[..<count] }
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test("the core imports nothing")
    func noImports() throws {
        let sources = try Self.sources()
        #expect(sources.count > 20)
        for (name, lines) in sources {
            for line in lines where line.contains("import ") {
                let code = line.prefix { $0 != "/" }
                #expect(!code.split(separator: " ").contains("import"), "\(name): \(line)")
            }
        }
    }

    /// Of an enum of this module a switch has to name every case, so that a new one is found by the compiler. A `default`
    /// is for what has no end of cases: numbers and strings, which these lines are of.
    @Test("no switch over a phase or an event has a default")
    func noDefaults() throws {
        let allowed = ["AppID.swift": 1, "Notification.swift": 2]
        for (name, lines) in try Self.sources() {
            let defaults = lines.filter { $0.drop { $0 == " " }.hasPrefix("default:") }
            #expect(defaults.count == allowed[name] ?? 0, "\(name)")
        }
    }

    @Test("two cores that are fed the same events stay the same, and are another with another event")
    func determinism() {
        let house = House("photos", "mail") { $0.backgroundModes = .push }
        house.launch("photos")
        house.launch("mail")
        house.task("mail", "upload")
        house.push("photos")
        house.simulate(.warning)
        house.advance(.seconds(20))
        #expect(house.isDeterministic)
        var other = house.core
        _ = other.handle(.deadlineReached, at: house.now)
        _ = other.handle(.run(house.run("mail"), .taskEnded(name: "upload")), at: house.now)
        #expect(other != house.core)
    }

    @Test("a core that is copied goes on as the original does")
    func copies() {
        let house = House("photos")
        house.launch("photos", .background)
        house.advance(.milliseconds(900))
        var copy = house.core
        let later = house.core.nextDeadline!
        let effects = copy.handle(.deadlineReached, at: later)
        #expect(effects.contains(.freeze(house.run("photos"), attempt: 1)))
        #expect(house.state("photos") == .background)
        house.advance(later - house.now)
        #expect(house.state("photos") == .suspended)
    }

    @Test("law 8: memory is looked at only while an app can grow, or while there is a shortage to come out of")
    func memoryIsLookedAtWhenNeeded() {
        let house = House("photos", "mail")
        #expect(house.core.nextDeadline == nil)
        house.suspend("photos")
        #expect(house.core.nextDeadline == nil)
        house.launch("mail")
        #expect(house.core.nextDeadline != nil)
        house.suspend("mail")
        #expect(house.core.nextDeadline == nil)
        // Short of memory, all suspended: looked at rarely, until it is over.
        house.happens(.memoryMeasured(.init(total: 16 * gibibyte, available: gibibyte, sizes: [])))
        #expect(house.core.memory.level == .warning)
        #expect(house.core.nextDeadline == house.now + .seconds(10))
        house.advance(.seconds(10))
        #expect(house.core.memory.level == .normal)
        #expect(house.core.nextDeadline == nil)
        // A simulated level is nothing to come out of.
        house.simulate(.warning)
        #expect(house.core.nextDeadline == nil)
    }

    @Test("law 8: memory is looked at the more often the nearer a limit is, between 0.1 and 10 s")
    func checkInterval() {
        let house = House("photos")
        house.launch("photos")
        // 4 GiB a second can be filled at most; a tenth of all is the next threshold.
        let cases: [(total: UInt64, available: UInt64, milliseconds: Double)] = [
            (100, 60, 10_000), (16, 12, 2600), (16, 6, 1100), (16, 2, 100),
        ]
        for (total, available, milliseconds) in cases {
            house.kernel.total = total * gibibyte
            house.kernel.others = (total - available) * gibibyte
            let interval = nextInterval(house)
            #expect(abs(interval / .milliseconds(1) - milliseconds) < 10, "\(available) GiB: \(interval)")
        }
        house.kernel.others = 2 * gibibyte
        house.configure { $0.budget = 210 * mebibyte }
        #expect(nextInterval(house) == .milliseconds(100))
    }

    /// From the next measure to the one after it.
    private func nextInterval(_ house: House) -> Duration {
        house.advance(house.core.nextDeadline! - house.now)
        #expect(house.effects.contains(.measureMemory))
        return house.core.nextDeadline! - house.now
    }

    @Test("a deadline that is fed too early does nothing")
    func tooEarly() {
        let house = House("photos")
        house.launch("photos", .background)
        house.delay(.milliseconds(10))
        let mark = house.mark
        house.happens(.deadlineReached)
        #expect(house.effects(since: mark) == [])
    }
}
