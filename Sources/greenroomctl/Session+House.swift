import Glibc
import JSON
import Systemd

/// Verbs about the daemon as a whole.
extension Session {
    func pressure() throws(Failure) -> Int32 {
        let client = try connect()
        guard let level = operands.first else {
            let answer = try client.call("Pressure")
            if wantsJSON {
                try show(answer)
            } else {
                var sheet = Sheet()
                addMemory(Record(answer), to: &sheet)
                try show(sheet.text(screen))
            }
            return 0
        }
        let answer = try client.insisting { () throws(Failure) in
            let pending = try client.begin("SimulatePressure", [.string(level)])
            return try client.answer(pending, until: nil)
        }
        guard let answer else { throw Failure("there was no answer") }
        if wantsJSON {
            try show(answer)
        } else {
            let victim = Record(answer).text("victim")
            let taken = level == "normal" ? "" : victim.map { "; took \($0)" } ?? "; took no app"
            try show("memory: \(Record(answer).text("level") ?? level) (simulated)\(taken)\n")
        }
        return 0
    }

    func addMemory(_ memory: Record, to sheet: inout Sheet) {
        let level = memory.text("level") ?? "?"
        let cause = level == "normal" ? nil : memory.text("cause").map { " (\($0))" }
        sheet.add("Memory", level + (cause ?? ""), level == "normal" ? .lively : level == "warning" ? .moving : .worst)
        if let total = memory.integer("totalBytes"), let available = memory.integer("availableBytes") {
            let share =
                total > 0 && (0...total).contains(available)
                ? " (\(Int((Double(available) / Double(total) * 100).rounded()))%)" : ""
            sheet.add("Available", "\(size(available)) of \(size(total))\(share)")
        }
        if let apps = memory.integer("appsBytes") {
            let budget = memory.integer("budgetBytes").map { " of a budget of \(size($0))" } ?? ""
            sheet.add("Apps", size(apps) + budget)
        }
        sheet.add("Containment", memory.text("containment"))
    }

    /// How long the new program may take to answer; the apps do not wait for it.
    private static let patience = Duration.seconds(10)

    /// Asks, and waits until the program that took the old one's place answers.
    func reexec() throws(Failure) -> Int32 {
        let client = try connect()
        let answer = try client.insisting { () throws(Failure) in try client.call("Reexec") }
        let limit = EventLoop.now() + Self.patience
        // The connection ends with the old program.
        while EventLoop.now() < limit, (try? client.bus.nextSignal(until: limit)) ?? nil != nil {}
        while true {
            if let version = try? connect().call("Version") {
                try wantsJSON ? show(answer) : show("greenroomd \(version.stringValue ?? "") goes on\n")
                return 0
            }
            guard EventLoop.now() < limit else { throw Failure("the new greenroomd does not answer") }
            poll(nil, 0, 10)
        }
    }

    func reload() throws(Failure) -> Int32 {
        let client = try connect()
        let answer = try client.insisting { () throws(Failure) in try client.call("Reload") }
        let result = Record(answer)
        let errors = result.texts("errors")
        if wantsJSON {
            try show(answer)
        } else {
            for line in errors + result.texts("warnings") { try show(line + "\n") }
            let count = result.integer("apps") ?? 0
            try show("\(count) \(count == 1 ? "app" : "apps") read\n")
        }
        guard !errors.isEmpty else { return 0 }
        throw Failure(
            errors.count == 1
                ? "there is an error; all else counts" : "there are \(errors.count) errors; all else counts")
    }
}
