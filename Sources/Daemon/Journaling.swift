import LifecycleCore
import Systemd

extension Journal {
    /// News of the core.
    func log(_ entry: ChronicleEntry) {
        var fields = entry.fields
        fields.append(("MESSAGE_ID", entry.messageID))
        if let app = entry.app { fields.append(("GREENROOM_APP", app.name)) }
        log(entry.priority.level, entry.message, fields: fields)
    }

    /// News of the daemon itself.
    func log(_ priority: ChronicleEntry.Priority, _ messageID: String, app: AppID? = nil, _ sentence: String) {
        var fields = [("MESSAGE_ID", messageID)]
        if let app { fields.append(("GREENROOM_APP", app.name)) }
        log(priority.level, app.map { "\($0): \(sentence)" } ?? sentence, fields: fields)
    }
}

extension ChronicleEntry.Priority {
    var level: Journal.Level {
        switch self {
        case .error: .error
        case .warning: .warning
        case .notice: .notice
        case .info: .info
        case .debug: .debug
        }
    }
}
