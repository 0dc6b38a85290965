package import LifecycleCore
package import Systemd

/// One piece of news in words: for the journal, and for whoever watches.
package struct LogEntry: Hashable, Sendable {
    package var priority: LogLevel
    package var messageID: String
    /// What happened, as `watch --json` names it.
    package var kind: String
    package var app: AppID?
    /// One line; begins with the app's name.
    package var message: String
    /// Journal fields beside `GREENROOM_APP=`.
    package var fields: [(name: String, value: String)] = []

    package static func == (a: LogEntry, b: LogEntry) -> Bool {
        a.messageID == b.messageID && a.message == b.message && a.app == b.app
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(messageID)
        hasher.combine(message)
    }
}

extension LogEntry {
    /// The news in words. States, codes and names are spelled as the command line and the journal's fields spell them.
    package init(_ news: Report) {
        switch news {
        case .stateChanged(let app, let from, let to, let reason):
            self.init(
                to.isWorthNotice ? .notice : .info, MessageID.stateChanged, "stateChanged", app,
                "\(from.rawValue) → \(to.rawValue) (\(reason.rawValue))",
                [("GREENROOM_STATE", to.rawValue), ("GREENROOM_REASON", reason.rawValue)])
        case .deadlineStarted(let app, let what, let time):
            self.init(
                .debug, MessageID.deadlineStarted, "deadlineStarted", app,
                "has \(time.timeSpan) for \(what.rawValue)", [("GREENROOM_DEADLINE", what.rawValue)])
        case .deadlineExtended(let app, let what, let time):
            self.init(
                .info, MessageID.deadlineExtended, "deadlineExtended", app,
                "extended its deadline for \(what.rawValue) by \(time.timeSpan)",
                [("GREENROOM_DEADLINE", what.rawValue)])
        case .deadlineMet(let app, let what, let used):
            self.init(
                .debug, MessageID.deadlineMet, "deadlineMet", app,
                "kept its deadline for \(what.rawValue): \(used.timeSpan)",
                [("GREENROOM_DEADLINE", what.rawValue)])
        case .deadlineCancelled(let app, let what):
            self.init(
                .debug, MessageID.deadlineCancelled, "deadlineCancelled", app,
                "no longer has a deadline for \(what.rawValue)", [("GREENROOM_DEADLINE", what.rawValue)])
        case .deadlineMissed(let app, let what):
            self.init(
                .warning, MessageID.deadlineMissed, "deadlineMissed", app, "missed its deadline for \(what.rawValue)",
                [("GREENROOM_DEADLINE", what.rawValue)])
        case .deadlineDeferred(let app, let what, let cause):
            self.init(
                .notice, MessageID.deadlineDeferred, "deadlineDeferred", app,
                "its deadline for \(what.rawValue) starts again: \(cause.sentence)",
                [("GREENROOM_DEADLINE", what.rawValue)])
        case .ended(let receipt): self.init(receipt)
        case .memoryLevelChanged(let level, let cause):
            self.init(
                level == .normal ? .notice : .warning, MessageID.memoryLevelChanged, "memoryLevelChanged", nil,
                "memory: \(level.name)\(level == .normal ? "" : " (\(cause.rawValue))")",
                [("GREENROOM_MEMORY_LEVEL", level.name), ("GREENROOM_REASON", cause.rawValue)])
        case .taskBegan, .taskEnded, .taskRefused, .tasksExpiring: self.init(task: news)
        case .freezeTimedOut, .killTakesLong, .stoppedItself, .wakeCompleted, .relaunchScheduled:
            self.init(oddity: news)
        }
    }

