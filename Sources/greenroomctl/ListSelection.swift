import Control
import LifecycleCore
import Manifest

/// Which apps `list` shows, and in which order: `--state` and `--sort`.
struct ListSelection {
    /// Keys of `--sort`.
    enum Key: String, CaseIterable {
        case name, state, memory, since
    }

    /// Empty: all.
    private var states: Set<String> = []
    private var key = Key.name

    init(_ options: [Option: String]) {
        states = Set(options[.state].map(Self.states) ?? [])
        key = options[.sort].flatMap { Key(rawValue: $0) } ?? .name
    }

    /// The states that a value names, in the spelling of the status; upper and lower case do not matter.
    private static func states(_ text: String) -> [String] {
        text.split(separator: ",").map { word in Overview.states.first { $0.lowercased() == word.lowercased() } ?? "" }
    }

    /// Why the options cannot be used.
    static func problem(_ options: [Option: String]) -> String? {
        if let text = options[.state] {
            let words = text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
            if let wrong = words.first(where: { states($0).first.map { $0.isEmpty } ?? true }) {
                return "--state: invalid state '\(escaped(wrong))'" + Invocation.expectation(wrong, Overview.states)
            }
        }
        if let text = options[.sort], Key(rawValue: text) == nil {
            return "--sort: invalid key '\(escaped(text))'" + Invocation.expectation(text, Key.allCases.map(\.rawValue))
        }
        return nil
    }

    func selected(_ apps: [AppStatus]) -> [AppStatus] {
        let found = states.isEmpty ? apps : apps.filter { states.contains($0.state) }
        switch key {
        case .name: return found.sorted { $0.id < $1.id }
        case .state: return sorted(found) { Overview.states.firstIndex(of: $0.state) ?? Overview.states.count }
        // The largest and the latest first; those without a value last.
        case .memory: return sorted(found) { $0.isNotRunning ? 1 : -Double($0.memoryBytes) }
        case .since: return sorted(found) { $0.since.map { -Double($0.microseconds) } ?? 1 }
        }
    }

    /// Sorts by a value, and apps with the same value by their IDs.
    private func sorted<Value: Comparable>(_ apps: [AppStatus], by value: (AppStatus) -> Value) -> [AppStatus] {
        apps.sorted { (value($0), $0.id) < (value($1), $1.id) }
    }
}
