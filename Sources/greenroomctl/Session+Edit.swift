import Control
import Glibc
import JSON
import LifecycleCore
import Linux
import Manifest
import Posix
import Systemd

/// `edit`: opens a manifest in an editor, and writes it only if it is valid, as `systemctl edit --full` and visudo(8) do.
extension Session {
    func edit() throws(Failure) -> Int32 {
        let name = operands[0]
        let file = try EditedFile(name, try manifestFolders(), self)
        show(note: file.note)
        let copy = try EditedCopy(file)
        guard try editUntilValid(copy, file) else {
            copy.remove()
            try wantsJSON ? show(document(name, file, changed: false)) : show("\(escaped(file.path)): not changed.\n")
            return 0
        }
        do throws(Failure) {
            try file.replace(with: try copy.read(), createFolders)
        } catch {
            throw copy.kept(error)
        }
        copy.remove()
        try wantsJSON ? show(document(name, file, changed: true)) : show("Wrote \(escaped(file.path)).\n")
        return try reloadAfterEdit()
    }

    private func document(_ name: String, _ file: EditedFile, changed: Bool) -> JSONValue {
        .object([("app", .string(name)), ("path", .string(file.path)), ("changed", .bool(changed))])
    }

    /// Runs the editor until the copy has no errors.
    /// - Returns: whether the copy differs from the file.
    /// - Throws: if the user gives up, or cannot be asked. The copy is kept.
    private func editUntilValid(_ copy: EditedCopy, _ file: EditedFile) throws(Failure) -> Bool {
        let editor = self.editor
        while true {
            do throws(Failure) {
                try run(editor, copy.path)
            } catch {
                if try copy.read() == file.bytes { copy.remove() }
                throw error
            }
            let text = try copy.read()
            if text == file.bytes { return false }
            // An empty file would mask the app.
            guard !text.allSatisfy({ $0 == 0x20 || $0 == 0x0A }) else {
                throw copy.kept(Failure("The file is empty, which would mask the app; it was not written."))
            }
            let found = copy.diagnostics(
                isForRoot: isForRoot, SpecifierValues(isForRoot: isForRoot, environment, .read()))
            for diagnostic in found { try write(line(copy.named(diagnostic)), to: STDERR_FILENO) }
            guard found.contains(where: { $0.severity == .error }) else { return true }
            guard try asksAgain() else { throw copy.kept(Failure("\(escaped(file.path)) was not changed.")) }
        }
    }

    /// Asks whether to edit again. Without a terminal the answer is no.
    private func asksAgain() throws(Failure) -> Bool {
        guard isatty(STDIN_FILENO) == 1, !wantsJSON else { return false }
        try write("Edit again? [Y/n] ", to: STDERR_FILENO)
        guard let answer = readLine() else { return false }
        return !answer.lowercased().hasPrefix("n")
    }

    // MARK: The editor

    /// A command for the shell: that of VISUAL or EDITOR, editor(1) of Debian, or vi.
    private var editor: String {
        for name in ["VISUAL", "EDITOR"] {
            if let value = environment.variable(name), !value.allSatisfy({ $0 == " " }) { return value }
        }
        let folders = (environment.variable("PATH") ?? "/usr/local/bin:/usr/bin:/bin").split(separator: ":")
        return folders.contains { access("\($0)/editor", X_OK) == 0 } ? "editor" : "vi"
    }

