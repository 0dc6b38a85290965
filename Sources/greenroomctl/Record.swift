package import JSON

/// A record of the daemon's (an app, a receipt, a piece of news) with the contract's keys. All text that comes out is fit for
/// a terminal; a key that is absent or of another type is `nil`.
package struct Record {
    package let json: JSONValue

    package init(_ json: JSONValue) {
        self.json = json
    }

    func text(_ key: String) -> String? {
        json[key]?.stringValue.map(escaped)
    }

    func integer(_ key: String) -> Int64? { json[key]?.integerValue }
    func seconds(_ key: String) -> Double? { json[key]?.numberValue }
    func flag(_ key: String) -> Bool { json[key]?.boolValue ?? false }

    func record(_ key: String) -> Record? {
        guard let value = json[key], value.objectValue != nil else { return nil }
        return Record(value)
    }

    func records(_ key: String) -> [Record] {
        (json[key]?.arrayValue ?? []).map { Record($0) }
    }

    func texts(_ key: String) -> [String] {
        (json[key]?.arrayValue ?? []).compactMap(\.stringValue).map(escaped)
    }

    /// An instant, for `when(_:)`.
    func moment(_ key: String) -> Moment? { json[key]?.stringValue.flatMap { Moment($0) } }

    // MARK: What most records have

    var id: String { text("id") ?? "?" }
    var state: String { text("state") ?? "?" }
    var isNotRunning: Bool { json["state"]?.stringValue == "notRunning" }
}

/// How people say what a deadline is for; it follows “3.2s left”.
func purpose(_ what: String) -> String {
    switch what {
    case "launch": "to finish launching"
    case "background": "to enter the background"
    case "terminate": "to end"
    case "backgroundTime": "of background time"
    case "wake": "to complete what it was woken for"
    case "watchdog": "to the next heartbeat"
    case "resume": "to run again"
    default: "for \(what)"
    }
}

/// “ended while launching”.
func whileIn(_ state: String) -> String {
    switch state {
    case "background": "in the background"
    case "notRunning": "before it ran"
    default: "while \(state)"
    }
}
