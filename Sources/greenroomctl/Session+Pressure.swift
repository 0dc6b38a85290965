import Control

/// What `pressure` shows beyond the summary: where memory is short, by which numbers that is decided, and who is killed next.
extension Session {
    func addDecision(_ memory: MemoryStatus, to sheet: inout Sheet) {
        sheet.add("Cause", memory.cause)
        sheet.add("Source", source(memory))
        if let limit = memory.limit {
            sheet.add(
                "Limit", shareText(limit.availableBytes, of: limit.totalBytes) + " available in \(escaped(limit.group))"
            )
            sheet.add("OOM kills", limit.oomKills > 0 ? "\(limit.oomKills) in \(escaped(limit.group))" : nil)
        }
        if let total = memory.swapTotalBytes, let free = memory.swapFreeBytes {
            sheet.add("Swap", "\(formattedSize(free)) of \(formattedSize(total)) free")
        }
        sheet.add("Refaulted", memory.refaultedBytes.map { formattedSize($0) + " since the start of the machine" })
        sheet.add("Per-CPU lists", memory.perCPUBytes.map { formattedSize($0) + ", part of what is available" })
        if let threshold = memory.thresholdBytes {
            let missing = memory.deficitBytes.map { "; \(formattedSize($0)) missing" } ?? ""
            sheet.add("Threshold", formattedSize(threshold) + missing)
        }
        if let stalls = memory.stalls {
            sheet.add(
                "Stalls", "some \(percent(stalls.somePercent)), full \(percent(stalls.fullPercent)) of the last 10s")
            sheet.add("", "\(escaped(stalls.path))")
        } else if memory.source != nil {
            sheet.add("Stalls", "not reported by the kernel")
        }
        sheet.add("Killed next", candidates(memory))
    }

    private func source(_ memory: MemoryStatus) -> String? {
        switch memory.source {
        case "machine": "the memory of the machine"
        case "limit": memory.limit.map { "\($0.file) of the cgroup \($0.group)" }.map { escaped($0) }
        case let other: other.map { escaped($0) }
        }
    }

    private func candidates(_ memory: MemoryStatus) -> [String] {
        memory.candidates.map { "\(escaped($0.app)) (\($0.state)): gives back \(formattedSize($0.memoryBytes))" }
    }

    /// With two decimals, as the kernel writes it.
    private func percent(_ value: Double) -> String {
        let hundredths = Int((max(0, min(100, value)) * 100).rounded())
        let rest = hundredths % 100
        return "\(hundredths / 100).\(rest < 10 ? "0" : "")\(rest)%"
    }
}
