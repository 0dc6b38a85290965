import LifecycleCore
import Manifest
import Systemd

/// The commands of `app`, for the processes of an app.
enum AppCommand: String, CaseIterable {
    case events, wait, answer, task, progress, mode, scene, remaining, save, restore, snapshot, status, summary, idle,
        launch

    /// The arguments in the usage line.
    var usage: String {
        switch self {
        case .events: "[KIND…] [--after SERIAL]"
        case .wait: "[KIND…] [--after SERIAL] [--timeout TIME]"
        case .answer: "SERIAL [--result RESULT]"
        case .task: "NAME [--answer SERIAL] -- COMMAND…"
        case .progress: "NAME DONE TOTAL [TITLE]"
        case .remaining: ""
        case .save: "FILE|- [SCENE]"
        case .restore: "[FILE|- [SCENE]]"
        case .snapshot: "FILE|- [TYPE [SCENE]]"
        case .status, .summary: "TEXT"
        case .idle: "yes|no"
        case .mode: "MODE yes|no"
        case .scene: "ID window|external|panel|no"
        case .launch: "[KEY]"
        }
    }

    var summaryLine: String {
        switch self {
        case .events: "Print events, a line each: SERIAL KIND DETAILS"
        case .wait: "Print the next event and exit"
        case .answer: "Answer an event"
        case .task: "Run a command in a background task"
        case .progress: "Report how far a background task is"
        case .remaining: "Print the background time that is left, in seconds"
        case .save: "Keep the restoration state, or that of a scene"
        case .snapshot: "Keep what the app, or a scene, shows, to be shown while it is away"
        case .restore: "Print the restoration state that was kept"
        case .status: "Set the status text"
        case .summary: "Keep one line about the state for the next launch"
        case .mode: "Begin or end a background mode"
        case .scene: "Begin a scene, show it again, or end it"
        case .idle: "Say whether the app has nothing to do"
        case .launch: "Print why the app was launched, and how it ended last"
        }
    }

    /// How many arguments follow the command.
    private var operands: ClosedRange<Int> {
        switch self {
        case .events, .wait: 0...Int.max
        case .answer, .status, .summary, .idle: 1...1
        case .task: 2...Int.max
        case .mode, .scene: 2...2
        case .progress: 3...4
        case .save: 1...2
        case .snapshot: 1...3
        case .remaining: 0...0
        case .launch: 0...1
        case .restore: 0...2
        }
    }

    private var missing: String {
        switch self {
        case .answer: "SERIAL"
        case .save, .snapshot: "FILE"
        case .status, .summary: "TEXT"
        case .idle: "yes or no"
        case .mode: "MODE, yes or no"
        case .progress: "NAME, DONE or TOTAL"
        case .scene: "ID, window, external, panel or no"
        case .task, .events, .wait, .remaining, .restore, .launch: "NAME -- COMMAND…"
        }
    }

    private var options: Set<Option> {
        switch self {
        case .events: [.after]
        case .wait: [.after, .timeout]
        case .answer: [.result]
        case .task: [.answer]
        case .progress, .mode, .scene, .remaining, .save, .restore, .snapshot, .status, .summary, .idle, .launch: []
        }
    }

    /// The usage error of a command line; `nil`: it has none.
    /// - Parameter words: what follows `app`.
    static func problem(_ words: [String], _ given: [Option: String]) -> String? {
        let names = allCases.map(\.rawValue)
        guard let command = words.first.flatMap(AppCommand.init(rawValue:)) else {
            return "app: unknown command '\(escaped(words.first ?? ""))'" + expectation(words.first ?? "", names)
        }
        let name = "app \(command.rawValue)"
        let own: Set<Option> = [.after, .timeout, .result, .answer]
        if let option = Option.allCases.first(where: { given[$0] != nil && own.contains($0) }),
            !command.options.contains(option)
        {
            return "\(name): unexpected option '\(option.long)'"
        }
        let rest = Array(words.dropFirst())
        if rest.count < command.operands.lowerBound { return "\(name): missing argument \(command.missing)" }
        if rest.count > command.operands.upperBound {
            return "\(name): unexpected argument '\(escaped(rest[command.operands.upperBound]))'"
        }
        return command.problem(of: rest, name) ?? problem(ofOptions: given)
    }

    private func problem(of rest: [String], _ name: String) -> String? {
        switch self {
        case .events, .wait:
            return rest.first { !AppEvent.kinds.contains($0) }.map {
                "\(name): unknown kind '\(escaped($0))'" + Self.expectation($0, AppEvent.kinds)
            }
        case .answer:
            return UInt64(rest[0]) == nil ? "\(name): invalid serial '\(escaped(rest[0]))'; expected a number" : nil
        case .mode:
            let modes = BackgroundModes.assertableNames
            guard modes.contains(rest[0]) else {
                return "\(name): unknown mode '\(escaped(rest[0]))'" + Self.expectation(rest[0], modes)
            }
            return Self.problem(ofSwitch: rest[1], name)
        case .progress:
            let numbers = rest[1...2].compactMap { UInt64($0) }
            let title = rest.count > 3 ? rest[3] : ""
            if numbers.count == 2, TaskProgress(done: numbers[0], total: numbers[1], title: title) != nil { return nil }
            return
                "\(name): invalid progress '\(escaped(rest[1...].joined(separator: " ")))'; expected \(TaskProgress.rule)"
        case .scene:
            if SceneID(rest[0]) == nil {
                return "\(name): invalid scene '\(escaped(rest[0]))'; expected \(SceneID.rule)"
            }
            let words = SceneRole.allCases.map(\.rawValue) + ["no"]
            return words.contains(rest[1])
                ? nil : "\(name): unknown role '\(escaped(rest[1]))'" + Self.expectation(rest[1], words)
        case .idle: return Self.problem(ofSwitch: rest[0], name)
        case .launch:
            return rest.first { !AppLaunch.keys.contains($0) }.map {
                "\(name): unknown key '\(escaped($0))'" + Self.expectation($0, AppLaunch.keys)
            }
        case .snapshot:
            guard rest.count > 1, !MediaType.isValid(rest[1]) else { return nil }
            return "\(name): invalid type '\(escaped(rest[1]))'; expected \(MediaType.expected)"
        case .task, .remaining, .save, .restore, .status, .summary: return nil
        }
    }

    private static func problem(ofSwitch word: String, _ name: String) -> String? {
        ["yes", "no"].contains(word) ? nil : "\(name): invalid value '\(escaped(word))'; expected yes or no"
    }

    private static func problem(ofOptions given: [Option: String]) -> String? {
        for option in [Option.after, .answer] {
            if let text = given[option], UInt64(text) == nil {
                return "\(option.long): invalid serial '\(escaped(text))'; expected a number"
            }
        }
        if let text = given[.timeout], parseTimeSpan(text) == nil {
            return "--timeout: invalid time '\(escaped(text))'; expected a time span such as 30s or 1min, or infinity"
        }
        let results = WakeResult.allCases.map(\.rawValue)
        if let text = given[.result], !results.contains(text) {
            return "--result: invalid value '\(escaped(text))'" + expectation(text, results)
        }
        return nil
    }

    private static func expectation(_ written: String, _ known: [String]) -> String {
        (nearest(written, among: known).map { "; did you mean '\($0)'?" } ?? "")
            + "; expected \(known.joined(separator: ", "))"
    }
}
