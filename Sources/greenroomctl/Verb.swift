/// What can be asked for, in the order of the help.
package enum Verb: String, CaseIterable, Sendable {
    case list, status, receipts, receipt, log, watch
    case launch, activate, background, interrupt, resume, terminate, push, send
    case pressure, verify, reload, reexec
    case help
    // Promised by the contract, and not there yet.
    case open, snapshot

    /// What stands behind the verb in its usage line.
    var usage: String {
        switch self {
        case .list, .reload, .reexec: ""
        case .status: "[APP…]"
        case .receipts: "[APP]"
        case .receipt: "ID"
        case .watch: "[APP…]"
        case .launch: "APP [--background] [--reason REASON] [--url URL]"
        case .activate, .background, .interrupt, .resume, .snapshot: "APP"
        case .terminate: "APP [--remove]"
        case .push: "APP [PAYLOAD]"
        case .send: "APP KIND [PAYLOAD]"
        case .pressure: "[warning|critical|normal]"
        case .verify: "FILE…"
        case .help: "[VERB]"
        case .open: "APP URL"
        case .log: "[APP] [-f] [-n N]"
        }
    }

    /// How many words may follow.
    var operands: ClosedRange<Int> {
        switch self {
        case .list, .reload, .reexec: 0...0
        case .status, .watch: 0...Int.max
        case .receipts, .pressure, .help, .log: 0...1
        case .receipt, .activate, .background, .interrupt, .resume, .snapshot, .launch, .terminate: 1...1
        case .push: 1...2
        case .send: 2...3
        case .verify: 1...Int.max
        case .open: 2...2
        }
    }

    /// Whether there is code behind it.
    var isThere: Bool {
        switch self {
        case .open, .snapshot: false
        case .list, .status, .receipts, .receipt, .log, .watch, .launch, .activate, .background, .interrupt, .resume,
            .terminate,
            .push, .send, .pressure, .verify, .reload, .reexec, .help:
            true
        }
    }

    /// One line, for the list of verbs.
    var summary: String {
        switch self {
        case .list: "all apps, a line each"
        case .status: "one app in full; without APP, the house"
        case .receipts: "why apps ended, the last at the bottom"
        case .receipt: "one end in full: deadline, memory, who else could have been taken"
        case .watch: "every change as it happens"
        case .launch: "launches an app and waits until it is active, or in the background"
        case .activate: "brings an app to the foreground"
        case .background: "sends an app to the background"
        case .interrupt: "an interruption begins: active apps become inactive"
        case .resume: "an interruption ends"
        case .terminate: "tells an app to end; --remove: as the user's removal, at once"
        case .push: "wakes or launches an app with a push"
        case .send: "a notification; suspended apps get it when they run again"
        case .pressure: "the state of memory; with a level, simulates it"
        case .verify: "checks manifests as the daemon would, without one"
        case .reload: "the daemon reads all manifests anew"
        case .help: "this, or more about one verb"
        case .open: "opens a URL in an app"
        case .snapshot: "what an app last showed"
        case .log: "the journal: of an app, with what it wrote itself, or of all"
        case .reexec: "replaces the daemon, the apps running on"
        }
    }
}

/// What can be said beside the verb, anywhere on the line.
package enum Option: String, CaseIterable, Sendable {
    case json, user, system, runtime, help, version
    case background, reason, url, remove, lines, verbose, follow

    var long: String { "--" + rawValue }

    var short: Character? {
        switch self {
        case .help: "h"
        case .lines: "n"
        case .verbose: "v"
        case .follow: "f"
        case .json, .user, .system, .runtime, .version, .background, .reason, .url, .remove: nil
        }
    }

    /// What its value is, for those that have one.
    var value: String? {
        switch self {
        case .runtime: "a folder"
        case .reason: "a reason to launch, such as user, push or timer"
        case .url: "a URL"
        case .lines: "a number"
        case .json, .user, .system, .help, .version, .background, .remove, .verbose, .follow: nil
        }
    }

    /// The verbs it goes with; `nil`: all.
    var verbs: [Verb]? {
        switch self {
        case .json, .user, .system, .runtime, .help, .version: nil
        case .background, .reason, .url: [.launch]
        case .remove: [.terminate]
        case .lines: [.receipts, .log]
        case .verbose: [.watch]
        case .follow: [.log]
        }
    }
}
