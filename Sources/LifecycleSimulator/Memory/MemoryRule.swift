package import LifecycleCore

/// The rules that hold on real memory. Each has a mutant in the tests.
package enum MemoryRule: String, CaseIterable, Sendable {
    case foregroundOutlivesSuspended = "no app in the foreground is killed while a suspended app lives (L38)"
    case kernelDoesNotKill =
        "the kernel kills no app while a suspended app lives that the daemon could have killed (L35)"
    case noKillsInPlenty = "no app is killed while a quarter of the memory is available (L35)"
    case killsNeedScarcity = "no app is killed while more than `WarningAvailable=` is available (L35)"
    case lastVictimWasNecessary = "no app is killed while the memory of earlier victims is enough (L39)"
    case memoryRecovers = "less than `CriticalAvailable=` is available for at most 2s while a suspended app lives (L35)"
    case levelReturns = "the level is normal once memory is available again (L36)"
    case estimatesDoNotKill =
        "no app is killed for `Budget=` or a limit of its own while the exact sizes are within them (L39)"
    case victimsAreAwaited =
        "no app is killed for `Budget=` while the apps that are not ending are within it (L39)"
    case othersOutliveExcess =
        "no app is killed for `Budget=` if another one exceeds it alone, and the rest is within it (L39)"
    case budgetIsKept = "the apps exceed `Budget=` for at most 30s (L39)"
    case wantedAppsReturn = "an app that should run runs again once there is space for it (L49)"

    /// Rules that the core does not keep yet. They are counted, and violate nothing.
    package static let notYetKept: Set<MemoryRule> = [.kernelDoesNotKill]
    /// Whether the core decides by `MemoryReading.limit`. Only then machines with a limit are simulated.
    package static let coreReadsLimits = true
}

/// What a simulation of memory found.
package struct MemoryOutcome: Sendable {
    /// Launches of apps that did not run.
    package var launches = 0
    /// Kills of the daemon for memory.
    package var kills = 0
    /// Kills of the kernel's OOM killer.
    package var kernelKills = 0
    /// Sizes of victims that were used again within 10 min, or killed although there was space, in bytes.
    package var bytesInVain = 0
    /// For how long less than `CriticalAvailable=` was available.
    package var shortTime: Microseconds = 0
    /// How often each rule was violated, and the first time in words.
    package var violations: [MemoryRule: (count: Int, first: String)] = [:]
    package var events = 0
    /// The apps in the foreground at the end.
    package var foreground: [AppID] = []

    mutating func check(_ holds: Bool, _ rule: MemoryRule, _ sentence: String) {
        if holds { return }
        if let known = violations[rule] {
            violations[rule] = (known.count + 1, known.first)
        } else {
            violations[rule] = (1, sentence)
        }
    }
}
