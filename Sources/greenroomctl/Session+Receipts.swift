import Glibc
import JSON
import Systemd

/// Why apps ended.
extension Session {
    func receipts() throws(Failure) -> Int32 {
        let limit = invocation.options[.lines].flatMap { UInt32($0) }
        // 0 asks for all that are kept; nobody who says “the last 0” wants that.
        let answer =
            limit == 0
            ? JSONValue.array([])
            : try connect().call("Receipts", [.string(operands.first ?? ""), .uint32(limit ?? 0)])
        guard !wantsJSON else {
            try show(answer)
            return 0
        }
        let records = (answer.arrayValue ?? []).map { Record($0) }
        if records.isEmpty, screen.isTerminal {
            let whose = operands.first.map { " of \(escaped($0))" } ?? ""
            try show("No receipts\(whose): nothing has ended yet.\n")
            return 0
        }
        var table = Table(["ID", "TIME", "APP", "WHY", "CODE", "EXPLANATION"], right: [0])
        table.rows = records.map { receipt in
            let style = severity(receipt)
            return [
                Cell(receipt.integer("id").map(String.init)), Cell(when(receipt, "time")),
                Cell(receipt.text("app"), .bold), Cell(receipt.text("namespace"), style),
                Cell(receipt.text("code"), style), Cell(receipt.text("explanation")),
            ]
        }
        try show(table.text(screen))
        return 0
    }

    func receipt() throws(Failure) -> Int32 {
        let id = operands.first.flatMap { UInt64($0) } ?? 0
        let answer = try connect().call("Receipt", [.uint64(id)])
        guard !wantsJSON else {
            try show(answer)
            return 0
        }
        try show(sheet(of: Record(answer)))
        return 0
    }

    private func sheet(of receipt: Record) -> String {
        let title = "Receipt \(receipt.integer("id") ?? 0): \(receipt.text("app") ?? "?")"
        var sheet = Sheet()
        sheet.add("Ended", ending(receipt), severity(receipt))
        let meaning = Self.meaning(receipt.text("code") ?? "", receipt.text("namespace") ?? "")
        sheet.add("Code", codeLine(receipt) + (meaning.map { ": \($0)" } ?? ""))
        sheet.add("Time", whenInFull(receipt, "time"))
        sheet.add("Process", processLine(receipt))
        sheet.add("Lived", receipt.seconds("wallSeconds").map(measured))
        sheet.add("CPU", receipt.seconds("cpuSeconds").map(measured))
        sheet.add("Memory", receipt.integer("memoryBytes").map(size))
        if let use = receipt.record("deadline") { sheet.add("Deadline", deadlineLine(use)) }
        let candidates = receipt.records("candidates")
        if !candidates.isEmpty { sheet.add("Considered", candidateLines(candidates, receipt.text("app"))) }
        return screen.paint(title, .bold) + "\n" + sheet.text(screen)
    }

    /// “while launching: did not finish launching within 5 s”.
    func ending(_ receipt: Record) -> String {
        let explanation = receipt.text("explanation") ?? "the daemon does not say why"
        guard let state = receipt.text("state").map(whileIn), !explanation.contains(state) else { return explanation }
        return "\(state): \(explanation)"
    }

    private func codeLine(_ receipt: Record) -> String {
        [receipt.text("namespace"), receipt.text("code")].compactMap { $0 }.joined(separator: " ")
    }

    private func processLine(_ receipt: Record) -> String {
        guard let pid = receipt.integer("pid") else { return "none came into being" }
        let core = receipt.flag("coreDumped") ? ", core dumped" : ""
        if let signal = receipt.integer("signal") { return "\(pid), ended by \(name(ofSignal: signal))\(core)" }
        if let status = receipt.integer("exitStatus") { return "\(pid), exit status \(status)" }
        return "\(pid), how it ended is not known"
    }

    private func deadlineLine(_ use: Record) -> String {
        let allowed = use.seconds("allowedSeconds").map(timeSpan) ?? "?"
        var parts = ["\(allowed) \(purpose(use.text("what") ?? "?"))"]
        if let wall = use.seconds("wallSeconds") { parts.append("\(measured(wall)) passed") }
        if let cpu = use.seconds("cpuSeconds") { parts.append("\(measured(cpu)) of CPU used") }
        return parts.joined(separator: ", ")
    }

    private func candidateLines(_ candidates: [Record], _ taken: String?) -> [String] {
        let width = candidates.map { displayWidth($0.text("app") ?? "?") }.max() ?? 0
        return candidates.enumerated().map { index, candidate in
            let app = candidate.text("app") ?? "?"
            let memory = candidate.integer("memoryBytes").map(size) ?? "?"
            let mark = app == taken ? "  ← taken" : ""
            return "\(index + 1). " + app.padded(to: width + 2) + candidate.state.padded(to: 12) + memory + mark
        }
    }

    /// An end of its own accord with status 0 is nothing to look at; all else is.
    private func severity(_ receipt: Record) -> Style? {
        switch receipt.json["namespace"]?.stringValue {
        case "exit": (receipt.integer("exitStatus") ?? 0) == 0 ? .faint : .moving
        case "user": .faint
        case "jetsam": .moving
        default: .bad
        }
    }

    /// What a code stands for (docs/LIFECYCLE.md, “Ends”).
    private static func meaning(_ code: String, _ namespace: String) -> String? {
        switch (namespace, code) {
        case ("watchdog", "0x8badf00d"): "a launch, background or terminate deadline was missed"
        case ("watchdog", "0x2182bad2"): "background time was used up with a task open"
        case ("watchdog", "0x2182bad4"): "a wake was not completed in time"
        case ("lifecycle", "0xdead10cc"): "suspended with a lock or shared resource in hand"
        case ("lifecycle", "0xbada5e47"): "too many background tasks"
        case ("user", "0xdeadfa11"): "removed by the user"
        case ("resource", "0xc51bad01"): "background CPU limit"
        case ("jetsam", "1"): "memory"
        case ("signal", "2"): "a signal that Greenroom did not send"
        case ("exit", "0"): "ended by itself or as asked"
        default: nil
        }
    }
}

/// `SIGKILL`, or the number where it has no name.
private func name(ofSignal number: Int64) -> String {
    let names: [Int32: String] = [
        SIGHUP: "SIGHUP", SIGINT: "SIGINT", SIGQUIT: "SIGQUIT", SIGILL: "SIGILL", SIGTRAP: "SIGTRAP",
        SIGABRT: "SIGABRT", SIGBUS: "SIGBUS", SIGFPE: "SIGFPE", SIGKILL: "SIGKILL", SIGUSR1: "SIGUSR1",
        SIGSEGV: "SIGSEGV", SIGUSR2: "SIGUSR2", SIGPIPE: "SIGPIPE", SIGALRM: "SIGALRM", SIGTERM: "SIGTERM",
        SIGXCPU: "SIGXCPU", SIGXFSZ: "SIGXFSZ", SIGSYS: "SIGSYS",
    ]
    return Int32(exactly: number).flatMap { names[$0] } ?? "signal \(number)"
}
