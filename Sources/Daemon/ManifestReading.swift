import Glibc
import LifecycleCore
import Linux
import Manifest
import Posix
import Systemd

/// An error or a warning about the files.
struct ManifestFinding {
    /// Without its severity, which the log carries as a level.
    let logged: String
    /// With its severity, as compilers print it: for the answer to a reload.
    let reported: String

    init(_ diagnostic: Diagnostic) {
        logged = diagnostic.sentence
        reported = diagnostic.description
    }

    /// - Parameter sentence: about several files, or with the path in it.
    init(_ severity: Diagnostic.Severity, _ sentence: String) {
        logged = sentence
        reported = "\(severity.rawValue): \(sentence)"
    }
}

/// Reads all manifests and the configuration in steps: 10,000 files take some 500 ms. What was read before stays in effect
/// until `ManifestLibrary.adopt`.
final class ManifestReading {
    private(set) var manifests: [AppID: AppManifest] = [:]
    /// The apps of `manifests`, sorted.
    private(set) var ids: [AppID] = []
    /// Apps that had a manifest before and have none now, sorted.
    private(set) var gone: [AppID] = []
    private(set) var broken: [AppID: String] = [:]
    /// The files of all apps, also of the broken ones.
    private(set) var appFiles: [AppID: ManifestFiles] = [:]
    private(set) var errors: [ManifestFinding] = []
    private(set) var warnings: [ManifestFinding] = []
    /// `nil`: the configuration has an error.
    private(set) var configuration: ManagerConfiguration?
    /// The machine's memory in bytes, for percentages; `nil`: unknown.
    private let memory = try? MemoryInfoReader().read().total
    private let specifiers: SpecifierValues
    private let folders: Folders
    private var files: AppFiles
    private var part = Part.vendor
    /// The folder whose names are being read.
    private var reader: FolderReader?
    /// Drop-in folders that are still to be listed.
    private var dropIns: ArraySlice<(name: String, isVendor: Bool)> = []
    /// Files that may be masks, in either folder.
    private var unchecked: [(path: String, isVendor: Bool)] = []
    private var sort = StepwiseSort<AppID>([])
    private var unselected: ArraySlice<AppID> = []
    /// The apps that are read, and how many have a manifest.
    private var selected: [(id: AppID, paths: [String])] = []
    private var selectedCount = 0
    private var firstIgnored: AppID?
    private var ignoredCount = 0
    /// The position in `selected` of the next app.
    private var next = 0
    private var previous: ArraySlice<AppID>
    /// Folders of root's daemon to check for other users' write access.
    private var uncheckedFolders: ArraySlice<String> = []
    private var unsafeCount = 0
    /// Apps with `Role=home`, in order.
    private var homes: [AppID] = []

    /// The parts of the work, in order.
    private enum Part { case vendor, config, dropIns, masks, sort, selection, access, apps, configuration, comparison }

    /// The most files that are reported as ignored because of their names.
    private static let maximumIgnored = 10

    /// How many files a step examines: about 5 µs each.
    private static let step = 64

    /// - Parameter previous: the apps that have a manifest so far, sorted.
    init(folders: Folders, previous: [AppID]) {
        self.folders = folders
        self.previous = previous[...]
        specifiers = SpecifierValues(folders: folders, machine: .read())
        files = AppFiles(vendor: FolderListing(path: folders.vendor), config: FolderListing(path: folders.config))
        reader = Self.open(folders.vendor + "/apps")
    }

    /// A folder that does not exist is empty.
    private static func open(_ folder: String) -> FolderReader? { try? FolderReader(folder) }
    private static func names(_ folder: String) -> [String] { ((try? folderEntries(at: folder)) ?? []).sorted() }

    /// Reads the next file, or does a part of what is between.
    /// - Returns: whether there is more to read.
    func advance() -> Bool {
        switch part {
        case .vendor, .config: if !list() { endList() }
        case .dropIns: if !listDropIns() { part = .masks }
        case .masks: if !findMasks() { part = .sort }
        case .sort: if !sort.advance() { beginSelection() }
        case .selection: if !select() { endSelection() }
        case .access: if !warnUnsafe() { (next, part) = (0, .apps) }
        case .apps:
            if !readNextApp() {
                warnAboutHomes()
                part = .configuration
            }
        case .configuration:
            readConfiguration()
            part = .comparison
        case .comparison: return compare()
        }
        return true
    }

    // MARK: Files. Each step returns whether there is more of its part.

