import Glibc
import JSON
import LifecycleCore
import Manifest
import Posix

/// `init`: creates the manifest of a program.
extension Session {
    func initialize() throws(Failure) -> Int32 {
        // A template is checked as one of its instances.
        let name = operands.first ?? ""
        guard let id = AppID(templateName(name) == nil ? name : name + "1") else {
            throw Failure("init: invalid app ID")
        }
        let text = try manifest(of: id, named: name, Array(operands.dropFirst()), Self.typeComment + Self.workerComment)
        let folders = try manifestFolders()
        let folder = folders.apps
        let path = "\(folder)/\(name).app"
        let entry =
            try urlSchemes.isEmpty ? nil : DesktopEntry(id, urlSchemes, in: applicationsFolder(), call: daemonCall())
        try createFolders(folder)
        try create(path, text, of: name)
        if let entry {
            do throws(Failure) {
                try createFolders(entry.folder)
                try create(entry.path, entry.text, of: name)
            } catch {
                // Both or neither.
                unlink(path)
                throw error
            }
        }
        guard !wantsJSON else {
            let more = entry.map { [("desktopEntry", JSONValue.string($0.path))] } ?? []
            try show(.object([("app", .string(name)), ("path", .string(path))] + more))
            return 0
        }
        show(note: folders.note)
        try show("Created \(escaped(path)).\n")
        if let entry { try show("Created \(escaped(entry.path)):\n\(entry.text)") }
        let user = isForRoot ? "set User= in it, " : ""
        let next =
            "Next: \(user)check it with 'greenroomctl verify \(escaped(path))', then run '\(command("reload"))' and "
            + "'\(command("launch \(id)"))'."
        let index = entry.map { "Desktops find it after: update-desktop-database \(escaped($0.folder))" }
        let lines = [next, index].compactMap { $0 }.flatMap { (line) in
            screen.width.map { wrapped(line, to: $0) } ?? [line]
        }
        try show(lines.joined(separator: "\n") + "\n")
        return 0
    }

    // MARK: URLs

    /// The schemes of `--url-scheme`, in lower case.
    private var urlSchemes: [String] {
        (invocation.options[.urlScheme] ?? "").split(separator: ",").compactMap { URLScheme.normalized($0) }
    }

    /// Where desktops look for entries of this user, or of all users.
    private func applicationsFolder() throws(Failure) -> String {
        if isForRoot { return "/usr/local/share/applications" }
        let parent = environment.folder("XDG_DATA_HOME") ?? environment.folder("HOME").map { $0 + "/.local/share" }
        guard let parent else { throw Failure("Neither XDG_DATA_HOME nor HOME is set; use --system.") }
        return parent + "/applications"
    }

    /// The call of greenroomctl for the same daemon by any user.
    ///
    /// - Throws: if the path of its runtime folder cannot stand in a desktop entry without quotes, which have rules of their own there.
    private func daemonCall() throws(Failure) -> String {
        if let given = invocation.options[.runtime] {
            let path = environment.absolutePath(given)
            guard !path.contains("%"), shellQuoted(path) == path else {
                throw Failure("init: a desktop entry cannot name the folder '\(escaped(path))'.")
            }
            return "greenroomctl --runtime \(path)"
        }
        return isForRoot ? "greenroomctl --system" : environment.isRoot ? "greenroomctl --user" : "greenroomctl"
    }

    // MARK: The text

    /// The default is right for every program. What the program itself does is not known here: a wrong `Type=` would let each launch miss
    /// its deadline.
    private static let typeComment = """
        # The launch is complete when the program is executed (simple, the default), sends READY=1 (notify) or listens (listening).
        #Type=simple

        """

    /// A program that listens by itself needs no more. For one that takes the daemon's socket its address is needed, which is not known here.
    private static let workerComment = """
        # A server without windows is a worker: it is ready when it listens, is suspended while it is idle, and input wakes it
        # (greenroom-workers(7)). ListenStream= in [Wake] also lets a connection launch it, if it can take the socket (LISTEN_FDS=).
        #Type=listening
        #Role=worker

        """

    private var verb: String { invocation.verb.rawValue }

