import Control
import JSON
import LifecycleCore

/// The daemon as a whole, as greenroomctl without a verb and `status` without an app show it.
struct Overview {
    var version = ""
    var info = DaemonInfo()
    var uptime: Duration?
    var memory = MemoryStatus()
    var apps: [AppStatus] = []

    /// Something that is short or wrong.
    struct Problem: Equatable {
        /// `nil`: of the machine.
        var app: String?
        /// For people, without a full stop.
        var text: String
    }

    /// The states in the order of the screen, those in which an app uses the machine most first.
    static let states = ["active", "inactive", "launching", "background", "suspended", "terminating", "notRunning"]
    /// The most problems that are shown on a screen; --json has all.
    static let maximumProblems = 10

    /// What is short or wrong: memory first, then files of no app, then the apps in the order of their IDs.
    var problems: [Problem] {
        var found: [Problem] = []
        if memory.level != "normal" {
            found.append(
                Problem(app: nil, text: "memory: \(memory.level)" + (memory.cause.map { " (\($0))" } ?? "")))
        }
        found += info.fileProblems.map { Problem(app: nil, text: escaped($0)) }
        for app in apps { found += app.problems.map { Problem(app: app.id, text: $0) } }
        return found
    }

    private func count(of state: String) -> Int { apps.count { $0.state == state } }

    /// `5: 1 active, 3 suspended, 1 not running`.
    var counts: String {
        let parts = Self.states.compactMap { state -> String? in
            let count = count(of: state)
            return count == 0 ? nil : "\(count) \(stateInWords(state))"
        }
        return apps.isEmpty ? "none" : "\(apps.count): " + parts.joined(separator: ", ")
    }

    // MARK: For people

    func text(_ screen: Screen, _ session: Session) -> String {
        var sheet = Sheet()
        let since = info.started.map {
            session.screen.isTerminal ? " (since \($0.local("%F %T")))" : " (since \($0.rfc3339))"
        }
        sheet.add("Uptime", uptime.map { $0.timeSpan(digits: 0) + (since ?? "") })
        sheet.add(
            "Folders",
            [(info.config, "configuration"), (info.runtime, "runtime"), (info.state, "state")].compactMap {
                path, what in
                path.map { "\(escaped($0)) (\(what))" }
            })
        sheet.add("Containment", containment)
        sheet.add("Apps", apps.isEmpty ? "none; to add one: \(session.command("init NAME -- COMMAND…"))" : counts)
        let budget = memory.budgetBytes.map { " of a budget of \(formattedSize($0))" } ?? ""
        sheet.add("Memory", "apps use \(formattedSize(memory.appsBytes))\(budget)")
        sheet.add("", "\(shareText(memory.availableBytes, of: memory.totalBytes)) is available")
        if let limit = memory.limit, memory.source == "limit" {
            sheet.add(
                "", "\(shareText(limit.availableBytes, of: limit.totalBytes)) is available in \(escaped(limit.group))")
        }
        if problems.isEmpty { sheet.add("Problems", "none") }
        for (index, problem) in problems.prefix(Self.maximumProblems).enumerated() {
            let style: Style = index == 0 && memory.level == "critical" ? .boldRed : .yellow
            sheet.add(
                index == 0 ? "Problems" : "", (problem.app.map { escaped($0) + ": " } ?? "") + problem.text, style)
        }
        let more = problems.count - Self.maximumProblems
        if more > 0 { sheet.add("", "\(more) more; '\(session.command("status --json"))' has all") }
        return screen.paint("●", problems.isEmpty ? .green : .yellow) + " "
            + screen.paint("greenroomd", .bold) + " \(version)\n" + sheet.text(screen)
    }

    private var containment: String {
        let text = info.containment.map { escaped($0) } ?? memory.containment
        let usual = "containing apps "
        return text.hasPrefix(usual) ? String(text.dropFirst(usual.count)) : text
    }

    // MARK: JSON

    var json: JSONValue {
        func text(_ key: String, _ value: String?) -> [(String, JSONValue)] { value.map { [(key, .string($0))] } ?? [] }
        var members: [(String, JSONValue)] = [("version", .string(version))]
        members += text("since", info.started?.rfc3339)
        if let uptime { members.append(("uptimeSeconds", .number(uptime / .seconds(1)))) }
        members += text("configFolder", info.config) + text("runtimeFolder", info.runtime)
        members += text("stateFolder", info.state) + text("containment", info.containment ?? memory.containment)
        let counts = Self.states.map { ($0, JSONValue.integer(Int64(count(of: $0)))) }
        members.append(("apps", .object([("total", .integer(Int64(apps.count)))] + counts)))
        members.append(("memory", memory.json))
        members.append(
            (
                "problems",
                .array(problems.map { .object(text("app", $0.app) + [("problem", JSONValue.string($0.text))]) })
            ))
        return .object(members)
    }
}

/// `2.0G of 8.0G (25%)`.
func shareText(_ part: UInt64, of whole: UInt64) -> String {
    let percent = whole > 0 && part <= whole ? " (\(Int((Double(part) / Double(whole) * 100).rounded()))%)" : ""
    return "\(formattedSize(part)) of \(formattedSize(whole))\(percent)"
}

extension MemoryStatus {
    /// Why memory is short, as a sentence without the full stop; `nil` if it is not.
    var cause: String? {
        guard level != "normal", let reason else { return nil }
        return switch reason {
        case "budget": "all apps together are near or above Budget="
        case "available": "little memory is available"
        case "limit": "little memory is available below the limit of \(escaped(limit?.group ?? "a cgroup"))"
        case "pressure": "tasks stall because memory is short"
        case "simulated": "simulated with greenroomctl pressure"
        default: escaped(reason)
        }
    }
}

extension AppStatus {
    /// What is wrong with the app now, and needs a person: for people, without full stops.
    var problems: [String] {
        var found: [String] = []
        if let error { found.append(error) }
        found += sockets.filter { $0.problem != nil }.map(\.phrase)
        if let suspendProblem { found.append("cannot be suspended: \(suspendProblem)") }
        if let wakeProblem { found.append(wakeProblem) }
        if let throttle { found.append("throttled: \(throttle.explanation)") }
        if let time = connectionsWaiting { found.append("connections have waited for \(countdown(time))") }
        if let time = launchPostponed { found.append("launch postponed for \(countdown(time))") }
        if let size = memoryAwaitedBytes { found.append("waits for \(formattedSize(size)) of memory") }
        if isNotRunning, let receipt = lastReceipt, receipt.isFailure, !receipt.isOrderly {
            found.append("\(receipt.explanation) (receipt \(receipt.id))")
        }
        return found
    }
}

extension ReceiptRecord {
    /// Whether the app was asked to end, and did: its exit status or the signal is no fault then. A signal that it was not asked to end
    /// with has a namespace of its own.
    var isOrderly: Bool { namespace == "exit" && (signal != nil || deadline?.what == "terminate") }
}
