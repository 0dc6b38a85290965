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
    private(set) var manifests: [AppID: SharedManifest] = [:]
    /// The apps of `manifests`, sorted.
    private(set) var ids: [AppID] = []
    /// Apps that had a manifest before and have none now, sorted.
    private(set) var gone: [AppID] = []
    private(set) var broken: [AppID: String] = [:]
    /// The files of all apps, also of the broken ones.
    private(set) var appFiles: [AppID: ManifestFiles] = [:]
    private(set) var errors: [ManifestFinding] = []
    private(set) var warnings: [ManifestFinding] = []
    /// Of `errors` and `warnings`, those about files that are ignored and about the configuration: the status of no app has them.
    private(set) var fileProblems: [String] = []
    /// Why not all files could be read, which says nothing about them: the daemon has too many open files, for example.
    private(set) var obstacle: SystemError?
    /// `nil`: the configuration has an error.
    private(set) var configuration: ManagerConfiguration?
    /// By name, also those that have only drop-ins.
    private(set) var templates: [String: Template] = [:]
    /// The instances without a file of their own, also those that an error disables or whose template no longer exists.
    private(set) var transient: [AppID: TransientInstance] = [:]
    /// Which files there are.
    private(set) var files: AppFiles
    let parsing: ManifestParsing
    private let folders: Folders
    private let limits: Limits
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
    private var previousTransient: [AppID: TransientInstance]
    /// Whether an app has a process.
    private let isRunning: (AppID) -> Bool
    /// How many more instances without a file there may be.
    private var transientLeft = 0
    private var unreadTemplates: ArraySlice<String> = []
    /// Instances that are to be read at the end: they were created meanwhile, or have lost their files and are running.
    private var added: ArraySlice<AppID> = []
    /// Instances that were removed meanwhile.
    private var removed: Set<AppID> = []
    private var hasAdded = false
    /// Of instances: what was reported already, because many have the same files.
    private var reported: Set<String> = []
    /// Folders of root's daemon to check for other users' write access.
    private var uncheckedFolders: ArraySlice<String> = []
    private var unsafeCount = 0
    /// Apps with `Role=home`, in order.
    private var homes: [AppID] = []

    /// The parts of the work, in order.
    private enum Part {
        case vendor, config, dropIns, masks, sort, selection, access, templates, apps, configuration, comparison,
            instances
    }

    struct Limits {
        /// The most apps that are read, so that a folder with too many files does not block the daemon.
        var apps = ManifestLibrary.maximumApps
    }

    /// The most files that are reported as ignored because of their names.
    private static let maximumIgnored = 10

    /// How many files a step examines: about 5 µs each.
    private static let step = 64

    /// - Parameters:
    ///   - previous: the apps that have a manifest so far, sorted.
    ///   - transient: the instances without a file so far.
    ///   - isRunning: whether an app has a process: an instance that loses its file is kept then.
    init(
        folders: Folders, limits: Limits = Limits(), previous: [AppID], transient: [AppID: TransientInstance] = [:],
        isRunning: @escaping (AppID) -> Bool = { _ in false }
    ) {
        self.folders = folders
        self.limits = limits
        self.isRunning = isRunning
        self.previous = previous[...]
        previousTransient = transient
        parsing = ManifestParsing(folders: folders)
        files = AppFiles(vendor: FolderListing(path: folders.vendor), config: FolderListing(path: folders.config))
        reader = open(folders.vendor + "/apps")
    }

    /// A folder that does not exist is empty.
    private func open(_ folder: String) -> FolderReader? {
        do {
            return try FolderReader(folder)
        } catch {
            record(error)
            return nil
        }
    }

    private func names(_ folder: String) -> [String] {
        do {
            return try folderEntries(at: folder).sorted()
        } catch {
            record(error)
            return []
        }
    }

    private func record(_ error: any Error) {
        guard obstacle == nil, let error = error as? SystemError, error.isShortage else { return }
        obstacle = error
    }

    /// Reads the next file, or does a part of what is between.
    /// - Returns: whether there is more to read.
    func advance() -> Bool {
        if obstacle != nil { return false }
        switch part {
        case .vendor, .config: if !list() { endList() }
        case .dropIns: if !listDropIns() { part = .masks }
        case .masks: if !findMasks() { part = .sort }
        case .sort: if !sort.advance() { beginSelection() }
        case .selection: if !select() { endSelection() }
        case .access: if !warnUnsafe() { (next, part) = (0, .templates) }
        case .templates: if !readTemplates() { part = .apps }
        case .apps:
            if !readNextApp() {
                warnAboutHomes()
                part = .configuration
            }
        case .configuration:
            readConfiguration()
            part = .comparison
        case .comparison: if !compare() { part = .instances }
        case .instances: return readAdded()
        }
        return true
    }

    // MARK: Files. Each step returns whether there is more of its part.

    private func list() -> Bool {
        guard let reader else { return false }
        let names: [String]
        do {
            names = try reader.next(Self.step)
        } catch {
            record(error)
            return false
        }
        let isVendor = part == .vendor
        let folder = (isVendor ? files.vendor.path : files.config.path) + "/apps/"
        for name in names {
            if name.hasSuffix(".app.d") { dropIns.append((name, isVendor)) }
            let isTaken = isVendor ? files.vendor.addManifest(file: name) : files.config.addManifest(file: name)
            if isTaken { unchecked.append((folder + name, isVendor)) } else { warnIfIgnored(folder, name) }
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
        let finding = ManifestFinding(Diagnostic(.warning, folder + name, line: 0, column: 0, message))
        warnings.append(finding)
        fileProblems.append(finding.logged)
    }

    private func endList() {
        if part == .vendor {
            files.vendor = listConfiguration(files.vendor, isVendor: true)
            reader = open(folders.config + "/apps")
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
        listing.configurationDropIns = names(folder + "/greenroom.conf.d")
        if listing.hasConfiguration { unchecked.append((folder + "/greenroom.conf", isVendor)) }
        unchecked += listing.configurationDropIns.map { (folder + "/greenroom.conf.d/" + $0, isVendor) }
        return listing
    }

    private func listDropIns() -> Bool {
        guard let (name, isVendor) = dropIns.popFirst() else { return false }
        let folder = (isVendor ? files.vendor.path : files.config.path) + "/apps/" + name
        let names = self.names(folder)
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
        let apps = files.vendor.apps.union(files.config.apps)
        transientLeft = max(0, limits.apps - apps.count)
        sort = StepwiseSort(Array(apps.union(previousTransient.keys)))
        return false
    }

    private func beginSelection() {
        unselected = sort.elements[...]
        sort = StepwiseSort([])
        part = .selection
    }

    private func select() -> Bool {
        for id in unselected.prefix(Self.step) {
            let known = files.hasManifest(of: id) ? nil : previousTransient[id]
            guard let paths = known?.command == nil ? files.files(of: id) : [] else {
                // It is kept until the core no longer knows it.
                transient[id] = known
                continue
            }
            selectedCount += 1
            // Instances without a file do not displace apps that have one.
            let isWithinLimit = known == nil ? selected.count < limits.apps : transientLeft > 0
            if isWithinLimit {
                selected.append((id, paths))
                if known != nil { transientLeft -= 1 }
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
                "\(folders.config)/apps: \(selectedCount) apps; the limit is \(limits.apps): \(firstIgnored) and the apps after "
                + "it are ignored"
            errors.append(ManifestFinding(.error, sentence))
            fileProblems.append(sentence)
        }
        let defined = files.vendor.templates.union(files.config.templates)
        unreadTemplates = defined.union(selected.compactMap(\.id.template)).sorted()[...]
        part = .templates
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
        for id in previous.prefix(Self.step) where manifests[id] == nil {
            if losesOnlyItsFile(id) { added.append(id) } else { gone.append(id) }
        }
        previous = previous.dropFirst(Self.step)
        return !previous.isEmpty
    }

    /// A command of `greenroomctl run` has no files.
    private func readCommand(_ id: AppID, _ instance: TransientInstance, _ command: RunSettings) {
        transient[id] = instance
        switch parsing.parse(id, command) {
        case .success(let manifest):
            manifests[id] = SharedManifest(manifest, like: ids.last.flatMap { manifests[$0] })
            ids.append(id)
        case .failure(let problem): broken[id] = problem.description
        }
    }

    private func readApp(_ id: AppID, _ paths: [String]) {
        if !files.hasManifest(of: id), let instance = previousTransient[id], let command = instance.command {
            return readCommand(id, instance, command)
        }
        let template = id.template.flatMap { templates[$0] }
        appFiles[id] = ManifestFiles(of: id, paths, in: folders, template: template)
        let isTransient = id.template != nil && !files.hasManifest(of: id)
        if isTransient { transient[id] = previousTransient[id] ?? TransientInstance() }
        do {
            let sources = try template?.sources(of: paths) ?? paths.map(Template.read)
            var (manifest, diagnostics) = parsing.parse(id, sources)
            append(diagnostics, ofInstance: template != nil)
            if isTransient, let sockets = manifest?.sockets {
                manifest?.policy.isTransient = true
                transient[id]?.holdsSockets = !sockets.all.isEmpty
            }
            let last = ids.last.flatMap { manifests[$0] }
            manifests[id] = manifest.map { SharedManifest($0, like: last) }
            if manifest?.policy.role == .home { homes.append(id) }
            if manifest != nil {
                ids.append(id)
            } else {
                broken[id] = diagnostics.first { $0.severity == .error }?.sentence ?? "it cannot be read"
            }
        } catch {
            record(error)
            broken[id] = "\(error)"
            append(ManifestFinding(.error, "\(error)"), to: &errors, ofInstance: template != nil)
        }
    }

    // MARK: Templates and instances

    private func readTemplates() -> Bool {
        guard let name = unreadTemplates.first else { return false }
        if let template = templates[name] {
            if template.read() { return true }
            template.failure.map(record)
            unreadTemplates.removeFirst()
        } else {
            let paths = files.files(ofTemplate: name) ?? []
            templates[name] = Template(name, paths, in: folders)
            if geteuid() == 0 { paths.forEach(warnIfUnsafe) }
        }
        return true
    }

    /// Whether an instance is running and its file was removed, but not that of its template: it is kept until it ends.
    private func losesOnlyItsFile(_ id: AppID) -> Bool {
        guard let name = id.template, let template = templates[name], template.isDefined, !files.hasManifest(of: id)
        else { return false }
        return broken[id] == nil && previousTransient[id] == nil && !removed.contains(id) && isRunning(id)
    }

    /// An instance was created from what was read before.
    func instanceWasCreated(_ id: AppID, _ instance: TransientInstance) {
        removed.remove(id)
        previousTransient[id] = instance
        added.append(id)
    }

    /// An instance without a file was removed.
    func instanceWasRemoved(_ id: AppID) { removed.insert(id) }

    /// Takes over the instances that were created and removed while the files were read. No other one is, before
    /// `ManifestLibrary.adopt`.
    private func readAdded() -> Bool {
        if let id = added.popFirst() {
            if manifests[id] != nil || broken[id] != nil || removed.contains(id) { return true }
            if let paths = previousTransient[id]?.command == nil ? files.files(of: id) : [] {
                readApp(id, paths)
                hasAdded = true
            } else {
                transient[id] = TransientInstance()
                gone.append(id)
            }
            return true
        }
        // One that has a file now is read and registered again.
        for id in removed where transient[id] != nil {
            (manifests[id], broken[id], appFiles[id], transient[id]) = (nil, nil, nil, nil)
        }
        if !removed.isEmpty { ids.removeAll { manifests[$0] == nil } }
        if hasAdded { ids.sort() }
        gone.removeAll { manifests[$0] != nil }
        return false
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
            let (parsed, diagnostics) = parsing.parseConfiguration(try files.configuration.map(Template.read))
            append(diagnostics)
            configuration = parsed
            // The first one, as of an app.
            if parsed == nil, let error = diagnostics.first(where: { $0.severity == .error }) {
                fileProblems.append(error.sentence)
            }
        } catch {
            record(error)
            errors.append(ManifestFinding(.error, "\(error)"))
            fileProblems.append("\(error)")
        }
    }

    private func append(_ diagnostics: [Diagnostic], ofInstance: Bool = false) {
        for diagnostic in diagnostics {
            let finding = ManifestFinding(diagnostic)
            switch diagnostic.severity {
            case .error: append(finding, to: &errors, ofInstance: ofInstance)
            case .warning: append(finding, to: &warnings, ofInstance: ofInstance)
            }
        }
    }

    /// What all instances of a template have in common is reported once.
    private func append(_ finding: ManifestFinding, to findings: inout [ManifestFinding], ofInstance: Bool) {
        if !ofInstance || reported.insert(finding.reported).inserted { findings.append(finding) }
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
}
