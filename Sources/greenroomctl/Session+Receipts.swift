import Control
import LifecycleCore
import Systemd

/// Verbs that show why apps ended.
extension Session {
    func receipts() throws(Failure) -> Int32 {
        let receipts = try findReceipts()
        guard !wantsJSON else {
            try show(receipts.json)
            return 0
        }
        if receipts.isEmpty, screen.isTerminal {
            let names = apps.isEmpty ? "" : " for " + apps.map { "'\(escaped($0))'" }.joined(separator: ", ")
            try show("No receipts\(names).\n")
            return 0
        }
        var table = Table(["ID", "TIME", "APP", "RESULT", "EXPLANATION"], right: [0], flexible: [3], kept: 3)
        table.rows = receipts.map { receipt in
            let style = style(of: receipt)
            return [
                Cell(String(receipt.id)), Cell(when(receipt.time)), Cell(receipt.app, .bold),
                Cell(result(receipt), style), Cell(receipt.explanation),
            ]
        }
        try show(table.text(screen))
        return 0
    }

    /// The receipts that the command line asks for. The daemon selects those of one app; this program selects by patterns, of
    /// several apps and by time.
    private func findReceipts() throws(Failure) -> [ReceiptRecord] {
        let limit = invocation.options[.lines].flatMap { UInt32($0) }
        // The method takes 0 for all receipts; `-n 0` means none.
        if limit == 0 { return [] }
        let since = invocation.options[.since].flatMap { TimeParser.parse($0) }
        let isSelectedHere = invocation.namesSeveral || since != nil
        let client = try connect()
        let name = invocation.namesSeveral ? "" : apps.first ?? ""
        let all: [ReceiptRecord] = try client.call(
            "Receipts", [.string(name), .uint32(isSelectedHere ? 0 : limit ?? 0)])
        guard isSelectedHere else { return all }
        for word in apps where isPattern(word) && !all.contains(where: { isMatch($0.app, word) }) {
            reportUnmatched(word)
        }
        let found = all.filter { receipt in
            guard receipt.time >= since ?? receipt.time else { return false }
            return apps.isEmpty || apps.contains { isMatch(receipt.app, $0) }
        }
        return Array(found.suffix(limit.map { Int($0) } ?? found.count))
    }

    func receipt() throws(Failure) -> Int32 {
        let id = operands.first.flatMap { UInt64($0) } ?? 0
        let receipt = try connect().call("Receipt", [.uint64(id)], as: ReceiptRecord.self)
        try wantsJSON ? show(receipt.json) : show(sheet(receipt))
        return 0
    }

    private func sheet(_ receipt: ReceiptRecord) -> String {
        var sheet = Sheet()
        sheet.add("Cause", receipt.explanation, style(of: receipt))
        sheet.add("State", receipt.state)
        sheet.add("Code", codeLine(receipt))
        sheet.add("Time", whenInFull(receipt.time))
        sheet.add("Process", processLine(receipt))
        sheet.add("Killed too", receipt.remainingProcesses.map { remainingLine($0, receipt.remainingNames) })
        sheet.add("Run time", receipt.wall.timeSpan)
        sheet.add("CPU", receipt.cpu.timeSpan)
        // An app that ended at once was not measured.
        let isMeasured = receipt.memoryBytes > 0 || receipt.peakMemoryBytes ?? 0 > 0
        let peak = receipt.peakMemoryBytes.map { " (peak \(formattedSize($0)))" } ?? ""
        sheet.add("Memory", isMeasured ? formattedSize(receipt.memoryBytes) + peak : nil)
        sheet.add("Deadline", receipt.deadline.map(deadlineLine))
        sheet.add("Candidates", candidateLines(receipt))
        sheet.add("Output", lastLines(before: receipt))
        return screen.paint("Receipt \(receipt.id): \(receipt.app)", .bold) + "\n" + sheet.text(screen)
    }

    /// The code with its namespace: alone, the codes 1 and 7 read like an exit status. The codes of an exit and of a signal say less
    /// than the line about the process, and would stand beside its status.
    private func codeLine(_ receipt: ReceiptRecord) -> String? {
        if ["exit", "signal"].contains(receipt.namespace) { return nil }
        let meaning = Self.meaning(receipt.code, receipt.namespace).map { " (\($0))" } ?? ""
        return "\(receipt.namespace)/\(receipt.code)\(meaning)"
    }