    private init(task news: Report) {
        switch news {
        case .taskBegan(let app, let name):
            self.init(
                .info, MessageID.taskBegan, "taskBegan", app, "began the task “\(name)”", [("GREENROOM_TASK", name)])
        case .taskEnded(let app, let name):
            self.init(
                .info, MessageID.taskEnded, "taskEnded", app, "ended the task “\(name)”", [("GREENROOM_TASK", name)])
        case .taskRefused(let app, let name):
            self.init(
                .notice, MessageID.taskRefused, "taskRefused", app,
                "began the task “\(name)” too late: its background time is used up, or it is about to end",
                [("GREENROOM_TASK", name)])
        case .tasksExpiring(let app, let names):
            let list = names.prefix(3).map { "“\($0)”" }.joined(separator: ", ")
            let more = names.count > 3 ? " and \(names.count - 3) more" : ""
            self.init(
                .notice, MessageID.tasksExpiring, "tasksExpiring", app,
                "is about to run out of background time: \(list)\(more)",
                names.prefix(3).map { ("GREENROOM_TASK", $0) })
        default: preconditionFailure("not about a task: \(news)")
        }
    }

    private init(oddity news: Report) {
        switch news {
        case .freezeTimedOut(let app):
            self.init(
                .warning, MessageID.freezeTimedOut, "freezeTimedOut", app,
                "could not be frozen (a process of it can't be interrupted); runs on, and is tried again", [])
        case .killTakesLong(let app):
            self.init(
                .warning, MessageID.killTakesLong, "killTakesLong", app,
                "was sent SIGKILL, and processes of it are still there", [])
        case .stoppedItself(let app, let state):
            self.init(
                .notice, MessageID.stoppedItself, "stoppedItself", app, "has stopped itself while \(state.rawValue)",
                [("GREENROOM_STATE", state.rawValue)])
        case .wakeCompleted(let app, let result):
            self.init(
                .info, MessageID.wakeCompleted, "wakeCompleted", app,
                "has done what it was woken for: \(result.rawValue)",
                [("GREENROOM_REASON", result.rawValue)])
        case .relaunchScheduled(let app, let time, let deaths):
            let times = deaths > 1 ? " (ended early \(deaths) times in a row)" : ""
            self.init(
                .notice, MessageID.relaunchScheduled, "relaunchScheduled", app,
                time == .zero ? "is launched again" : "will be launched again in \(time.timeSpan)\(times)", [])
        default: preconditionFailure("not an oddity: \(news)")
        }
    }

    private init(_ receipt: Receipt) {
        let isFine = receipt.namespace == .exit && (receipt.exit == .exited(0) || receipt.pid != nil)
        self.init(
            isFine ? .notice : .warning, MessageID.ended, "ended", receipt.app,
            "\(receipt.explanation) [\(receipt.namespace.rawValue) \(receipt.codeText), receipt \(receipt.id)]",
            [
                ("GREENROOM_CODE", receipt.codeText), ("GREENROOM_NAMESPACE", receipt.namespace.rawValue),
                ("GREENROOM_RECEIPT", String(receipt.id)), ("GREENROOM_STATE", receipt.state.rawValue),
            ])
    }

    private init(
        _ priority: LogLevel, _ messageID: String, _ kind: String, _ app: AppID?, _ message: String,
        _ fields: [(name: String, value: String)]
    ) {
        self.init(
            priority: priority, messageID: messageID, kind: kind, app: app,
            message: app.map { "\($0): \(message)" } ?? message, fields: fields)
    }
}

extension DeferralCause {
    fileprivate var sentence: String {
        switch self {
        case .debuggerAttached: "a debugger is attached"
        case .daemonRestarted: "the daemon was restarted"
        }
    }
}

extension AppState {
    /// States that people look for; the others are on the way there.
    fileprivate var isWorthNotice: Bool {
        switch self {
        case .notRunning, .active, .background, .suspended: true
        case .launching, .inactive, .terminating: false
        }
    }
}

extension MemoryLevel {
    package var name: String {
        switch self {
        case .normal: "normal"
        case .warning: "warning"
        case .critical: "critical"
        }
    }

    package init?(name: String) {
        guard let level = Self.allCases.first(where: { $0.name == name }) else { return nil }
        self = level
    }
}

extension Receipt {
    /// The code as the table of codes spells it: small ones in decimal, the others in hexadecimal.
    package var codeText: String {
        code < 0x1_0000 ? String(code) : "0x" + String(code, radix: 16)
    }
}
