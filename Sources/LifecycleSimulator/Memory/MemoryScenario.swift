import LifecycleCore

/// What a simulation of memory plays: a machine, apps with sizes, and what users and other programs do, each at its time.
package struct MemoryScenario: Sendable {
    /// One app. Its size is what it allocates after its launch, at its rate.
    struct App: Sendable {
        let id: AppID
        /// In bytes.
        var size: Int
        /// Bytes that it allocates in 1 ms.
        var rate = 1 << 20
        var policy = AppPolicy()
        /// Further processes of the app, each of which shares `shared` bytes with the first one after a fork. The estimate of the
        /// size, without a memory controller, has those bytes once more for each.
        var children = 0
        var shared = 0
        /// From SIGKILL until the processes begin to free their memory; `nil`: as the scenario's.
        var killTime: Microseconds?

        init(_ name: String, size: Int, rate: Int = 1 << 20) {
            guard let id = AppID(name) else { preconditionFailure("\(name) is no name of an app") }
            self.id = id
            self.size = size
            self.rate = rate
            policy.backgroundModes = .push
        }
    }

    enum Step: Sendable {
        /// A user brings an app to the foreground.
        case activate(Int)
        /// A push wakes an app, or launches it into the background.
        case push(Int)
        /// The memory of other programs changes to this size, at the rate of the scenario.
        case others(Int)
        /// What came before is no part of the results.
        case begin
    }

    package var name: String
    var hardware = MemoryMachine.Hardware()
    var others = 512 << 20
    /// Bytes that other programs allocate in 1 ms.
    var othersRate = 1 << 20
    var coldCache = 512 << 20
    var hotCache = 256 << 20
    var apps: [App] = []
    var steps: [(at: Microseconds, step: Step)] = []
    /// From SIGKILL until the process begins to free its memory.
    var killTime: Microseconds = 5 * .millisecond
    /// From `measureMemory` to the reading.
    var measureTime: Microseconds = 1 * .millisecond
    /// How long it takes to measure one app exactly.
    var exactTime: Microseconds = 20 * .millisecond
    /// `Budget=` in bytes; `nil`: there is none.
    var budget: Int?
    var end: Microseconds = 0

    mutating func add(_ step: Step, at time: Microseconds) {
        steps.append((time, step))
        end = max(end, time + 60 * .second)
    }

    /// When each app is used.
    var uses: [[Microseconds]] {
        var uses = Array(repeating: [Microseconds](), count: apps.count)
        for (time, step) in steps {
            switch step {
            case .activate(let app), .push(let app): uses[app].append(time)
            case .others, .begin: break
            }
        }
        return uses
    }
}

/// Who orders the victims.
package enum MemoryOrder: String, CaseIterable, Sendable {
    case largest, lru, balanced
    /// Knows the future: kills the app first whose next use, times its size, is farthest away (Belady's MIN with sizes).
    case oracle
}

extension MemoryScenario {
    private static func mebibytes(_ number: Int) -> Int { number << 20 }

    /// The four workloads of the table.
    package static let workloads = [rotation, scan, mixed, kiosk]

    /// Three apps of 800 MiB in turn, beside twenty of 50 MiB that are not used again.
    static let rotation: MemoryScenario = {
        var scenario = MemoryScenario(name: "rotation")
        scenario.hardware.total = 4 << 30
        for number in 0..<20 { scenario.apps.append(App("small\(number)", size: mebibytes(50))) }
        for number in 0..<3 { scenario.apps.append(App("large\(number)", size: mebibytes(800), rate: 2 << 20)) }
        for number in 0..<20 { scenario.add(.activate(number), at: Microseconds(number * 5) * .second) }
        scenario.add(.begin, at: 110 * .second)
        for turn in 0..<60 { scenario.add(.activate(20 + turn % 3), at: Microseconds(120 + turn * 30) * .second) }
        return scenario
    }()

    /// Four apps of 300 MiB in turn; after each round one of 60 other apps, once.
    static let scan: MemoryScenario = {
        var scenario = MemoryScenario(name: "scan")
        scenario.hardware.total = 3 << 30
        for number in 0..<4 { scenario.apps.append(App("often\(number)", size: mebibytes(300), rate: 2 << 20)) }
        for number in 0..<60 {
            scenario.apps.append(App("once\(number)", size: mebibytes([60, 120, 250, 500][number * 7 % 4])))
        }
        scenario.add(.begin, at: 0)
        for round in 0..<60 {
            let start = Microseconds(1 + round * 100) * .second
            for number in 0..<4 { scenario.add(.activate(number), at: start + Microseconds(number * 20) * .second) }
            scenario.add(.activate(4 + round), at: start + 80 * .second)
        }
        return scenario
    }()