    /// - Parameters:
    ///   - id: of the app, or of an instance of the template.
    ///   - name: of the app or the template.
    ///   - more: further settings of the section `[App]`, and sections after it.
    func manifest(
        of id: AppID, named name: String, _ command: [String], _ more: String = ""
    ) throws(Failure) -> String {
        let isTemplate = id.name != name
        var words = command
        words[0] = try program(command[0])
        let quoted = try words.map { (word) throws(Failure) in try self.quoted(word, keepingSpecifiers: isTemplate) }
        var text = """
            # greenroom.app(5) describes all settings.
            [App]
            Name=\(isTemplate ? "%N" : name)
            ExecStart=\(quoted.joined(separator: " "))

            """
        if !urlSchemes.isEmpty { text += "URLSchemes=\(urlSchemes.joined(separator: " "))\n" }
        if isForRoot { text += "# The app runs as root unless a user is set.\n#User=\n" }
        text += more
        let source = SourceFile(path: "\(name).app", bytes: Array(text.utf8))
        let (parsed, diagnostics) = parseManifest(
            id: id, sources: [source], memory: nil,
            specifiers: SpecifierValues(isForRoot: isForRoot, environment, .read()))
        guard let parsed, isTemplate || parsed.exec == words else {
            let reason = diagnostics.first.map { ": \(escaped($0.message))" } ?? ""
            throw Failure("\(verb): this command cannot be written into a manifest\(reason)")
        }
        return text
    }

    /// The path of a program; a name without a slash is looked for in PATH.
    private func program(_ name: String) throws(Failure) -> String {
        if name.contains("/") {
            let path = environment.absolutePath(name)
            guard isExecutable(path) else { throw Failure("\(verb): '\(escaped(path))' is not an executable file") }
            return path
        }
        let folders = (environment.variable("PATH") ?? "/usr/local/bin:/usr/bin:/bin").split(separator: ":")
        for folder in folders where folder.hasPrefix("/") && isExecutable("\(folder)/\(name)") {
            return "\(folder)/\(name)"
        }
        throw Failure("\(verb): there is no program '\(escaped(name))' in PATH")
    }

    private func isExecutable(_ path: String) -> Bool {
        var about = stat()
        return stat(path, &about) == 0 && about.st_mode & S_IFMT == S_IFREG && about.st_mode & 0o111 != 0
    }

    /// A word of `ExecStart=`: quoted where it needs to be, without variables (systemd.service(5)), and without specifiers
    /// except for a template.
    func quoted(_ word: String, keepingSpecifiers: Bool) throws(Failure) -> String {
        let plain = keepingSpecifiers ? "+,-./:=@_%" : "+,-./:=@_"
        if !word.isEmpty, word.unicodeScalars.allSatisfy({ isPlain($0) || plain.unicodeScalars.contains($0) }) {
            return word
        }
        var result = "\""
        for scalar in word.unicodeScalars {
            switch scalar {
            case "\"", "\\": result += "\\\(scalar)"
            case "%" where !keepingSpecifiers: result += "%%"
            case "$": result += "$$"
            case "\n": result += "\\n"
            case "\t": result += "\\t"
            case _ where scalar.value < 0x20 || scalar.value == 0x7F:
                throw Failure("\(verb): the command contains a control character")
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }

    private func isPlain(_ scalar: Unicode.Scalar) -> Bool {
        scalar.isASCII && (scalar.properties.isAlphabetic || ("0"..."9").contains(scalar))
    }

    // MARK: The file

    func createFolders(_ path: String) throws(Failure) {
        var folder = ""
        for name in path.split(separator: "/") {
            folder += "/\(name)"
            guard mkdir(folder, 0o755) != 0, errno != EEXIST else { continue }
            // An existing folder on a file system that is read-only, for example.
            let reason = String(cString: strerror(errno))
            if access(folder, F_OK) != 0 { throw Failure("Cannot create \(escaped(folder)): \(reason)") }
        }
    }

    /// Creates a file that does not exist yet, as a whole.
    /// - Parameter app: the name of the app, for what to do if the file exists.
    func create(_ path: String, _ text: String, of app: String) throws(Failure) {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else {
            if errno == EEXIST {
                throw Failure(
                    "\(escaped(path)) already exists.",
                    hint: "To change it: \(command("edit \(app)"))")
            }
            throw Failure("Cannot create \(escaped(path)): \(String(cString: strerror(errno)))")
        }
        defer { close(descriptor) }
        do throws(Failure) {
            try write(text, to: descriptor)
        } catch {
            unlink(path)
            throw error
        }
    }
}
