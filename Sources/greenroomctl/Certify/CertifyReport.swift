import Control
import JSON
import LifecycleCore

/// What `certify` found at one step.
struct CertifyOutcome: Equatable {
    enum Verdict: String, CaseIterable {
        /// The app took part, or did what every app must.
        case handled
        /// The app takes no part in this, which is allowed.
        case ignored
        /// It was killed at a deadline, crashed, lost its connection or its data.
        case broken
        /// The step does not concern this app, or could not be taken.
        case notApplicable = "not-applicable"
    }

    var verdict: Verdict
    /// A sentence without its full stop.
    var finding: String
    /// How long the app took.
    var took: Duration?
    /// What was counted in the step "requests".
    var rounds: CertifyRounds?

    static func handled(_ finding: String, _ took: Duration? = nil) -> Self {
        Self(verdict: .handled, finding: finding, took: took)
    }
    static func ignored(_ finding: String, _ took: Duration? = nil) -> Self {
        Self(verdict: .ignored, finding: finding, took: took)
    }
    static func broken(_ finding: String) -> Self { Self(verdict: .broken, finding: finding) }
    static func notApplicable(_ finding: String) -> Self { Self(verdict: .notApplicable, finding: finding) }
}

/// The outcomes of all steps, in their order: the report for people, JSON and JUnit are made from it.
struct CertifyReport: Equatable {
    struct Point: Equatable {
        /// A word for scripts.
        var name: String
        /// For people.
        var title: String
        /// The rules that the step tries: `L16`.
        var rules: String
        var outcome: CertifyOutcome
    }

    var app: String
    var points: [Point] = []

    func count(_ verdict: CertifyOutcome.Verdict) -> Int { points.count { $0.outcome.verdict == verdict } }

    /// 0: nothing broke.
    var status: Int32 { count(.broken) == 0 ? 0 : 1 }

    // MARK: For people

    /// A line a step: mark, title, verdict, time, finding.
    static func line(_ point: Point, _ screen: Screen) -> String {
        let outcome = point.outcome
        let head =
            screen.paint(outcome.verdict.mark, outcome.verdict.style) + " " + point.title.padded(to: titleWidth)
            + outcome.verdict.word.padded(to: verdictWidth) + (outcome.took?.timeSpan ?? "").padded(to: timeWidth)
        let indent = 2 + titleWidth + verdictWidth + timeWidth
        let margin = "\n" + String(repeating: " ", count: indent)
        return head + Table.wrappedLines(escaped(outcome.finding), indent: indent, screen).joined(separator: margin)
            + "\n"
    }

    private static let titleWidth = 19
    private static let verdictWidth = 9
    private static let timeWidth = 9

    var summary: String {
        let counts = CertifyOutcome.Verdict.allCases.compactMap { verdict in
            let number = count(verdict)
            return number == 0 ? nil : "\(number) \(verdict == .notApplicable ? "not applicable" : verdict.rawValue)"
        }
        let result = status == 0 ? "Nothing broke" : "\(escaped(app)) broke"
        let steps = points.count == 1 ? "step" : "steps"
        return "\(result): of \(points.count) \(steps) " + counts.joined(separator: ", ") + "."
    }

    // MARK: For programs

    var json: JSONValue {
        .object([
            ("app", .string(app)), ("status", .integer(Int64(status))),
            (
                "steps",
                .array(
                    points.map { point in
                        var members: [(String, JSONValue)] = [
                            ("name", .string(point.name)), ("title", .string(point.title)),
                            ("rules", .array(point.rules.split(separator: " ").map { .string(String($0)) })),
                            ("outcome", .string(point.outcome.verdict.rawValue)),
                            ("finding", .string(point.outcome.finding)),
                        ]
                        if let took = point.outcome.took { members.append(("tookSeconds", took.json)) }
                        if let rounds = point.outcome.rounds { members.append(("requests", rounds.json)) }
                        return .object(members)
                    })
            ),
        ])
    }

    /// A test suite of JUnit's XML format: what broke is a failure, what does not apply was skipped.
    var junit: String {
        let cases = points.map { point -> String in
            let outcome = point.outcome
            let text = Self.xml(outcome.finding)
            let content =
                switch outcome.verdict {
                case .broken: "<failure message=\"\(text)\"/>"
                case .notApplicable: "<skipped message=\"\(text)\"/>"
                case .handled, .ignored: "<system-out>\(outcome.verdict.rawValue): \(text)</system-out>"
                }
            let head = "  <testcase classname=\"greenroom.\(Self.xml(app))\" name=\"\(point.name)\""
            return head + " time=\"\(Self.seconds(outcome.took ?? .zero))\">\n    \(content)\n  </testcase>\n"
        }
        let total = points.reduce(Duration.zero) { $0 + ($1.outcome.took ?? .zero) }
        return """
            <?xml version="1.0" encoding="UTF-8"?>
            <testsuite name="greenroomctl certify \(Self.xml(app))" tests="\(points.count)" failures="\(count(.broken))" \
            errors="0" skipped="\(count(.notApplicable))" time="\(Self.seconds(total))">
            \(cases.joined())</testsuite>

            """
    }

    /// With milliseconds.
    private static func seconds(_ time: Duration) -> String {
        let (whole, attoseconds) = time.components
        let milliseconds = whole * 1000 + attoseconds / 1_000_000_000_000_000
        return "\(milliseconds / 1000)." + String(1000 + milliseconds % 1000).dropFirst()
    }

    /// Text of a program in XML 1.0, which has no control characters.
    private static func xml(_ text: String) -> String {
        var result = ""
        for scalar in escaped(text).unicodeScalars {
            switch scalar {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            case "\"": result += "&quot;"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}

extension CertifyOutcome.Verdict {
    fileprivate var word: String { self == .notApplicable ? "n/a" : rawValue }

    fileprivate var mark: String {
        switch self {
        case .handled: "✓"
        case .ignored, .notApplicable: "·"
        case .broken: "✗"
        }
    }

    fileprivate var style: Style {
        switch self {
        case .handled: .green
        case .ignored, .notApplicable: .faint
        case .broken: .boldRed
        }
    }
}
