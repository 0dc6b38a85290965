import Control
import LifecycleCore
import Manifest
import Systemd

/// `Open`: gives an app a URL (L8).
extension ControlBus {
    /// Whether a URL can be passed on: to the environment of a launch, for example.
    static func isURL(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.count <= Launch.maximumURLBytes
            && text.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7f }
    }

    static let expectedURL =
        "expected 1 to \(Launch.maximumURLBytes) bytes without spaces and control characters"

    func openMethod() -> BusMethod {
        BusMethod(
            "Open", in: "ssa{sv}", out: "a{sv}", arguments: ["app", "url", "options"], results: ["result"]
        ) { [unowned self] call in self.open(call, call.text(0), call.text(1), call.options(2)) }
    }

    func openMethodOfApp() -> BusMethod {
        BusMethod("Open", in: "sa{sv}", out: "a{sv}", arguments: ["url", "options"], results: ["result"]) {
            [unowned self] call in self.open(call, call.target.id, call.text(0), call.options(1))
        }
    }

    /// - Parameter app: empty: the app whose manifest has the scheme of the URL.
    private func open(_ call: MethodCall, _ app: String, _ url: String, _ options: [(String, Variant)]) {
        // A later release may have some: they would change what the caller expects.
        if let option = options.first?.0 { return invalid(call, "Unknown option '\(option)'; expected none.") }
        guard Self.isURL(url) else { return invalid(call, "Invalid URL; \(Self.expectedURL).") }
        guard app.isEmpty else { return request(call, app, .open(url: url)) }
        service.whenStarted(call) { [self] in
            do throws(BusError) {
                request(call, try handler(of: url).name, .open(url: url))
            } catch {
                call.fail(error)
            }
        }
    }

    /// The app that opens URLs of this scheme (`URLSchemes=`): the only one, or of several the last of `DefaultHandlers=`.
    private func handler(of url: String) throws(BusError) -> AppID {
        guard let scheme = URLScheme.of(url) else {
            throw ControlNames.Failure.invalidArgument.error(
                "The URL names no scheme, such as 'mailto:', so the app must be named.")
        }
        let library = service.library
        let found = library.ids.filter { library.manifests[$0]?.urlSchemes.contains(scheme) ?? false }
        guard let first = found.first else {
            throw ControlNames.Failure.noHandler.error(
                "No app opens URLs of the scheme '\(scheme)' (URLSchemes= in a manifest).")
        }
        guard found.count > 1 else { return first }
        let chosen = library.configuration.defaultHandlers.last { $0.scheme == scheme && found.contains($0.app) }
        guard let chosen else {
            let most = 8
            let more = found.count > most ? " and \(found.count - most) more" : ""
            let names = found.prefix(most).map { "'\($0)'" }.joined(separator: ", ")
            throw ControlNames.Failure.severalHandlers.error(
                "Several apps open URLs of the scheme '\(scheme)': \(names)\(more); name one of them, or set "
                    + "DefaultHandlers= in greenroom.conf.")
        }
        return chosen.app
    }
}
