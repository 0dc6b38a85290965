import Glibc
import LifecycleCore
import Linux
import Manifest
import Schedule

/// Checks one file as the daemon reads it, together with its drop-ins, and compares it with the file system and the user
/// database.
struct ManifestCheck {
    /// The path as given.
    private let file: String
    /// Whether the file is for a daemon that runs as root.
    private let isForRoot: Bool
    private let specifiers: SpecifierValues

    init(_ file: String, isForRoot: Bool, _ specifiers: SpecifierValues) {
        self.file = file
        self.isForRoot = isForRoot
        self.specifiers = specifiers
    }

    func run() -> [Diagnostic] {
        // A missing file is reported as such, whatever its name is. An instance of a template needs none.
        var status = stat()
        if stat(file, &status) != 0, mainFile(file) == file {
            return [Diagnostic(.error, file, line: 0, column: 0, String(cString: strerror(errno)))]
        }
        let name = lastPart(file)
        if name == "greenroom.conf" || isDropIn(of: "greenroom.conf.d") { return checkConfiguration() }
        if let manifest = manifestOfDropIn { return checkApp(manifest) }
        return checkApp(file)
    }

    // MARK: Files of one manifest

    private func isDropIn(of folder: String) -> Bool {
        file.hasSuffix(".conf") && lastPart(folderPart(file)) == folder
    }

    /// `…/ID.app` for `…/ID.app.d/NAME.conf`.
    private var manifestOfDropIn: String? {
        let folder = folderPart(file)
        return file.hasSuffix(".conf") && folder.hasSuffix(".app.d") ? String(folder.dropLast(2)) : nil
    }

    /// The file of the template, for the path of an instance of one; `nil` for other paths.
    private func templateFile(_ path: String) -> String? {
        AppID(String(lastPart(path).dropLast(4)))?.template.map {
            (path.contains("/") ? folderPart(path) + "/" : "") + "\($0)@.app"
        }
    }

    /// The file that is read for a path: for an instance without a file its template.
    private func mainFile(_ path: String) -> String {
        guard access(path, F_OK) != 0, let template = templateFile(path), access(template, F_OK) == 0 else {
            return path
        }
        return template
    }

    /// For the file or a drop-in of a template: the instance as which it is checked.
    var sampleInstance: AppID? {
        let name = lastPart(manifestOfDropIn ?? file)
        return name.hasSuffix(".app") ? templateName(String(name.dropLast(4))).flatMap { AppID("\($0)@1") } : nil
    }

    /// The file and the drop-ins in FILE.d, in the order of their names (systemd.unit(5)); of an instance also those of its
    /// template, unless it has one of the same name. Masked drop-ins (empty, or links to /dev/null) are ignored.
    private func sources(_ main: String, _ problems: inout [Diagnostic]) -> [SourceFile] {
        // The key is the name's bytes: String compares by canonical equivalence, file systems do not.
        var dropIns: [[UInt8]: String] = [:]
        for folder in [templateFile(main), main].compactMap({ $0.map { "\($0).d" } }) {
            for name in dropInNames(folderEntries(folder)) { dropIns[Array(name.utf8)] = "\(folder)/\(name)" }
        }
        let sorted = dropIns.sorted { $0.key.lexicographicallyPrecedes($1.key) }.map(\.value)
        let paths = [mainFile(main)] + sorted.filter { !isMasked($0) }
        // One more than the daemon reads, so that the parser reports it.
        return paths.prefix(maximumSources + 1).compactMap { path in
            switch readFile(path) {
            case .success(let bytes): return SourceFile(path: path, bytes: bytes)
            case .failure(let failure):
                problems.append(Diagnostic(.error, path, line: 0, column: 0, failure.sentence))
                return nil
            }
        }
    }

    private func checkConfiguration() -> [Diagnostic] {
        var problems: [Diagnostic] = []
        let main = lastPart(file) == "greenroom.conf" ? file : String(folderPart(file).dropLast(2))
        // A drop-in may exist without the main file.
        let isAlone = main != file && access(main, F_OK) != 0
        let sources = isAlone ? sourcesAlone(&problems) : sources(main, &problems)
        guard problems.isEmpty else { return problems }
        let (configuration, diagnostics) = parseConfiguration(sources: sources, memory: machineMemory)
        guard let directory = configuration?.protectedDirectory, let problem = DirectoryKey.problem(of: directory)
        else {
            return diagnostics
        }
        let position = position(of: "ProtectedDirectory", sources)
        return diagnostics + [
            Diagnostic(
                .error, position.file, line: position.line, column: position.column,
                "ProtectedDirectory=: \(directory) cannot be protected: \(problem)")
        ]
    }

    private func sourcesAlone(_ problems: inout [Diagnostic]) -> [SourceFile] {
        switch readFile(file) {
        case .success(let bytes): return [SourceFile(path: file, bytes: bytes)]
        case .failure(let failure):
            problems = [Diagnostic(.error, file, line: 0, column: 0, failure.sentence)]
            return []
        }
    }

    private func checkApp(_ manifest: String) -> [Diagnostic] {
        let name = lastPart(manifest)
        guard name.hasSuffix(".app"), let id = AppID(String(name.dropLast(4))) ?? sampleInstance else {
            return [
                Diagnostic(
                    .error, file, line: 0, column: 0,
                    "ignored because of its name; expected ID.app with an ID of 1 to \(AppID.maximumLength) letters, "
                        + "digits, '_', '.' or '-', or with the ID of a template or an instance such as worker@ or "
                        + "worker@1, or greenroom.conf")
            ]
        }
        var problems: [Diagnostic] = []
        let sources = sources(manifest, &problems)
        guard problems.isEmpty else { return problems }
        let (parsed, diagnostics) = parseManifest(
            id: id, sources: sources, memory: machineMemory, specifiers: specifiers)
        return diagnostics + (parsed.map { checkSurroundings($0, sources) } ?? [])
    }