    private func list() -> Bool {
        guard let reader, let names = try? reader.next(Self.step) else { return false }
        let isVendor = part == .vendor
        let folder = (isVendor ? files.vendor.path : files.config.path) + "/apps/"
        for name in names {
            if name.hasSuffix(".app.d") { dropIns.append((name, isVendor)) }
            let isManifest = isVendor ? files.vendor.addManifest(file: name) : files.config.addManifest(file: name)
            if isManifest { unchecked.append((folder + name, isVendor)) } else { warnIfIgnored(folder, name) }
        }
        return !reader.isAtEnd
    }

    /// Warns about a file that is meant to be a manifest, but whose name has no valid ID. Names that start with a dot are hidden
    /// files, such as the lock files of editors.
    private func warnIfIgnored(_ folder: String, _ name: String) {
        guard name.hasSuffix(".app"), !name.hasPrefix("."), ignoredCount < Self.maximumIgnored else { return }
        ignoredCount += 1
        let message =
            "ignored because of its name; expected ID.app with an ID of 1 to \(AppID.maximumLength) letters, digits, '_', "
            + "'.' or '-', or with the ID of a template or an instance such as worker@ or worker@1"
        warnings.append(ManifestFinding(Diagnostic(.warning, folder + name, line: 0, column: 0, message)))
    }

    private func endList() {
        if part == .vendor {
            files.vendor = listConfiguration(files.vendor, isVendor: true)
            reader = Self.open(folders.config + "/apps")
            part = .config
        } else {
            files.config = listConfiguration(files.config, isVendor: false)
            reader = nil
            part = .dropIns
        }
    }

    private func listConfiguration(_ listing: FolderListing, isVendor: Bool) -> FolderListing {
        var listing = listing
        let folder = listing.path
        listing.hasConfiguration = exists(at: folder + "/greenroom.conf")
        listing.configurationDropIns = Self.names(folder + "/greenroom.conf.d")
        if listing.hasConfiguration { unchecked.append((folder + "/greenroom.conf", isVendor)) }
        unchecked += listing.configurationDropIns.map { (folder + "/greenroom.conf.d/" + $0, isVendor) }
        return listing
    }

    private func listDropIns() -> Bool {
        guard let (name, isVendor) = dropIns.popFirst() else { return false }
        let folder = (isVendor ? files.vendor.path : files.config.path) + "/apps/" + name
        let names = Self.names(folder)
        if isVendor { files.vendor.dropIns[name] = names } else { files.config.dropIns[name] = names }
        unchecked += names.map { (folder + "/" + $0, isVendor) }
        return true
    }

    /// A file that is empty, or a link to /dev/null, masks the vendor's file of the same name.
    private func findMasks() -> Bool {
        for (path, isVendor) in unchecked.suffix(Self.step) where isEmptyOrNull(at: path) {
            if isVendor { files.vendor.masked.insert(path) } else { files.config.masked.insert(path) }
        }
        unchecked.removeLast(min(Self.step, unchecked.count))
        if !unchecked.isEmpty { return true }
        sort = StepwiseSort(Array(files.vendor.apps.union(files.config.apps)))
        return false
    }

    private func beginSelection() {
        unselected = sort.elements[...]
        sort = StepwiseSort([])
        part = .selection
    }

    private func select() -> Bool {
        for id in unselected.prefix(Self.step) {
            guard let paths = files.files(of: id) else { continue }
            selectedCount += 1
            if selected.count < ManifestLibrary.maximumApps {
                selected.append((id, paths))
            } else if firstIgnored == nil {
                firstIgnored = id
            }
        }
        unselected = unselected.dropFirst(Self.step)
        return !unselected.isEmpty
    }

    private func endSelection() {
        if let firstIgnored {
            let sentence =
                "\(folders.config)/apps: \(selectedCount) apps; the limit is \(ManifestLibrary.maximumApps): "
                + "\(firstIgnored) and the apps after it are ignored"
            errors.append(ManifestFinding(.error, sentence))
        }
        part = .apps
        guard geteuid() == 0 else { return }
        uncheckedFolders = folderPaths[...]
        part = .access
    }

    private func readNextApp() -> Bool {
        guard next < selected.count else { return false }
        let (id, paths) = selected[next]
        // Released here: all of them at once, with this object, would take some milliseconds.
        selected[next].paths = []
        next += 1
        readApp(id, paths)
        return true
    }

