import Control
import LifecycleCore
import Manifest

/// `run --keep`: the command has a manifest from then on, so that the daemon can launch it without its caller.
extension Session {
    /// Writes the manifest of the command, unless it is there already, and has the daemon read it.
    ///
    /// - Throws: if the app has another manifest. Nothing is executed then.
    func createManifestOfRun() throws(Failure) {
        let name = invocation.options[.name] ?? String(operands[0].split(separator: "/").last ?? "")
        guard let id = AppID(name), id.template == nil else {
            throw Failure(
                "run: '\(escaped(name))' cannot be the name of an app.", hint: "To choose another one: --name NAME")
        }
        let text = try manifest(of: id, named: name, operands, try keptSettings())
        let folders = try manifestFolders()
        let path = "\(folders.apps)/\(name).app"
        if case .success(Array(text.utf8)) = readFile(path) { return }
        try createFolders(folders.apps)
        try create(path, text, of: name)
        guard !invocation.has(.quiet) else { return try reloadForKept() }
        show(note: folders.note)
        show(note: "Created \(escaped(path)); '\(command("launch \(name)"))' launches it as an app.")
        try reloadForKept()
    }

    /// The settings of `-p` in their sections, after those that each command of `run` has.
    private func keptSettings() throws(Failure) -> String {
        // The working directory of the command is the caller's.
        let folder = environment.absolutePath(".")
        let directory = try quoted(folder, keepingSpecifiers: false)
        guard directory == folder else {
            throw Failure("run: the working directory '\(escaped(folder))' cannot be written into a manifest.")
        }
        var text = "WorkingDirectory=\(folder)\n" + RunSettings.common
        for setting in invocation.settings {
            switch RunSettings.section(of: setting) {
            case .success(let section): text += "[\(section)]\n\(setting)\n"
            case .failure(let problem): throw Failure("run: \(escaped(problem.description))")
            }
        }
        return text
    }

    /// Standard output is the command's.
    private func reloadForKept() throws(Failure) {
        var session = self
        session.isSilent = true
        do throws(Failure) {
            _ = try session.reload(showsWarnings: false)
        } catch {
            guard error.isOfNoServer else { throw error }
        }
    }
}
