import Glibc
import LifecycleCore
import Testing

/// Tests of the laws of docs/ARCHITECTURE.md that apply to the core.
@Suite("Laws of the architecture")
struct LawTests {
    /// The source lines of the core by file name.
    private static func sources() throws -> [String: [Substring]] {
        let root = #filePath.split(separator: "/").dropLast(4).joined(separator: "/")
        var folders = ["/" + root + "/Sources/LifecycleCore"]
        var all: [String: [Substring]] = [:]
        while let folder = folders.popLast() {
            for name in try entries(of: folder) where !name.hasPrefix(".") {
                if name.hasSuffix(".swift") {
                    all[name] = try contents(of: folder + "/" + name).split(separator: "\n")
                } else {
                    folders.append(folder + "/" + name)
                }
            }
        }
        return all
    }

    private static func entries(of folder: String) throws -> [String] {
        let directory = try #require(opendir(folder), "\(folder) can't be read")
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            names.append(
                withUnsafeBytes(of: entry.pointee.d_name) { bytes in
                    String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
                })
        }
        return names
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
        #expect(sources.count > 80)
        for (name, lines) in sources {
            for line in lines where line.contains("import ") {
                let code = line.prefix { $0 != "/" }
                #expect(!code.split(separator: " ").contains("import"), "\(name): \(line)")
            }
        }
    }

    /// A switch over an enum of this module must name every case, so that the compiler finds a missing one. A `default`
    /// is allowed for numbers and strings: these lines have one, and a number of the saved form that is not known reads as nil.
    @Test("no switch over a phase or an event has a default")
    func noDefaults() throws {
        let allowed = ["AppID.swift": 1, "Notification.swift": 2]
        for (name, lines) in try Self.sources() {
            let defaults = lines.filter { $0.drop { $0 == " " }.hasPrefix("default:") && !$0.hasSuffix(" return nil") }
            #expect(defaults.count == allowed[name] ?? 0, "\(name)")
        }
    }

    @Test("two cores with the same events are equal, and differ after different events")
    func determinism() {
        let harness = Harness("photos", "mail") { $0.backgroundModes = .push }
        harness.launch("photos")
        harness.launch("mail")
        harness.task("mail", "upload")
        harness.push("photos")
        harness.simulate(.warning)
        harness.advance(.seconds(20))
        #expect(harness.isDeterministic)
        var other = harness.core
        _ = other.handle(.deadlineReached, at: harness.now)
        _ = other.handle(.run(harness.run("mail"), .task(.ended(name: "upload"))), at: harness.now)
        #expect(other != harness.core)
    }

    @Test("a copy of a core behaves like the original")
    func copies() {
        let harness = Harness("photos")
        harness.launch("photos", .background)
        harness.advance(.milliseconds(900))
        var copy = harness.core
        let later = harness.core.nextDeadline!
        let effects = copy.handle(.deadlineReached, at: later)
        #expect(effects.contains(.run(harness.run("photos"), .suspension(.freeze(attempt: 1)))))
        #expect(harness.state("photos") == .background)
        harness.advance(later - harness.now)
        #expect(harness.state("photos") == .suspended)
    }

    @Test("memory is measured only while an app can grow or memory is short (law 9)")
    func memoryIsLookedAtWhenNeeded() {
        let harness = Harness("photos", "mail")
        #expect(harness.core.nextDeadline == nil)
        harness.suspend("photos")
        #expect(harness.core.nextDeadline == nil)
        harness.launch("mail")
        #expect(harness.core.nextDeadline != nil)
        harness.suspend("mail")
        #expect(harness.core.nextDeadline == nil)
        // Memory is short and all apps are suspended: measured rarely, until the shortage is over.
        harness.handle(.memory(.measured(.init(total: 16 * gibibyte, available: 900 * mebibyte, sizes: []))))
        #expect(harness.core.memory.level == .warning)
        #expect(harness.core.nextDeadline == harness.now + .seconds(10))
        harness.advance(.seconds(10))
        #expect(harness.core.memory.level == .normal)
        #expect(harness.core.nextDeadline == nil)
        // A simulated level needs no measurement.
        harness.simulate(.warning)
        #expect(harness.core.nextDeadline == nil)
    }

    @Test("the interval of measurements shrinks near a limit, between 10s and 100ms (law 9)")
    func checkInterval() {
        let harness = Harness("photos")
        harness.launch("photos")
        // A program can fill at most 4 GiB per second. The next threshold is 1 GiB.
        let cases: [(total: UInt64, available: UInt64, milliseconds: Double)] = [
            (100, 60, 10_000), (16, 12, 2750), (16, 6, 1250), (16, 2, 250),
        ]
        for (total, available, milliseconds) in cases {
            harness.kernel.total = total * gibibyte
            harness.kernel.others = (total - available) * gibibyte
            let interval = nextInterval(harness)
            #expect(abs(interval / .milliseconds(1) - milliseconds) < 10, "\(available) GiB: \(interval)")
        }
        harness.kernel.others = 2 * gibibyte
        harness.configure { $0.budget = 210 * mebibyte }
        #expect(nextInterval(harness) == .milliseconds(100))
    }

    /// The time between the next two measurements.
    private func nextInterval(_ harness: Harness) -> Duration {
        harness.advance(harness.core.nextDeadline! - harness.now)
        #expect(harness.effects.contains(.measureMemory))
        return harness.core.nextDeadline! - harness.now
    }

    @Test("`deadlineReached` before a deadline has no effect")
    func tooEarly() {
        let harness = Harness("photos")
        harness.launch("photos", .background)
        harness.delay(.milliseconds(10))
        let mark = harness.mark
        harness.handle(.deadlineReached)
        #expect(harness.effects(since: mark) == [])
    }
}