    private func run(_ editor: String, _ path: String) throws(Failure) {
        // As system(3): Ctrl-C in the editor is for the editor alone.
        let earlier = [SIGINT, SIGQUIT].map { (number: $0, handler: signal($0, SIG_IGN)) }
        defer { for (number, handler) in earlier { _ = signal(number, handler) } }
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var defaults = sigset_t()
        sigemptyset(&defaults)
        for number in [SIGINT, SIGQUIT] { sigaddset(&defaults, number) }
        posix_spawnattr_setsigdefault(&attributes, &defaults)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGDEF))
        let line: [String] = ["sh", "-c", "\(editor) \"$1\"", "sh", path]
        let words = line.map { strdup($0) } + [nil]
        defer { for word in words { free(word) } }
        var (pid, status): (pid_t, Int32) = (0, 0)
        let result = posix_spawn(&pid, "/bin/sh", nil, &attributes, words, environ)
        guard result == 0 else { throw Failure("Cannot execute /bin/sh: \(String(cString: strerror(result)))") }
        while waitpid(pid, &status, 0) < 0, errno == EINTR {}
        guard status == 0 else {
            let how = status & 0x7F == 0 ? "exited with status \(status >> 8 & 0xFF)" : "was ended by a signal"
            throw Failure(
                "The editor '\(escaped(editor))' \(how); nothing was changed.",
                hint: "To choose another one, set EDITOR=.")
        }
    }

    // MARK: The daemon

    private func reloadAfterEdit() throws(Failure) -> Int32 {
        var session = self
        session.isSilent = wantsJSON
        do throws(Failure) {
            // Those about this manifest were printed before it was written.
            return try session.reload(showsWarnings: false)
        } catch {
            guard error.isOfNoServer else { throw error }
            show(note: "No greenroomd answers; it reads the manifest when it starts.")
            return 0
        }
    }
}

/// The manifest that `edit` changes.
struct EditedFile {
    /// Where the text is written.
    let path: String
    /// `ID.app`.
    let name: String
    /// The text now: of the file, or of the vendor's that it will take the place of.
    let bytes: [UInt8]
    /// The file that has the text.
    private let source: String
    /// Its drop-ins, and those of its template, as folders.
    let dropIns: [String]
    /// What the user should know before.
    private(set) var note: String?

    init(_ app: String, _ folders: ManifestFolders, _ session: Session) throws(Failure) {
        name = "\(app).app"
        let own = "\(folders.apps)/\(app).app"
        let template = AppID(app)?.template
        if let template, !isRegularFile(own), session.linkTarget(own)?.hasSuffix("\(template)@.app") ?? true {
            throw Failure(
                "edit: the instance '\(escaped(app))' has no manifest of its own.",
                hint: "To edit that of all instances: \(session.command("edit '\(template)@'"))")
        }
        note = folders.note
        let vendor = "\(folders.vendor)/\(app).app"
        if access(own, F_OK) != 0, access(vendor, F_OK) == 0 {
            source = vendor
            path = own
            note = "\(escaped(vendor)) belongs to a package; \(escaped(own)) takes its place."
        } else {
            // A link stays one: the file behind it is replaced.
            source = resolvedPath(own) ?? own
            path = source
        }
        switch readFile(source) {
        case .success(let found): bytes = found
        case .failure(let failure):
            if access(source, F_OK) != 0, errno == ENOENT {
                throw Failure(
                    "edit: there is no manifest of '\(escaped(app))': neither \(escaped(own)) nor \(escaped(vendor)) exists.",
                    hint: "To create one: \(session.command("init \(app) -- COMMAND…"))")
            }
            throw Failure("Cannot read \(escaped(source)): \(failure.sentence)")
        }
        dropIns = ([app] + (template.map { ["\($0)@"] } ?? [])).map { "\(folders.apps)/\($0).app.d" }
        try requireWritableFolder()
    }

