import Control
import LifecycleCore
import Manifest
import Posix
import Systemd

/// The addresses at which push servers accept messages for apps with `UnifiedPush=yes` (L30). A program in the session of a user, such as
/// greenroom-session, registers the user's apps with a distributor, and reports addresses (`ReportPushEndpoint`) and messages
/// (`ReportPush`): the distributor is on the bus of the session.
final class PushEndpoints {
    /// In bytes (UnifiedPush, D-Bus specification, "Resources").
    static let longestEndpoint = 1000
    static let longestMessage = 4096

    let apps = SessionApps("UnifiedPush=")
    private var endpoints: [AppID: String] = [:]
    /// An app has another address, or none.
    var changed: (AppID, String?) -> Void = { _, _ in }

    subscript(app: AppID) -> String? { endpoints[app] }

    /// A manifest was read.
    func update(_ manifest: AppManifest) {
        if manifest.unifiedPush { apps.set(manifest) } else { remove(manifest.id) }
    }

    func remove(_ app: AppID) {
        apps.remove(app)
        endpoints[app] = nil
    }

    /// The property `PushApps`: of each app also its name, as a distributor shows it, of at most 100 bytes.
    var property: Variant { apps.list("(sss)") { [.string($0.name.printable(upTo: 100))] } }

    /// Handles the report of an address, and answers the call. An empty one: the app has none any more.
    func report(_ call: MethodCall) {
        let endpoint = call.text(1)
        guard endpoint.isEmpty || Self.isURL(endpoint) else {
            return call.fail(
                ControlNames.Failure.invalidArgument.error(
                    "Invalid endpoint; expected a URL of http or https with at most \(Self.longestEndpoint) bytes."))
        }
        apps.find(call) { [weak self] app in
            self?.set(endpoint.isEmpty ? nil : endpoint, of: app)
            call.reply()
        }
    }

    private func set(_ endpoint: String?, of app: AppID) {
        guard endpoints[app] != endpoint else { return }
        endpoints[app] = endpoint
        changed(app, endpoint)
    }

    private static func isURL(_ text: String) -> Bool {
        text.utf8.count <= longestEndpoint && (text.hasPrefix("https://") || text.hasPrefix("http://"))
            && text.utf8.allSatisfy { UInt8(ascii: "!")...UInt8(ascii: "~") ~= $0 }
    }

    /// The payload of a push with a message: the message, or, if it is no text, a URL that contains it (RFC 2397). An encrypted
    /// message (RFC 8291) is none.
    static func payload(_ message: [UInt8]) -> String {
        if !message.contains(0), let text = String(validating: message, as: UTF8.self) { return text }
        return Notification.dataPrefix + base64(message)
    }

    /// RFC 4648, section 4.
    private static func base64(_ bytes: [UInt8]) -> String {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
        var text: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            let bits = group.reduce(UInt32(0)) { $0 << 8 | UInt32($1) } << (8 * (3 - group.count))
            for index in 0..<4 {
                text.append(index <= group.count ? alphabet[Int(bits >> (18 - 6 * index) & 63)] : UInt8(ascii: "="))
            }
        }
        return String(decoding: text, as: UTF8.self)
    }
}
