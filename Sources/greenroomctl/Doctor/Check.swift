import JSON

/// What `doctor` found of one subject.
struct Check: Equatable {
    enum Outcome: String {
        /// As Greenroom wants it.
        case fine
        /// Worth knowing; nothing is lost.
        case note
        /// A feature is missing, or weaker.
        case costs
        /// greenroomd does not run.
        case prevents
    }

    var name: String
    var outcome: Outcome
    /// For people, without a full stop.
    var finding: String
    /// What is lost.
    var cost: String?
    /// The command, or the setting, that mends it.
    var remedy: String?

    init(_ name: String, _ outcome: Outcome, _ finding: String, cost: String? = nil, remedy: String? = nil) {
        self.name = name
        self.outcome = outcome
        self.finding = finding
        self.cost = cost
        self.remedy = remedy
    }

    var json: JSONValue {
        var members: [(String, JSONValue)] = [
            ("name", .string(name)), ("outcome", .string(outcome.rawValue)), ("finding", .string(finding)),
        ]
        if let cost { members.append(("cost", .string(cost))) }
        if let remedy { members.append(("remedy", .string(remedy))) }
        return .object(members)
    }
}

extension [Check] {
    /// The exit status of `doctor`: 2 if greenroomd does not run here, 1 if a feature is missing, otherwise 0.
    var status: Int32 {
        if contains(where: { $0.outcome == .prevents }) { return 2 }
        return contains { $0.outcome == .costs } ? 1 : 0
    }
}
