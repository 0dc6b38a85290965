/// The verbs, in the order of the help.
package enum Verb: String, CaseIterable, Sendable {
    case list, status, receipts, receipt, log, watch
    case launch, activate, background, interrupt, resume, terminate, push, send
    case pressure, verify, reload, reexec
    case help
    // Not implemented.
    case open, snapshot

    /// The arguments in the usage line.
    var usage: String {
        switch self {
        case .list, .reload, .reexec: ""
        case .status: "[APP…]"
        case .receipts: "[APP]"
        case .receipt: "ID"
        case .watch: "[APP…]"
        case .launch: "APP [--background] [--reason REASON] [--url URL]"
        case .activate, .background, .resume, .snapshot: "APP"
        case .interrupt: "APP [--while-connected]"
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

    /// How many arguments the verb takes.
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

    var isImplemented: Bool {
        switch self {
        case .open, .snapshot: false
        case .list, .status, .receipts, .receipt, .log, .watch, .launch, .activate, .background, .interrupt, .resume,
            .terminate, .push, .send, .pressure, .verify, .reload, .reexec, .help:
            true
        }
    }

    /// The line in the list of verbs.
    var summary: String {
        switch self {
        case .list: "List all apps"
        case .status: "Show an app in detail; without APP, the daemon"
        case .receipts: "List why apps ended, the latest last"
        case .receipt: "Show one receipt in detail"
        case .watch: "Print events as they happen"
        case .launch: "Launch an app and wait until it is active, or in the background"
        case .activate: "Bring an app to the foreground"
        case .background: "Move an app to the background"
        case .interrupt: "Begin an interruption: the app becomes inactive"
        case .resume: "End an interruption"
        case .terminate: "Terminate an app; with --remove, kill it at once"
        case .push: "Wake or launch an app with a push notification"
        case .send: "Send a notification; a suspended app receives it when it resumes"
        case .pressure: "Show the memory level; with LEVEL, simulate it"
        case .verify: "Check manifests as the daemon does, without a daemon"
        case .reload: "Reload all manifests and the configuration"
        case .help: "Show this help, or the help of a verb"
        case .open: "Open a URL in an app"
        case .snapshot: "Show the last snapshot of an app"
        case .log: "Show the journal entries and the output of an app, or all entries"
        case .reexec: "Replace the daemon; apps keep running"
        }
    }
}

/// The options. They may stand anywhere on the line.
package enum Option: String, CaseIterable, Sendable {
    case json, user, system, runtime, help, version
    case background, reason, url, remove, lines, verbose, follow
    case whileConnected = "while-connected"

    var long: String { "--" + rawValue }

    var short: Character? {
        switch self {
        case .help: "h"
        case .lines: "n"
        case .verbose: "v"
        case .follow: "f"
        case .json, .user, .system, .runtime, .version, .background, .reason, .url, .remove, .whileConnected: nil
        }
    }

    /// The name of the value in help and errors; `nil` for a flag.
    var value: String? {
        switch self {
        case .runtime: "DIR"
        case .reason: "REASON"
        case .url: "URL"
        case .lines: "N"
        case .json, .user, .system, .help, .version, .background, .remove, .verbose, .follow, .whileConnected: nil
        }
    }

    /// The verbs that accept the option; `nil` for all.
    var verbs: [Verb]? {
        switch self {
        case .json, .user, .system, .runtime, .help, .version: nil
        case .background, .reason, .url: [.launch]
        case .remove: [.terminate]
        case .lines: [.receipts, .log]
        case .verbose: [.watch]
        case .follow: [.log]
        case .whileConnected: [.interrupt]
        }
    }
}
