import Control
import LifecycleCore
import Manifest
import Systemd

/// What is said about apps that do not exist.
extension ControlService {
    func unknownApp(_ name: String) -> BusError { ControlNames.Failure.unknownApp.error(whyUnknown(name)) }

    private func whyUnknown(_ name: String) -> String {
        guard let id = AppID(name) else { return whyInvalid(name) }
        if let error = library.broken[id] { return "App '\(name)' is disabled by an error in its manifest: \(error)" }
        if let path = library.unreadManifest(of: id) {
            return "There is no app '\(name)' yet: \(path) was created after the manifests were read. "
                + "Run 'greenroomctl reload'."
        }
        if library.isMasked(id) { return "App '\(name)' is masked by an empty manifest or a link to /dev/null." }
        if let template = id.template { return whyNoInstance(name, template) }
        if library.hasTemplate(name) { return isTemplate(name) }
        return "There is no app '\(name)'" + whereOrWhich(name)
    }

    private func whyNoInstance(_ name: String, _ template: String) -> String {
        if library.hasTemplate(template) {
            return "There is no instance '\(name)' now. 'greenroomctl launch \(name)' creates it from the template "
                + "'\(template)@'."
        }
        if let path = library.unreadTemplate(template) {
            return "There is no template '\(template)@' yet: \(path) was created after the manifests were read. "
                + "Run 'greenroomctl reload'."
        }
        return "There is no app '\(name)' and no template '\(template)@'" + whereOrWhich(name)
    }

    /// The end of a sentence that a name is unknown: a similar name; without one, where manifests are looked for.
    private func whereOrWhich(_ name: String) -> String {
        if let similar = library.nearest(name) { return ". Did you mean '\(similar)'?" }
        let folders = [context.folders.config, context.folders.vendor].map { $0 + "/apps" }
        return " in \(folders.joined(separator: " or "))."
    }

    private func isTemplate(_ template: String) -> String {
        "'\(template)@' is a template; name an instance of it, such as '\(template)@1'."
    }

    private func whyInvalid(_ name: String) -> String {
        if let template = templateName(name) {
            return library.hasTemplate(template)
                ? isTemplate(template) : "There is no template '\(name)'" + whereOrWhich(name)
        }
        let shown = "'\(name.prefix(64))\(name.count > 64 ? "…" : "")'"
        let length = name.utf8.count
        if length > AppID.maximumLength {
            return "\(shown) is not a valid app ID: it has \(length) bytes; the limit is \(AppID.maximumLength)."
        }
        let at = name.utf8.firstIndex(of: UInt8(ascii: "@"))
        if let at, templateName(String(name[...at])) != nil {
            return
                "\(shown) is not a valid app ID: the name of an instance has letters, digits, '_', '.', '-', ':' and "
                + "'\\'; systemd-escape(1) makes one of any text."
        }
        return
            "\(shown) is not a valid app ID: an ID has 1 to \(AppID.maximumLength) letters, digits, '_', '.' or '-', and "
            + "does not start with '.'."
    }

    /// - Parameter attempt: what was refused, for the sentence: "launch 'worker@1'".
    func error(_ problem: InstanceProblem, creating id: AppID, _ attempt: String) -> BusError {
        switch problem {
        case .noTemplate: unknownApp(id.name)
        case .error(let sentence):
            ControlNames.Failure.unknownApp.error("Cannot \(attempt): an error in its template: \(sentence)")
        case .tooMany(let limit):
            ControlNames.Failure.tooMany.error("Cannot \(attempt): there are \(limit) apps, which is the limit.")
        }
    }
}
