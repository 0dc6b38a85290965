import Control
import JSON
import Systemd

/// An event of the app, as it is printed.
struct AppEvent {
    static let kinds = EventKind.allCases.map(\.rawValue)
    static let tasksExpiring = EventKind.tasksExpiring.rawValue

    let serial: UInt64
    let kind: String
    let details: Variant

    /// `nil`: the signal is another one.
    init?(_ signal: BusSignal) {
        guard signal.interface == ControlNames.selfInterface, signal.member == "Event", signal.arguments.count == 3,
            let serial = signal.arguments[0].uintValue, let kind = signal.arguments[1].stringValue
        else { return nil }
        (self.serial, self.kind, details) = (serial, kind, signal.arguments[2])
    }

    /// `SERIAL KIND DETAILS`, for `read` of a shell. A text that may have spaces is last, and is on one line.
    var line: String { (["\(serial)", kind] + words.filter { !$0.isEmpty }).joined(separator: " ") }

    private var words: [String] {
        switch kind {
        case "openURL": [text("url")]
        case "didBecomeActive", "willResignActive": [text("cause")]
        case "didEnterBackground": [seconds("remainingSeconds")]
        case "willTerminate": [seconds("deadlineSeconds"), text("reason")]
        case "memoryWarning": [text("level")]
        case Self.tasksExpiring: [seconds("remainingSeconds", missing: "0")] + names("names")
        case "push": [number("id"), text("payload")]
        case "wake": [number("id"), text("reason")]
        case "notification": [text("kind"), text("payload")]
        case "scene": [text("scene"), text("notice"), text("reason")]
        case "didDiscardScenes": names("scenes")
        case "takeSceneSnapshot": [text("scene")]
        case "didResume": [seconds("suspendedSeconds", missing: "0")] + names("changed")
        default: []
        }
    }

    private func text(_ key: String) -> String { Self.onOneLine(details[key]?.stringValue ?? "") }

    private func number(_ key: String) -> String { details[key]?.uintValue.map { "\($0)" } ?? "0" }

    /// Whole seconds, which shells calculate with, rounded down.
    private func seconds(_ key: String, missing: String = "infinity") -> String {
        guard case .double(let value)? = details[key] else { return missing }
        return value < 1e15 ? "\(Int64(max(0, value)))" : "infinity"
    }

    func names(_ key: String) -> [String] {
        guard case .array(_, let values)? = details[key] else { return [] }
        return values.compactMap { $0.stringValue.map { Self.onOneLine($0.replacing(" ", with: "_")) } }
    }

    /// Control characters become spaces: a document in JSON stays the same one.
    private static func onOneLine(_ text: String) -> String {
        var result = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            let isControl = scalar.properties.generalCategory == .control || [0x2028, 0x2029].contains(scalar.value)
            result.append(isControl ? " " : scalar)
        }
        return String(result)
    }

    var json: JSONValue {
        .object([
            ("serial", serial.json), ("kind", .string(kind)), ("details", JSONValue(details)),
        ])
    }
}

extension JSONValue {
    /// A D-Bus value. An infinite number, which JSON does not have, is null.
    fileprivate init(_ variant: Variant) {
        switch variant {
        case .bool(let value): self = .bool(value)
        case .byte, .int16, .uint16, .int32, .uint32, .int64: self = .integer(variant.intValue ?? 0)
        case .uint64(let value): self = value.json
        case .double(let value): self = value.isFinite ? .number(value) : .null
        case .string(let value), .objectPath(let value), .signature(let value): self = .string(value)
        case .array(_, let values): self = .array(values.map { JSONValue($0) })
        case .dictionary(let entries): self = .object(entries.map { ($0, JSONValue($1)) })
        case .variant(let value): self = JSONValue(value)
        case .descriptor, .bytes, .entry, .structure: self = .null
        }
    }
}