    /// 40 apps of all sizes, some used far more often than others; two of them are woken each minute. Twice an hour other
    /// programs need another gibibyte for two minutes.
    static let mixed: MemoryScenario = {
        var scenario = MemoryScenario(name: "mixed")
        var random = Random(seed: 1)
        scenario.hardware.total = 6 << 30
        scenario.hardware.swap = 2 << 30
        scenario.hardware.compression = 300
        for number in 0..<40 {
            let size = [30, 60, 90, 150, 200, 300, 450, 900][random.weighted([3, 4, 5, 6, 6, 5, 3, 2])]
            scenario.apps.append(App("app\(number)", size: mebibytes(size), rate: 2 << 20))
        }
        scenario.add(.begin, at: 0)
        let weights = (0..<40).map { 1000 / (1 + $0) }
        for turn in 0..<600 {
            scenario.add(.activate(random.weighted(weights)), at: Microseconds(1 + turn * 24) * .second)
        }
        for minute in 0..<240 { scenario.add(.push(10 + minute % 2), at: Microseconds(31 + minute * 60) * .second) }
        for time in 0..<8 {
            scenario.add(.others(mebibytes(1536)), at: Microseconds(901 + time * 1800) * .second)
            scenario.add(.others(mebibytes(512)), at: Microseconds(1021 + time * 1800) * .second)
        }
        return scenario
    }()

    /// One app of 1.5 GiB that is in front most of the time, and 30 helpers of 80 MiB, one at a time for some seconds.
    static let kiosk: MemoryScenario = {
        var scenario = MemoryScenario(name: "kiosk")
        var random = Random(seed: 2)
        scenario.hardware.total = 4 << 30
        scenario.apps.append(App("front", size: mebibytes(1536), rate: 2 << 20))
        for number in 0..<30 { scenario.apps.append(App("helper\(number)", size: mebibytes(80))) }
        scenario.add(.begin, at: 0)
        for turn in 0..<150 {
            let start = Microseconds(1 + turn * 60) * .second
            scenario.add(.activate(0), at: start)
            scenario.add(.activate(1 + random.below(30)), at: start + 50 * .second)
        }
        return scenario
    }()

    /// 8 suspended apps of 300 MiB, and a new one that allocates 2 GiB/s, on a machine without spare memory where a kill takes 100 ms
    /// to give back 250 MiB.
    package static let newcomer: MemoryScenario = {
        var scenario = MemoryScenario(name: "newcomer")
        scenario.hardware.total = mebibytes(3584)
        scenario.hardware.exitRate = 3 << 20
        (scenario.others, scenario.coldCache, scenario.hotCache) = (mebibytes(256), mebibytes(64), mebibytes(128))
        (scenario.killTime, scenario.measureTime) = (20 * .millisecond, 2 * .millisecond)
        for number in 0..<8 { scenario.apps.append(App("old\(number)", size: mebibytes(300), rate: 2 << 20)) }
        scenario.apps.append(App("newcomer", size: mebibytes(2048), rate: (2 << 30) / 1000))
        for number in 0..<8 { scenario.add(.activate(number), at: Microseconds(number * 10) * .second) }
        scenario.add(.activate(8), at: 100 * .second)
        return scenario
    }()

    /// A random machine with random apps and users.
    package init(seed: UInt64) {
        var random = Random(seed: seed ^ 0x6d65_6d6f_7279)
        self.init(name: "seed \(seed)")
        hardware.total = (1 << 30) << random.below(5)
        if MemoryRule.coreReadsLimits, seed % 4 == 0 { hardware.outside = hardware.total * 4 }
        switch random.below(4) {
        case 0:
            hardware.swap = hardware.total / 2
            hardware.compression = [200, 300, 400][random.below(3)]
            hardware.swapRate = 1 << 20
        case 1: hardware.swap = hardware.total / 4
        default: break
        }
        others = hardware.total / 8
        coldCache = hardware.total / Int(random.within(6...40))
        hotCache = hardware.total / Int(random.within(16...64))
        othersRate = Int(random.within(200 << 10...1 << 20))
        killTime = random.within(1 * .millisecond...20 * .millisecond)
        measureTime = random.within(300...3000)
        let count = Int(random.within(5...40))
        for number in 0..<count {
            let share = random.chance(150) ? hardware.total / 4 : hardware.total / Int(random.within(8...80))
            let size = max(8 << 20, share / 2 + random.below(share / 2))
            apps.append(App("app\(number)", size: size, rate: Int(random.within(200 << 10...2 << 20))))
            apps[number].policy.jetsamPriority = random.chance(200) ? 10 : 0
            if random.chance(100) { apps[number].policy.relaunch = .always }
        }
        play(&random)
    }

    private mutating func play(_ random: inout Random) {
        let weights = apps.indices.map { 1000 / (1 + $0) }
        var time: Microseconds = 1 * .second
        add(.begin, at: 0)
        for _ in 0..<80 {
            switch random.below(20) {
            case 0: add(.others(hardware.total / 8 + random.below(hardware.total / 4)), at: time)
            case 1...3: add(.push(random.below(apps.count)), at: time)
            default: add(.activate(random.chance(700) ? random.weighted(weights) : random.below(apps.count)), at: time)
            }
            time += random.within(500 * .millisecond...20 * .second)
        }
        add(.others(hardware.total / 8), at: time)
        end += 15 * 60 * .second
    }

    init(name: String) { self.name = name }
}
