import LifecycleCore

/// Machines with plenty of memory and a `Budget=`: apps whose sizes are estimated too large, and apps that end slowly.
extension MemoryScenario {
    /// A random budget with random apps and users. Nothing but the budget, and limits that no app exceeds, can kill.
    package init(budgetSeed seed: UInt64) {
        var random = Random(seed: seed ^ 0x6275_6467_6574)
        self.init(name: "budget \(seed)")
        hardware.total = 64 << 30
        let budget = Int(random.within(200...2000)) << 20
        self.budget = budget
        exactTime = random.within(1 * .millisecond...300 * .millisecond)
        killTime = random.within(1 * .millisecond...20 * .millisecond)
        for number in 0..<Int(random.within(2...12)) {
            let isTooLarge = random.chance(60)
            let size = isTooLarge ? budget / 4 * Int(random.within(5...7)) : budget / Int(random.within(3...24))
            var app = App("app\(number)", size: size, rate: Int(random.within(1 << 20...8 << 20)))
            if random.chance(400) {
                app.children = Int(random.within(1...6))
                app.shared = size / Int(random.within(1...3))
            }
            if random.chance(300) { app.killTime = random.within(200 * .millisecond...4 * .second) }
            if random.chance(200) { app.policy.memoryMax = UInt64(size / 4 * 5) }
            if random.chance(200) { app.policy.suspendedMemoryMax = UInt64(size / 4 * 5) }
            if random.chance(200) { app.policy.jetsamPriority = 10 }
            apps.append(app)
        }
        var time: Microseconds = 1 * .second
        add(.begin, at: 0)
        for _ in 0..<40 {
            let app = random.below(apps.count)
            add(random.chance(200) ? .push(app) : .activate(app), at: time)
            time += random.within(500 * .millisecond...30 * .second)
        }
    }
}

/// What is checked where memory is not short, and apps are killed for the budget or a limit of their own.
extension MemorySimulation {
    private func realSizes(isCounted: (Int, Process) -> Bool) -> Int {
        var sum = 0
        for app in processes.indices {
            if let process = processes[app], isCounted(app, process) { sum += process.size }
        }
        return sum
    }

    /// An app was killed although memory is not short.
    mutating func checkBudgetVictim(_ app: Int, _ budget: Int, _ state: AppState) {
        let name = "\(scenario.name): \(scenario.apps[app].id), \(state), at \(now / 1000) ms"
        let all = realSizes { _, _ in true }
        let alive = realSizes { $0 == app || $1.endsAt == nil }
        outcome.check(
            all > budget, .estimatesDoNotKill,
            "\(name), is killed while the apps have \(all >> 20) MiB of \(budget >> 20)")
        outcome.check(
            alive > budget || all <= budget, .victimsAreAwaited,
            "\(name), is killed while \((all - alive) >> 20) MiB come back and \(alive >> 20) of \(budget >> 20) are in use"
        )
        let alone = processes.indices.first { other in
            other != app && processes[other]?.endsAt == nil && processes[other] != nil && sizesRead[other] > budget
        }
        guard let alone, sizesRead[app] <= budget else { return }
        let others = realSizes { $0 != alone && ($0 == app || $1.endsAt == nil) }
        outcome.check(
            others > budget, .othersOutliveExcess,
            "\(name), is killed while \(scenario.apps[alone].id) alone has \(sizesRead[alone] >> 20) MiB of \(budget >> 20)"
        )
    }

    /// Called whenever time has passed.
    mutating func checkBudgetTime() {
        guard let budget = scenario.budget else { return }
        let alive = realSizes { $1.endsAt == nil }
        guard alive > budget else { return overBudgetSince = nil }
        let since = overBudgetSince ?? now
        overBudgetSince = since
        guard now - since > 30 * .second else { return }
        outcome.check(
            false, .budgetIsKept,
            "\(scenario.name): at \(now / 1000) ms the apps have had more than \(budget >> 20) MiB for 30s, now \(alive >> 20)"
        )
        // Each 30 seconds count once.
        overBudgetSince = nil
    }
}
