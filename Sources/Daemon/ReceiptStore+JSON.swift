import JSON
import LifecycleCore

extension JSONValue {
    /// With the keys of the contract.
    init(_ receipt: Receipt, time: String) {
        var keys: [(String, JSONValue)] = [
            ("id", .integer(Int64(clamping: receipt.id))), ("app", .string(receipt.app.name)),
        ]
        if let pid = receipt.pid { keys.append(("pid", .integer(Int64(pid)))) }
        keys += [
            ("time", .string(time)), ("state", .string(receipt.state.rawValue)),
            ("namespace", .string(receipt.namespace.rawValue)), ("code", .string(receipt.codeText)),
            ("explanation", .string(receipt.explanation)),
        ]
        switch receipt.exit {
        case .exited(let status): keys.append(("exitStatus", .integer(Int64(status))))
        case .signaled(let signal, let coreDumped):
            keys += [("signal", .integer(Int64(signal))), ("coreDumped", .bool(coreDumped))]
        case .unknown, .lost: break
        }
        keys += [
            ("wallSeconds", .number(receipt.wall.seconds)), ("cpuSeconds", .number(receipt.cpu.seconds)),
            ("memoryBytes", .integer(Int64(clamping: receipt.memory))),
        ]
        if let use = receipt.deadline { keys.append(("deadline", JSONValue(use))) }
        if !receipt.candidates.isEmpty { keys.append(("candidates", .array(receipt.candidates.map(JSONValue.init)))) }
        self = .object(keys)
    }

    private init(_ use: Receipt.DeadlineUse) {
        var keys: [(String, JSONValue)] = [
            ("what", .string(use.what.rawValue)), ("allowedSeconds", .number(use.allowed.seconds)),
            ("wallSeconds", .number(use.wall.seconds)),
        ]
        if let cpu = use.cpu { keys.append(("cpuSeconds", .number(cpu.seconds))) }
        self = .object(keys)
    }

    private init(_ candidate: Receipt.Candidate) {
        self = .object([
            ("app", .string(candidate.app.name)), ("state", .string(candidate.state.rawValue)),
            ("memoryBytes", .integer(Int64(clamping: candidate.memory))),
        ])
    }
}
