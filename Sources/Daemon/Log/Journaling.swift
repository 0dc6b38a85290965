import Control
import LifecycleCore
import Reports
import Systemd

extension LogEntry {
    /// As the demo shows it.
    var change: Journal.Change? {
        switch (event.kind, event.state) {
        case ("stateChanged", let state?): Journal.Change(state: state, sentence: event.reason ?? "")
        case ("ended", _):
            Journal.Change(state: "ended", sentence: String(message.dropFirst(app.map { $0.name.count + 2 } ?? 0)))
        default: nil
        }
    }
}

extension Journal {
    /// Where entries are written, for the message at startup.
    var destination: String { usesJournald ? "log in the journal" : "log on standard error" }

    /// Logs a report of the core.
    func log(_ entry: LogEntry) {
        var fields = entry.fields
        fields.append(("MESSAGE_ID", entry.messageID))
        if let app = entry.app { fields.append(("GREENROOM_APP", app.name)) }
        log(entry.priority, entry.message, fields: fields, change: entry.change)
    }

    /// Logs a message of the daemon itself.
    func log(_ priority: LogLevel, _ messageID: String, app: AppID? = nil, _ sentence: String) {
        var fields = [("MESSAGE_ID", messageID)]
        if let app { fields.append(("GREENROOM_APP", app.name)) }
        log(priority, app.map { "\($0): \(sentence)" } ?? sentence, fields: fields)
    }

    /// Logs that something failed, or was refused, and the daemon continues.
    func logWarning(_ sentence: String, app: AppID? = nil) {
        log(.warning, MessageID.warning, app: app, sentence)
    }
}
