import Glibc
import LifecycleCore
import Linux
import Manifest
import Posix

/// Reads all manifests and the configuration in steps: 1,000 files take some 80ms. What was read before stays in effect until
/// `ManifestLibrary.adopt`.
final class ManifestReading {
    private(set) var manifests: [AppID: AppManifest] = [:]
    private(set) var broken: [AppID: String] = [:]
    private(set) var errors: [String] = []
    private(set) var warnings: [String] = []
    /// `nil`: the configuration has an error.
    private(set) var configuration: ManagerConfiguration?
    /// The machine's memory in bytes, for percentages; `nil`: unknown.
    private let memory = try? MemoryInfoReader().read().total
    private let folders: Folders
    private var vendor: FolderListing
    private var config: FolderListing
    /// Files that may be masks, in either folder.
    private var unchecked: ArraySlice<(path: String, isVendor: Bool)> = []
    /// `nil` before all files are checked.
    private var selected: ArraySlice<(id: AppID, paths: [String])>?
    private var isConfigurationRead = false
    /// Folders and files of root's daemon to check for other users' write access.
    private var uncheckedAccess: ArraySlice<String> = []
    private var unsafeCount = 0

    /// How many files a step examines: about 5 µs each.
    private static let step = 64

    init(folders: Folders) {
        self.folders = folders
        var unchecked: [(path: String, isVendor: Bool)] = []
        func list(_ folder: String, isVendor: Bool) -> FolderListing {
            var listing = FolderListing(path: folder)
            listing.apps = Self.names(folder + "/apps")
            for name in listing.apps where name.hasSuffix(".app.d") {
                let dropIns = Self.names(folder + "/apps/" + name)
                listing.dropIns[name] = dropIns
                unchecked += dropIns.map { (folder + "/apps/" + name + "/" + $0, isVendor) }
            }
            unchecked += listing.apps.filter { $0.hasSuffix(".app") }.map { (folder + "/apps/" + $0, isVendor) }
            listing.hasConfiguration = Self.names(folder).contains("greenroom.conf")
            listing.configurationDropIns = Self.names(folder + "/greenroom.conf.d")
            if listing.hasConfiguration { unchecked.append((folder + "/greenroom.conf", isVendor)) }
            unchecked += listing.configurationDropIns.map { (folder + "/greenroom.conf.d/" + $0, isVendor) }
            return listing
        }
        vendor = list(folders.vendor, isVendor: true)
        config = list(folders.config, isVendor: false)
        self.unchecked = unchecked[...]
    }

    /// A folder that does not exist is empty.
    private static func names(_ folder: String) -> [String] {
        ((try? folderEntries(at: folder)) ?? []).sorted()
    }

    /// Reads the next file.
    /// - Returns: whether there is more to read.
    func advance() -> Bool {
        if !unchecked.isEmpty {
            findMasks()
        } else if !uncheckedAccess.isEmpty {
            warnUnsafe()
        } else if let (id, paths) = selected?.popFirst() {
            readApp(id, paths)
        } else if selected == nil {
            select()
        } else if !isConfigurationRead {
            isConfigurationRead = true
            readConfiguration()
        } else {
            return false
        }
        return true
    }

    /// A file that is empty, or a link to /dev/null, masks the vendor's file of the same name.
    private func findMasks() {
        for (path, isVendor) in unchecked.prefix(Self.step) where isEmptyOrNull(at: path) {
            if isVendor { vendor.masked.insert(path) } else { config.masked.insert(path) }
        }
        unchecked = unchecked.dropFirst(Self.step)
    }

    private func select() {
        let files = AppFiles(vendor: vendor, config: config)
        let all = files.selected
        let maximum = ManifestLibrary.maximumApps
        if geteuid() == 0 {
            uncheckedAccess = (folderPaths + all.prefix(maximum).flatMap(\.paths) + files.configuration)[...]
        }
        if let first = all.dropFirst(maximum).first {
            errors.append(
                "\(folders.config)/apps: \(all.count) apps; the limit is \(maximum): \(first.id) and the apps "
                    + "after it are ignored")
        }
        selected = all.prefix(maximum)
    }

    private func readApp(_ id: AppID, _ paths: [String]) {
        do {
            let sources = try paths.map(source)
            var (manifest, diagnostics) = parseManifest(id: id, sources: sources, memory: memory)
            if !diagnostics.isEmpty, let protected = Self.protected(sources) {
                (manifest, diagnostics) = parseManifest(id: id, sources: protected, memory: memory)
            }
            append(diagnostics)
            manifests[id] = manifest
            if manifest == nil {
                broken[id] = diagnostics.first { $0.severity == .error }?.sentence ?? "it cannot be read"
            }
        } catch {
            broken[id] = "\(error)"
            errors.append("\(error)")
        }
    }

    private func readConfiguration() {
        do {
            let sources = try AppFiles(vendor: vendor, config: config).configuration.map(source)
            var (parsed, diagnostics) = parseConfiguration(sources: sources, memory: memory)
            if !diagnostics.isEmpty, let protected = Self.protected(sources) {
                (parsed, diagnostics) = parseConfiguration(sources: protected, memory: memory)
            }
            append(diagnostics)
            configuration = parsed
        } catch {
            errors.append("\(error)")
        }
    }

    private func append(_ diagnostics: [Diagnostic]) {
        for diagnostic in diagnostics {
            switch diagnostic.severity {
            case .error: errors.append(diagnostic.sentence)
            case .warning: warnings.append(diagnostic.sentence)
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
    private func warnUnsafe() {
        for path in uncheckedAccess.prefix(Self.step) where unsafeCount < Self.maximumUnsafe {
            guard let reason = reasonToDistrust(path) else { continue }
            unsafeCount += 1
            warnings.append("\(path) is not safe: \(reason), and its contents decide what greenroomd runs as root")
        }
        uncheckedAccess = uncheckedAccess.dropFirst(Self.step)
    }

    /// The folders in which files are found.
    private var folderPaths: [String] {
        [vendor, config].flatMap { listing in
            [listing.path, listing.path + "/apps", listing.path + "/greenroom.conf.d"]
                + listing.dropIns.keys.sorted().map { "\(listing.path)/apps/\($0)" }
        }
    }

    private func source(_ path: String) throws -> SourceFile {
        SourceFile(path: path, bytes: try readFile(at: path, limit: SourceFile.maximumSize))
    }
}
