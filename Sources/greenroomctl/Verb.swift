/// The verbs, in the order of the help.
package enum Verb: String, CaseIterable, Sendable {
    case list, status, explain, show
    case isActive = "is-active"
    case idle
    case listTimers = "list-timers"
    case cat, snapshot, receipts, receipt, log, watch, top
    /// `switch`, which is no name for a case.
    case switchApps = "switch"
    case launch, activate, background, close
    case cancelTask = "cancel-task"
    case interrupt, resume, terminate, restart, push, send, open
    case run
    case mcpConfig = "mcp-config"
    case enable, disable
    case pressure
    /// `init`, which is no name for a case.
    case initialize = "init"
    case certify, edit, verify, reload, reexec, doctor
    case plot, replay, savings
    case app
    case help

    /// The arguments in the usage line.
    var usage: String {
        switch self {
        case .reload, .reexec, .doctor, .switchApps: ""
        case .status, .idle: "[-v] [APP…]"
        case .watch: "[APP…]"
        case .top: "[--interval TIME] [--sort KEY] [--batch [--count N]]"
        case .listTimers: "[APP…]"
        case .list: "[--state STATE] [--sort KEY] [--scenes] [--full] [APP…]"
        case .show: "[-p KEY]… [--value] [APP…]"
        case .explain, .isActive, .cat: "APP…"
        case .receipts: "[APP…] [-n N] [--since TIME]"
        case .receipt: "ID"
        case .launch: "APP… [--background] [--reason REASON] [--url URL] [-E NAME[=VALUE]]… [--no-block]"
        case .enable, .disable: "APP… [--now] [--config DIR]"
        case .activate, .background: "APP… [--scene ID] [--no-block]"
        case .resume: "APP… [--no-block]"
        case .close: "APP --scene ID [--no-block]"
        case .cancelTask: "APP TASK [--no-block]"
        case .interrupt: "APP… [--while-connected] [--no-block]"
        case .terminate: "APP… [--remove] [--no-block]"
        case .restart: "APP… [--background] [-E NAME[=VALUE]]…"
        case .push: "APP [PAYLOAD] [--no-block]"
        case .send: "APP KIND [PAYLOAD] [--no-block]"
        case .pressure: "[warning|critical|normal]"
        case .edit: "APP [--config DIR]"
        case .initialize: "NAME [--url-scheme SCHEME]… [--config DIR] -- COMMAND…"
        case .certify: "[--client COMMAND] [--only STEP,…] [--junit FILE] APP | [-p KEY=VALUE]… -- COMMAND…"
        case .verify: "FILE…"
        case .help: "[VERB]"
        case .open: "[APP] URL [--no-block]"
        case .snapshot: "APP [--scene ID] [-o FILE]"
        case .log: "[APP…] [-f] [-n N] [--since TIME]"
        case .plot: "[APP…] [--since TIME] [--file PATH] --svg|--html|--perfetto|--json"
        case .replay: "[FILE…] [--jetsam-order ORDER]"
        case .savings: "[APP…] [--file PATH]"
        case .app: "COMMAND …"
        case .run: "[-p KEY=VALUE]… [--name NAME] [--protocol=NAME] [--keep] [--quiet] -- COMMAND…"
        case .mcpConfig: "FILE [--protocol=NAME] [--remove]"
        }
    }

    /// The usage without options, for the list of verbs.
    var shortUsage: String {
        switch self {
        case .explain, .receipt, .watch, .reload, .reexec, .doctor, .isActive, .cat, .verify, .help, .switchApps:
            usage
        case .app: usage
        case .run: "-- COMMAND…"
        case .mcpConfig: "FILE"
        case .top: ""
        case .list, .status, .idle, .listTimers, .show, .receipts, .log, .plot, .savings: "[APP…]"
        case .launch, .activate, .background, .interrupt, .resume, .terminate, .restart, .enable, .disable: "APP…"
        case .edit, .snapshot: "APP"
        case .close: "APP --scene ID"
        case .cancelTask: "APP TASK"
        case .push: "APP [PAYLOAD]"
        case .certify: "APP|-- COMMAND…"
        case .send: "APP KIND [PAYLOAD]"
        case .open: "[APP] URL"
        case .pressure: "[LEVEL]"
        case .initialize: "NAME -- COMMAND…"
        case .replay: "[FILE…]"
        }
    }

    /// How many arguments the verb takes.
    var operands: ClosedRange<Int> {
        switch self {
        case .reload, .reexec, .doctor, .top, .switchApps: 0...0
        case .list, .status, .show, .idle, .listTimers, .watch, .receipts, .log, .plot, .replay, .savings: 0...Int.max
        case .pressure, .help: 0...1
        case .receipt, .snapshot, .edit, .mcpConfig, .close: 1...1
        case .explain, .isActive, .cat, .launch, .activate, .background, .interrupt, .resume, .terminate, .restart,
            .enable,
            .disable, .verify:
            1...Int.max
        case .push: 1...2
        case .cancelTask: 2...2
        case .send: 2...3
        case .initialize: 2...Int.max
        case .open: 1...2
        case .app, .run, .certify: 1...Int.max
        }
    }

    /// How many of the arguments, from the first on, name apps.
    var appOperands: Int {
        switch self {
        case .list, .status, .explain, .show, .isActive, .idle, .listTimers, .cat, .receipts, .log, .watch, .launch,
            .activate, .background,
            .interrupt, .resume, .terminate, .restart, .enable, .disable, .plot, .savings:
            Int.max
        case .push, .send, .open, .snapshot, .initialize, .edit, .certify, .close, .cancelTask: 1
        case .receipt, .pressure, .verify, .reload, .reexec, .doctor, .app, .run, .mcpConfig, .help, .top, .replay,
            .switchApps:
            0
        }
    }

    /// The line in the list of verbs.
    var summary: String {
        switch self {
        case .list: "List all apps, or those that APP matches"
        case .status: "Show apps in detail; without APP, the daemon"
        case .explain: "Show on one screen why apps are awake or not, and what they may use"
        case .show: "Show the properties of apps as KEY=VALUE"
        case .isActive: "Show the states of apps; succeed if one of them runs"
        case .idle: "Show why apps are awake, or what would wake them"
        case .listTimers: "List when timers and fetches of apps elapse, the next one first"
        case .cat: "Show the files of apps' manifests"
        case .receipts: "List why apps ended, the latest last"
        case .receipt: "Show one receipt in detail"
        case .watch: "Print events as they happen"
        case .top: "Show all apps live, and act on one of them"
        case .switchApps: "Choose the app to bring to the foreground, in the terminal"
        case .launch: "Launch apps and wait until they are active, or in the background"
        case .activate: "Bring apps to the foreground"
        case .background: "Move apps to the background"
        case .close: "Close a scene of an app: its state and its snapshot are removed"
        case .cancelTask: "Cancel a background task of an app: it has to end now"
        case .interrupt: "Begin an interruption: the apps become inactive"
        case .resume: "End an interruption"
        case .terminate: "Terminate apps; with --remove, kill them at once"
        case .restart: "Terminate apps, then launch them again"
        case .enable: "Give instances of templates a file, so that they exist at each start"
        case .disable: "Remove the files that 'enable' has made"
        case .push: "Wake or launch an app with a push notification"
        case .send: "Send a notification; a suspended app receives it when it runs again"
        case .pressure: "Show the memory level; with LEVEL, simulate it"
        case .initialize: "Create the manifest of a program"
        case .certify: "Take an app, or a command, through its lifecycle, and report what it handled"
        case .edit: "Edit the manifest of an app, check and load it"
        case .verify: "Check manifests as the daemon does, without a daemon"
        case .reload: "Reload all manifests and the configuration"
        case .plot: "Draw what was recorded: a lane for each app, with states, deadlines, tasks and wakes"
        case .replay: "Show which apps were killed for memory, and which another JetsamOrder= would have killed"
        case .savings: "Show how long apps slept, what woke them, and how much memory lay idle"
        case .app: "Inside an app: wait for events, begin tasks, keep the state"
        case .run: "Run a command as without this prefix; it sleeps while it has nothing to do"
        case .mcpConfig: "Put 'greenroomctl run' before the servers of an MCP client, or take it out again"
        case .help: "Show this help, or the help of a verb"
        case .open: "Open a URL in an app, or in the one that opens URLs of this scheme"
        case .snapshot: "Write what an app showed last: a picture, or a text"
        case .log: "Show the journal entries and the output of apps, or all entries"
        case .doctor: "Show what the machine lacks, what that costs, and what mends it"
        case .reexec: "Replace the daemon; apps keep running"
        }
    }

    /// What to do instead, for a word of another program's command line that is no verb here; `nil`: nothing is known.
    static func hint(for word: String) -> String? {
        switch word {
        case "start": "use 'launch'"
        case "exec", "spawn": "use 'run -- COMMAND…', or 'init NAME -- COMMAND…', then 'reload' and 'launch'"
        case "stop", "quit", "exit": "use 'terminate'"
        case "kill", "rm", "remove", "delete": "use 'terminate --remove', or 'terminate' for an orderly end"
        case "freeze", "suspend", "pause":
            "use 'background': an app in the background is suspended when it has no work"
        case "thaw", "unfreeze", "unpause", "unsuspend", "wake", "focus", "foreground", "fg": "use 'activate'"
        case "continue", "cont": "use 'activate' for a suspended app, or 'resume' to end an interruption"
        case "bg": "use 'background'"
        case "ps", "ls", "list-units", "list-apps": "use 'list'"
        case "inspect", "info": "use 'status', or 'show' for scripts"
        case "is-running": "use 'is-active'"
        case "htop", "live": "use 'top'"
        case "timers", "cron": "use 'list-timers'"
        case "why", "awake", "wakeups", "inhibitors": "use 'idle', or 'explain APP'"
        case "logs", "journal", "journalctl": "use 'log'"
        case "events", "monitor", "follow": "use 'watch'"
        case "try-restart", "reload-or-restart", "force-reload": "use 'restart'"
        case "mask", "unmask":
            "an empty file ID.app in the configuration folder masks an app; then use 'reload' (greenroom.app(5))"
        case "set-property": "use 'edit', or a drop-in ID.app.d/NAME.conf, then 'reload'"
        case "create", "new", "add": "use 'init NAME -- COMMAND…'"
        case "daemon-reload": "use 'reload'"
        case "daemon-reexec", "upgrade": "use 'reexec'"
        case "check", "lint", "validate": "use 'verify'"
        case "test", "conformance", "try": "use 'certify'"
        case "memory", "mem": "use 'pressure'"
        case "notify": "use 'send' or 'push'"
        case "trace", "timeline", "record": "use 'plot'"
        default: nil
        }
    }
}

