import Control
import LifecycleCore
import Linux
import Reports

extension MemoryStatus {
    /// - Parameters:
    ///   - view: what decides about memory.
    ///   - numbers: a reading of now.
    init(_ view: MemoryView, _ numbers: MemoryNumbers) {
        self.init()
        level = view.level.name
        reason = view.cause?.rawValue
        appsBytes = view.apps
        budgetBytes = view.budget
        totalBytes = numbers.total
        availableBytes = numbers.available
        perCPUBytes = numbers.perCPULists
        refaultedBytes = numbers.counters.refaulted
        if numbers.swapTotal > 0 { (swapTotalBytes, swapFreeBytes) = (numbers.swapTotal, numbers.swapFree) }
        limit = numbers.limit.map(MemoryLimitStatus.init)
        let tighter = numbers.limit.flatMap { $0.available < numbers.available ? $0 : nil }
        source = tighter == nil ? "machine" : "limit"
        if view.threshold > 0 {
            thresholdBytes = view.threshold
            let available = tighter?.available ?? numbers.available
            if available < view.threshold { deficitBytes = view.threshold - available }
        }
        stalls = numbers.stalls.map { StallStatus($0, numbers.stallsPath) }
        candidates = view.candidates.map(JetsamCandidate.init)
    }
}

extension MemoryLimitStatus {
    fileprivate init(_ limit: MemoryLimit) {
        self.init()
        group = limit.group
        file = limit.file
        totalBytes = limit.total
        availableBytes = limit.available
        oomKills = limit.kills
    }
}

extension StallStatus {
    fileprivate init(_ stalls: PressureStalls, _ path: String) {
        self.init()
        self.path = path
        somePercent = Double(stalls.some.recent) / 100
        fullPercent = Double(stalls.full.recent) / 100
        someSeconds = stalls.some.total
        fullSeconds = stalls.full.total
    }
}
