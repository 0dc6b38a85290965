import Control
import JSON
import Linux
import Posix
import Systemd

/// `doctor`: what the machine lacks, what that costs, and what mends it.
extension Session {
    func doctor() throws(Failure) -> Int32 {
        let (daemon, info) = daemonCheck()
        var machine = Machine(isForRoot: isForRoot)
        if let runtime = info?.runtime, let lock = try? readFile(at: runtime + "/lock", limit: 64) {
            let pid = String(decoding: lock.prefix { $0 != 0x0A }, as: UTF8.self)
            if Int32(pid) != nil, machine.exists("/proc/\(pid)/limits") { machine.process = pid }
        }
        let checks = machine.kernelChecks + machine.serviceChecks + [daemon]
        guard !wantsJSON else {
            try show(
                .object([("status", .integer(Int64(checks.status))), ("checks", .array(checks.map(\.json)))]))
            return checks.status
        }
        try show(Self.text(checks, screen))
        return checks.status
    }

    /// Whether a daemon answers. One that does not run is no fault of the machine.
    private func daemonCheck() -> (Check, DaemonInfo?) {
        let name = "greenroomd"
        do throws(Failure) {
            let client = try connect()
            let version = try client.call("Version", as: String.self)
            let info = try? client.info()
            let containment = info?.containment.map { "; \(escaped($0))" } ?? ""
            return (Check(name, .fine, "\(version) answers\(containment)"), info)
        } catch {
            guard error.isOfNoServer else {
                return (Check(name, .costs, error.sentence, cost: "it cannot be controlled"), nil)
            }
            return (Check(name, .note, "does not run: \(error.sentence)", remedy: error.hint), nil)
        }
    }

    static func text(_ checks: [Check], _ screen: Screen) -> String {
        let width = checks.map { displayWidth($0.name) }.max() ?? 0
        let lines = checks.map { check -> String in
            let margin = String(repeating: " ", count: width + 4)
            let texts =
                [check.finding]
                + [check.cost.map { "Cost: \($0)" }, check.remedy.map { "Remedy: \($0)" }].compactMap { $0 }
            let wrappedTexts = texts.enumerated().flatMap { index, text in
                Table.wrappedLines(text, indent: width + 4, screen).map { line in
                    screen.paint(
                        line, index == 0 && check.outcome != .fine ? check.outcome.style : index == 0 ? nil : .faint)
                }
            }
            let head = screen.paint(check.outcome.mark, check.outcome.style) + " " + check.name.padded(to: width + 2)
            return head + wrappedTexts.joined(separator: "\n" + margin) + "\n"
        }
        return lines.joined() + "\n" + summary(checks) + "\n"
    }

    private static func summary(_ checks: [Check]) -> String {
        let prevents = checks.count { $0.outcome == .prevents }
        let costs = checks.count { $0.outcome == .costs }
        if prevents > 0 { return "greenroomd does not run on this machine." }
        if costs > 0 {
            return "greenroomd runs on this machine; \(costs) \(costs == 1 ? "check costs" : "checks cost") a feature."
        }
        return "Nothing is missing."
    }
}

extension Check.Outcome {
    /// `✓` fine, `·` a note, `!` costs a feature, `✗` prevents greenroomd from running.
    fileprivate var mark: String {
        switch self {
        case .fine: "✓"
        case .note: "·"
        case .costs: "!"
        case .prevents: "✗"
        }
    }

    fileprivate var style: Style {
        switch self {
        case .fine: .green
        case .note: .faint
        case .costs: .yellow
        case .prevents: .boldRed
        }
    }
}