/// The options. They may stand anywhere on the line.
package enum Option: String, CaseIterable, Sendable {
    case json, user, system, runtime, help, version
    case background, reason, url, remove, lines, verbose, follow, since, property, value, config
    case whileConnected = "while-connected"
    case noBlock = "no-block"
    case setenv, now
    case after, timeout, result, answer
    case urlScheme = "url-scheme"
    case state, sort, full
    case interval, batch, count
    case svg, html, perfetto, file
    case jetsamOrder = "jetsam-order"
    case name, quiet, keep, `protocol`
    case keepChildren = "keep-children"
    case scene, scenes, clients
    case output
    case junit, client, rounds, only

    var long: String { "--" + rawValue }

    var short: Character? {
        switch self {
        case .help: "h"
        case .lines: "n"
        case .verbose: "v"
        case .follow: "f"
        case .property: "p"
        case .setenv: "E"
        case .output: "o"
        case .json, .user, .system, .runtime, .version, .background, .reason, .url, .remove, .since, .value, .config,
            .whileConnected, .noBlock, .now, .after, .timeout, .result, .answer,
            .urlScheme, .state, .sort, .full, .interval, .batch, .count, .svg, .html, .perfetto, .file, .jetsamOrder,
            .name, .quiet, .keep, .keepChildren, .protocol, .scene, .scenes, .clients, .junit, .client, .rounds, .only:
            nil
        }
    }

    /// The name of the value in help and errors; `nil` for a flag.
    var placeholder: String? {
        switch self {
        case .runtime, .config: "DIR"
        case .reason: "REASON"
        case .url: "URL"
        case .lines, .count, .rounds: "N"
        case .since, .timeout, .interval: "TIME"
        case .after, .answer: "SERIAL"
        case .result: "RESULT"
        case .urlScheme: "SCHEME"
        case .property, .sort: "KEY"
        case .state: "STATE"
        case .setenv: "NAME[=VALUE]"
        case .file: "PATH"
        case .output, .junit: "FILE"
        case .client: "COMMAND"
        case .only: "STEP"
        case .jetsamOrder: "ORDER"
        case .name: "NAME"
        case .scene: "ID"
        case .protocol: "NAME"
        case .json, .user, .system, .help, .version, .background, .remove, .verbose, .follow, .value, .whileConnected,
            .noBlock, .now, .full, .batch, .svg, .html, .perfetto, .quiet, .keep, .keepChildren, .scenes, .clients:
            nil
        }
    }

    /// Whether the values of several options are joined by commas; otherwise the last one counts.
    var isList: Bool { [.property, .urlScheme, .state, .only].contains(self) }

    /// The verbs that accept the option; `nil` for all.
    var verbs: [Verb]? {
        switch self {
        case .json, .user, .system, .runtime, .help, .version: nil
        case .background: [.launch, .restart]
        case .reason, .url: [.launch]
        case .remove: [.terminate, .mcpConfig]
        case .lines: [.receipts, .log]
        case .since: [.receipts, .log, .plot]
        case .svg, .html, .perfetto: [.plot]
        case .file: [.plot, .savings]
        case .jetsamOrder: [.replay]
        case .verbose: [.status, .idle, .watch]
        case .follow: [.log]
        case .property: [.show, .run, .certify]
        case .keep: [.run, .certify]
        case .junit, .client, .rounds, .only: [.certify]
        case .name, .quiet, .keepChildren: [.run]
        case .protocol: [.run, .mcpConfig]
        case .output: [.snapshot]
        case .value: [.show]
        case .config: [.initialize, .edit, .enable, .disable, .certify]
        case .setenv: [.launch, .restart]
        case .now: [.enable, .disable]
        case .whileConnected: [.interrupt]
        case .after, .result, .answer: [.app]
        case .timeout: [.app, .certify]
        case .urlScheme: [.initialize]
        case .state, .full, .scenes, .clients: [.list]
        case .scene: [.activate, .background, .close, .snapshot]
        case .sort: [.list, .top]
        case .interval, .batch, .count: [.top]
        case .noBlock:
            [
                .launch, .activate, .background, .close, .cancelTask, .interrupt, .resume, .terminate, .push, .send,
                .open,
            ]
        }
    }
}