    /// What `explain` shows of an end: the code, the process, and how much of its deadline was used.
    func receiptDetails(_ receipt: ReceiptRecord) -> [String] {
        [
            codeLine(receipt).map { "Code: \($0)" }, "Process: \(processLine(receipt))",
            receipt.deadline.map { "Deadline: \(deadlineLine($0))" },
        ].compactMap { $0 }
    }

    private func processLine(_ receipt: ReceiptRecord) -> String {
        guard let pid = receipt.pid else { return "none" }
        return "\(pid) (\(end(of: receipt)))"
    }

    /// How the main process ended: its exit status or its signal, which a code must not be taken for.
    private func end(of receipt: ReceiptRecord) -> String {
        if let signal = receipt.signal {
            // The app was asked to end: the signal is how, and not why.
            if receipt.isOrderly { return "ended by SIG\(shortSignalName(signal))" }
            return "killed, signal \(shortSignalName(signal))\(receipt.coreDumped == true ? ", core dumped" : "")"
        }
        return receipt.exitStatus.map { "exited, status \($0)" } ?? "ended, status unknown"
    }

    /// Why the app ended, in few words: the end of its main process, or the code of what ended it.
    private func result(_ receipt: ReceiptRecord) -> String {
        switch receipt.namespace {
        case "exit" where receipt.isOrderly: "terminated"
        case "exit", "signal": end(of: receipt)
        case "jetsam": "jetsam"
        default: "\(receipt.namespace)/\(receipt.code)"
        }
    }

    private func remainingLine(_ count: UInt64, _ names: [String]) -> String {
        let processes = count == 1 ? "1 remaining process" : "\(count) remaining processes"
        return processes + (names.isEmpty ? "" : " (\(names.joined(separator: ", ")))")
    }

    private func deadlineLine(_ deadline: DeadlineStatus) -> String {
        var parts = ["\(deadline.allowed.map(\.timeSpan) ?? "?") \(deadline.purpose)"]
        if let wall = deadline.wall { parts.append("\(wall.timeSpan) elapsed") }
        if let cpu = deadline.cpu { parts.append("\(cpu.timeSpan) CPU") }
        return parts.joined(separator: ", ")
    }

    private func candidateLines(_ receipt: ReceiptRecord) -> [String] {
        let width = receipt.candidates.map { displayWidth($0.app) }.max() ?? 0
        return receipt.candidates.enumerated().map { index, candidate in
            let size = formattedSize(candidate.memoryBytes)
            let mark = candidate.app == receipt.app ? "  ← killed" : ""
            return "\(index + 1). \(candidate.app.padded(to: width + 2))\(candidate.state.padded(to: 12))\(size)\(mark)"
        }
    }

    private func style(of receipt: ReceiptRecord) -> Style? {
        switch receipt.namespace {
        case "exit": (receipt.exitStatus ?? 0) == 0 || receipt.isOrderly ? .faint : .yellow
        case "user": .faint
        case "jetsam": .yellow
        default: .red
        }
    }

    /// What a code means (docs/RULES.md, L45).
    private static func meaning(_ code: String, _ namespace: String) -> String? {
        switch (namespace, code) {
        case ("watchdog", "0x8badf00d"): "missed a launch, background, terminate, thaw or heartbeat deadline"
        case ("watchdog", "0x2182bad2"): "background time expired with an open task"
        case ("watchdog", "0x2182bad4"): "did not complete a wake in time"
        case ("lifecycle", "0xdead10cc"): "was about to be suspended while it held a file lock"
        case ("lifecycle", "0xbada5e47"): "too many background tasks"
        case ("user", "0xdeadfa11"): "removed by the user"
        case ("resource", "0xc51bad01"): "exceeded the background CPU limit"
        case ("resource", "0xbad69000"): "used a GPU in the background"
        case ("jetsam", "1"): "killed to free memory"
        case ("jetsam", "7"): "exceeded its own memory limit"
        default: nil
        }
    }
}