    /// Finds the apps that had a manifest before.
    private func compare() -> Bool {
        gone += previous.prefix(Self.step).filter { manifests[$0] == nil }
        previous = previous.dropFirst(Self.step)
        return !previous.isEmpty
    }

    private func readApp(_ id: AppID, _ paths: [String]) {
        appFiles[id] = ManifestFiles(of: id, paths, in: folders)
        do {
            let sources = try paths.map(source)
            var (manifest, diagnostics) = parseManifest(
                id: id, sources: sources, memory: memory, specifiers: specifiers)
            if !diagnostics.isEmpty, let protected = Self.protected(sources) {
                (manifest, diagnostics) = parseManifest(
                    id: id, sources: protected, memory: memory, specifiers: specifiers)
            }
            append(diagnostics)
            manifests[id] = manifest
            if manifest?.policy.role == .home { homes.append(id) }
            if manifest != nil {
                ids.append(id)
            } else {
                broken[id] = diagnostics.first { $0.severity == .error }?.sentence ?? "it cannot be read"
            }
        } catch {
            broken[id] = "\(error)"
            errors.append(ManifestFinding(.error, "\(error)"))
        }
    }

    /// Only one app can be the home app: the first by its ID, as in the core.
    private func warnAboutHomes() {
        guard let home = homes.first, homes.count > 1 else { return }
        let others = homes.dropFirst().prefix(3).map(\.name).joined(separator: ", ")
        let more = homes.count > 4 ? " and \(homes.count - 4) more" : ""
        let sentence =
            "Role=home: several apps have it; \(home) is the home app, the others are ordinary apps: \(others)\(more)"
        warnings.append(ManifestFinding(.warning, sentence))
    }

    private func readConfiguration() {
        do {
            let sources = try files.configuration.map(source)
            var (parsed, diagnostics) = parseConfiguration(sources: sources, memory: memory)
            if !diagnostics.isEmpty, let protected = Self.protected(sources) {
                (parsed, diagnostics) = parseConfiguration(sources: protected, memory: memory)
            }
            append(diagnostics)
            configuration = parsed
        } catch {
            errors.append(ManifestFinding(.error, "\(error)"))
        }
    }

    private func append(_ diagnostics: [Diagnostic]) {
        for diagnostic in diagnostics {
            switch diagnostic.severity {
            case .error: errors.append(ManifestFinding(diagnostic))
            case .warning: warnings.append(ManifestFinding(diagnostic))
            }
        }
    }

    /// The files with those marked that not every user may read; `nil`: there is none. Every user may read the diagnostics of
    /// root's daemon, and the readers of another one's can read its files.
    private static func protected(_ sources: [SourceFile]) -> [SourceFile]? {
        guard geteuid() == 0 else { return nil }
        var sources = sources
        for index in sources.indices { sources[index].mayBeQuoted = isReadableByOthers(sources[index].path) }
        return sources.allSatisfy(\.mayBeQuoted) ? nil : sources
    }

    /// The most files and folders that are reported as not safe.
    private static let maximumUnsafe = 10

    /// Warns about files of root's daemon that other users may write to: they decide what runs as root.
    private func warnUnsafe() -> Bool {
        if !uncheckedFolders.isEmpty {
            uncheckedFolders.prefix(Self.step).forEach(warnIfUnsafe)
            uncheckedFolders = uncheckedFolders.dropFirst(Self.step)
            return true
        }
        let end = min(selected.count, next + Self.step / 4)
        for (_, paths) in selected[next..<end] { paths.forEach(warnIfUnsafe) }
        next = end
        if next < selected.count, unsafeCount < Self.maximumUnsafe { return true }
        files.configuration.forEach(warnIfUnsafe)
        return false
    }

    private func warnIfUnsafe(_ path: String) {
        guard unsafeCount < Self.maximumUnsafe, let reason = reasonToDistrust(path) else { return }
        unsafeCount += 1
        let sentence = "\(path) is not safe: \(reason), and its contents decide what greenroomd runs as root"
        warnings.append(ManifestFinding(.warning, sentence))
    }

    /// The folders in which files are found.
    private var folderPaths: [String] {
        [files.vendor, files.config].flatMap { listing in
            [listing.path, listing.path + "/apps", listing.path + "/greenroom.conf.d"]
                + listing.dropIns.keys.sorted().map { "\(listing.path)/apps/\($0)" }
        }
    }

    private func source(_ path: String) throws -> SourceFile {
        SourceFile(path: path, bytes: try readFile(at: path, limit: SourceFile.maximumSize))
    }
}
