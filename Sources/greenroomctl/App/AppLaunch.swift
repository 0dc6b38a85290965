import Control
import JSON
import Systemd

/// Why an app was launched, and how it ended before.
struct AppLaunch {
    /// The keys of `app launch`, in their order.
    static let keys = ["app", "state", "reason", "url", "first", "summary", "end", "endCode"]

    private let answer: Variant
    private let receipt: ReceiptRecord?

    /// - Parameter answer: of `Attach`.
    init(_ answer: Variant) throws(Failure) {
        self.answer = answer
        do throws(RecordError) {
            receipt = try answer["lastReceipt"].map { (value) throws(RecordError) in
                try ReceiptRecord(variant: value)
            }
        } catch {
            throw Failure("Cannot read the last receipt: \(escaped("\(error)")).")
        }
    }

    /// A line for each key: `KEY=VALUE`.
    var lines: String { Self.keys.map { "\($0)=\(text($0))\n" }.joined() }

    /// The value of a key on one line; empty: there is none.
    func text(_ key: String) -> String {
        switch key {
        case "state": string("launchState")
        case "reason": string("launchReason")
        case "url": string("launchUrl")
        case "first": answer["firstLaunch"]?.boolValue ?? false ? "yes" : "no"
        case "summary": string("stateSummary")
        case "end": escaped(receipt?.explanation ?? "")
        case "endCode": receipt.map { escaped("\($0.namespace)/\($0.code)") } ?? ""
        default: string(key)
        }
    }

    private func string(_ key: String) -> String { escaped(answer[key]?.stringValue ?? "") }

    /// - Parameter key: only this one.
    func json(_ key: String?) -> JSONValue {
        let keys = key.map { [$0] } ?? Self.keys.filter { $0 != "endCode" }
        return .object(keys.map { ($0, value($0)) })
    }

    private func value(_ key: String) -> JSONValue {
        switch key {
        case "first": .bool(answer["firstLaunch"]?.boolValue ?? false)
        case "end": receipt?.json ?? .null
        case "url": answer["launchUrl"]?.stringValue.map { .string($0) } ?? .null
        case "summary": answer["stateSummary"]?.stringValue.map { .string($0) } ?? .null
        default: .string(text(key))
        }
    }
}