    private var folder: String { String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)]) }

    /// Before the user has typed anything.
    private func requireWritableFolder() throws(Failure) {
        guard access(folder, F_OK) == 0, access(folder, W_OK) != 0 else { return }
        let reason = String(cString: strerror(errno))
        throw Failure("Cannot change \(escaped(path)): \(reason)", hint: geteuid() == 0 ? nil : "Try as root.")
    }

    /// Replaces the file as a whole, with the owner and the mode that it has.
    ///
    /// - Throws: if another program has changed it meanwhile.
    func replace(with text: [UInt8], _ createFolders: (String) throws(Failure) -> Void) throws(Failure) {
        guard case .success(bytes) = readFile(source) else {
            throw Failure("\(escaped(source)) was changed by another program meanwhile; it was not written.")
        }
        try createFolders(folder)
        var about = stat()
        let hasFile = stat(path, &about) == 0
        let owner = hasFile && geteuid() == 0 ? Owner(uid: about.st_uid, gid: about.st_gid) : nil
        do throws(SystemError) {
            // The folder of a new file may be a link.
            try replaceFile(
                at: resolvedPath(path) ?? "\(resolvedPath(folder) ?? folder)/\(name)", with: text,
                mode: hasFile ? about.st_mode & 0o7777 : 0o644, owner: owner, durable: true)
        } catch {
            throw Failure("Cannot write \(escaped(path)): \(SystemError.text(of: error.errno))")
        }
    }
}

/// Creates a folder that only this user can read.
/// - Parameter temporary: the value of TMPDIR; `nil`: /tmp.
/// - Returns: its path; the name begins with `prefix`.
func makeTemporaryFolder(in temporary: String?, _ prefix: String) throws(Failure) -> String {
    let parent = temporary ?? "/tmp"
    // mkdtemp(3) replaces the six X.
    var template = Array("\(parent)/\(prefix).XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else {
        let reason = String(cString: strerror(errno))
        throw Failure(
            "Cannot create a folder in \(escaped(parent))\(temporary == nil ? "" : ", which TMPDIR= names"): \(reason)",
            hint: temporary == nil ? nil : "Set TMPDIR= to a folder that you may write, or unset it for /tmp.")
    }
    return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
}

/// The copy that the editor changes, in a folder of its own.
struct EditedCopy {
    private let folder: String
    private let name: String
    var path: String { "\(folder)/\(name)" }

    init(_ file: EditedFile) throws(Failure) {
        name = file.name
        let temporary = getenv("TMPDIR").map { String(cString: $0) }.flatMap { $0.hasPrefix("/") ? $0 : nil }
        folder = try makeTemporaryFolder(in: temporary, "greenroomctl-edit")
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw Failure("Cannot create \(escaped(path)): \(String(cString: strerror(errno)))")
        }
        defer { close(descriptor) }
        try write(file.bytes[...], to: descriptor)
        // The drop-ins are checked with it.
        for path in file.dropIns where access(path, F_OK) == 0 {
            symlink(path, "\(folder)/\(path.split(separator: "/").last ?? "")")
        }
    }

    func read() throws(Failure) -> [UInt8] {
        switch readFile(path) {
        case .success(let bytes): return bytes
        case .failure(let failure): throw Failure("Cannot read \(escaped(path)): \(failure.sentence)")
        }
    }

    func diagnostics(isForRoot: Bool, _ specifiers: SpecifierValues) -> [Diagnostic] {
        ManifestCheck(path, isForRoot: isForRoot, specifiers).run()
    }

    /// With the name of the file, instead of the path of the copy.
    func named(_ diagnostic: Diagnostic) -> Diagnostic {
        let file = diagnostic.file == path ? name : diagnostic.file
        return Diagnostic(
            diagnostic.severity, file, line: diagnostic.line, column: diagnostic.column, diagnostic.message)
    }

    /// The same failure, with where the user's text is.
    func kept(_ failure: Failure) -> Failure {
        var failure = failure
        failure.hint = "Your text is in \(escaped(path))"
        return failure
    }

    func remove() {
        for entry in folderEntries(folder) where entry != "." && entry != ".." { unlink("\(folder)/\(entry)") }
        rmdir(folder)
    }
}

/// Whether a path is a regular file, and no link to one.
private func isRegularFile(_ path: String) -> Bool {
    var about = stat()
    return lstat(path, &about) == 0 && about.st_mode & S_IFMT == S_IFREG
}

/// A path without symbolic links; `nil` if there is no such file.
func resolvedPath(_ path: String) -> String? {
    guard let found = realpath(path, nil) else { return nil }
    defer { free(found) }
    return String(cString: found)
}