    // MARK: The file system and the user database

    /// Only warnings, because the manifest may be for another machine.
    private func checkSurroundings(_ manifest: AppManifest, _ sources: [SourceFile]) -> [Diagnostic] {
        var found: [Diagnostic] = []
        func warn(_ key: String, _ message: String) {
            let position = position(of: key, sources)
            found.append(
                Diagnostic(
                    .warning, position.file, line: position.line, column: position.column, "\(key)=: \(message)"))
        }
        if let program = manifest.exec.first, let problem = whyNotExecutable(program) { warn("ExecStart", problem) }
        for kind in HookKind.allCases {
            for command in manifest.hooks[kind] ?? [] {
                if let problem = command.words.first.flatMap(whyNotExecutable) { warn(kind.rawValue, problem) }
            }
        }
        for problem in manifest.timers.calendar.compactMap(\.zoneProblem) { warn("OnCalendar", problem) }
        if isForRoot, manifest.user == nil {
            warn(
                "User",
                "not set: the app runs as root, and its processes can leave its control group; expected a user, or root "
                    + "if the app needs it")
        }
        if let user = manifest.user, UInt32(user) == nil, getpwnam(user) == nil {
            warn("User", "there is no user \(user) on this machine")
        }
        let groups =
            [manifest.group.map { ("Group", $0) }].compactMap { $0 }
            + manifest.supplementaryGroups.map { ("SupplementaryGroups", $0) }
        for (key, group) in groups where UInt32(group) == nil && getgrnam(group) == nil {
            warn(key, "there is no group \(group) on this machine")
        }
        for problem in ProgramCheck(manifest, isForRoot: isForRoot).problems() { warn(problem.key, problem.message) }
        if let folder = manifest.workingDirectory, folder != "~" {
            var status = stat()
            if stat(folder, &status) != 0 {
                warn("WorkingDirectory", "\(folder): \(String(cString: strerror(errno)))")
            } else if status.st_mode & S_IFMT != S_IFDIR {
                warn("WorkingDirectory", "\(folder) is not a directory")
            }
        }
        return found
    }

    private func whyNotExecutable(_ program: String) -> String? {
        var status = stat()
        guard stat(program, &status) == 0 else { return "\(program): \(String(cString: strerror(errno)))" }
        guard status.st_mode & S_IFMT == S_IFREG else { return "\(program) is not a regular file" }
        // Not access(2): the app may run as another user.
        return status.st_mode & 0o111 == 0 ? "\(program) is not executable" : nil
    }

    /// The position of the last assignment of a key; line 0 if there is none.
    private func position(of key: String, _ sources: [SourceFile]) -> (file: String, line: Int, column: Int) {
        for source in sources.reversed() {
            let lines = source.bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
            for (index, line) in lines.enumerated().reversed() {
                let start = line.prefix { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }.count
                let rest = line.dropFirst(start)
                guard rest.starts(with: key.utf8) else { continue }
                let between = rest.dropFirst(key.utf8.count).prefix {
                    $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t")
                }
                if rest.dropFirst(key.utf8.count + between.count).first == UInt8(ascii: "=") {
                    return (source.path, index + 1, start + 1)
                }
            }
        }
        return (file, 0, 0)
    }
}

/// The memory of the machine in bytes, for percentages: the MemTotal of /proc/meminfo.
private var machineMemory: UInt64? {
    let (pages, size) = (sysconf(Int32(_SC_PHYS_PAGES)), sysconf(Int32(_SC_PAGESIZE)))
    return pages > 0 && size > 0 ? UInt64(pages) * UInt64(size) : nil
}

// MARK: Files

private func lastPart(_ path: String) -> String {
    path.lastIndex(of: "/").map { String(path[path.index(after: $0)...]) } ?? path
}

private func folderPart(_ path: String) -> String {
    path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
}

/// Reads a regular file of at most the size of a manifest.
func readFile(_ path: String) -> Result<[UInt8], Failure> {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { return .failure(Failure(String(cString: strerror(errno)))) }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
        return .failure(Failure("not a regular file"))
    }
    // One byte more than allowed, so that the parser reports it.
    let limit = SourceFile.maximumSize + 1
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 1 << 16)
    while bytes.count < limit {
        let count = read(descriptor, &chunk, chunk.count)
        if count < 0 {
            if errno == EINTR { continue }
            return .failure(Failure(String(cString: strerror(errno))))
        }
        if count == 0 { break }
        bytes += chunk.prefix(count)
    }
    return .success(bytes)
}

private func isMasked(_ path: String) -> Bool {
    var status = stat()
    guard stat(path, &status) == 0 else { return false }
    let isNull = status.st_mode & S_IFMT == S_IFCHR && status.st_rdev == nullDevice
    return isNull || (status.st_mode & S_IFMT == S_IFREG && status.st_size == 0)
}

/// The device number of /dev/null (null(4)): major 1, minor 3.
private let nullDevice: UInt = 1 << 8 | 3

func folderEntries(_ path: String) -> [String] {
    guard let folder = opendir(path) else { return [] }
    defer { closedir(folder) }
    var names: [String] = []
    while let entry = readdir(folder) {
        names.append(
            withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            })
    }
    return names
}
