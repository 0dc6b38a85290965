import Control
import Glibc
import Systemd

/// Verbs about the daemon as a whole.
extension Session {
    func pressure() throws(Failure) -> Int32 {
        let client = try connect()
        guard let level = operands.first else {
            let status = try client.call("Pressure", as: MemoryStatus.self)
            var sheet = Sheet()
            addMemory(status, to: &sheet)
            addDecision(status, to: &sheet)
            try wantsJSON ? show(status.json) : show(sheet.text(screen))
            return 0
        }
        let result = try client.withAuthorization { () throws(Failure) in
            let pending = try client.begin("SimulatePressure", [.string(level)])
            return try client.answer(pending, until: nil, as: SimulationResult.self)
        }
        guard let result else { throw Failure("greenroomd did not answer.") }
        if wantsJSON {
            try show(result.json)
        } else {
            let victim = result.victim.map { "; killed \($0)" } ?? "; no app was killed"
            try show("Memory level: \(result.level) (simulated)\(level == "normal" ? "" : victim)\n")
        }
        return 0
    }

    func addMemory(_ memory: MemoryStatus, to sheet: inout Sheet) {
        let isNormal = memory.level == "normal"
        let reason = isNormal ? "" : memory.reason.map { " (\($0))" } ?? ""
        sheet.add("Memory", memory.level + reason, isNormal ? .green : memory.level == "warning" ? .yellow : .boldRed)
        sheet.add("Available", shareText(memory.availableBytes, of: memory.totalBytes))
        let budget = memory.budgetBytes.map { " of a budget of \(formattedSize($0))" } ?? ""
        sheet.add("Apps", formattedSize(memory.appsBytes) + budget)
        sheet.add("Containment", memory.containment)
    }

    /// How long the new program has to answer. The apps do not wait for it.
    private static let reexecTimeout = Duration.seconds(10)

    /// Requests the replacement, and waits until the new program answers.
    func reexec() throws(Failure) -> Int32 {
        let client = try connect()
        let result = try client.withAuthorization { () throws(Failure) in
            try client.call("Reexec", as: RequestResult.self)
        }
        let limit = EventLoop.now() + Self.reexecTimeout
        // The connection ends with the old program.
        while EventLoop.now() < limit, (try? client.bus.nextSignal(until: limit)) ?? nil != nil {}
        guard !client.bus.isOpen else {
            throw Failure("greenroomd was not replaced: its program could not be executed. Its log has the error.")
        }
        while true {
            if let version = try? connect().call("Version", as: String.self) {
                try wantsJSON ? show(result.json) : show("Reexecuted greenroomd \(version).\n")
                return 0
            }
            guard EventLoop.now() < limit else { throw Failure("The new greenroomd does not answer.") }
            poll(nil, 0, 10)
        }
    }

    /// - Parameter showsWarnings: whether warnings about manifests are printed; errors always are.
    func reload(showsWarnings: Bool = true) throws(Failure) -> Int32 {
        let client = try connect()
        let result = try client.withAuthorization { () throws(Failure) in
            try client.call("Reload", as: ReloadResult.self)
        }
        if wantsJSON {
            try show(result.json)
        } else {
            for line in result.errors + (showsWarnings ? result.warnings : []) {
                try show((screen.width.map { wrapped(line, to: $0) } ?? [line]).joined(separator: "\n") + "\n")
            }
            try show("Loaded \(result.apps) \(result.apps == 1 ? "app" : "apps").\n")
        }
        guard !result.errors.isEmpty else { return 0 }
        let (count, files) = (result.errors.count, Set(result.errors.compactMap(Self.file)).count)
        let location = files == 0 ? "" : " in \(files) \(files == 1 ? "file" : "files")"
        let errors = "\(count) \(count == 1 ? "error" : "errors")"
        throw Failure("\(errors)\(location); all other manifests were loaded.")
    }

    /// The file of a diagnostic, `FILE:LINE:COLUMN: error: …` or `FILE: error: …`; `nil`: it is about no file.
    private static func file(of diagnostic: String) -> String? {
        let parts = diagnostic.split(separator: ":", omittingEmptySubsequences: false)
        guard let end = parts.firstIndex(of: " error") else { return nil }
        let path = parts[..<end]
        let hasPosition = path.count > 2 && path.suffix(2).allSatisfy { UInt($0) != nil }
        return path.dropLast(hasPosition ? 2 : 0).joined(separator: ":")
    }
}
