import LifecycleCore
import Linux
import Manifest
import Posix

/// All manifests and the configuration, as last read from disk.
final class ManifestLibrary {
    struct Changes {
        /// Apps whose manifest was removed, or has an error now.
        var gone: [AppID] = []
        var errors: [String] = []
        var warnings: [String] = []
    }

    private(set) var manifests: [AppID: AppManifest] = [:]
    /// Apps that are disabled by an error in their manifest, and the first error.
    private(set) var broken: [AppID: String] = [:]
    private(set) var configuration = ManagerConfiguration()
    /// The machine's memory in bytes, for percentages; `nil`: unknown.
    private var memory: UInt64?
    private let folders: Folders

    /// The most apps that are read, so that a folder with too many files does not block the daemon.
    static let maximumApps = 10_000

    init(folders: Folders) {
        self.folders = folders
    }

    /// The name of the app that is most similar to `name`, for a suggestion.
    func nearest(_ name: String) -> String? {
        Manifest.nearest(name, among: manifests.keys.map(\.name).sorted())
    }

    /// Reads all manifests and the configuration. An error in a manifest disables that app. If the configuration has an
    /// error, the previous one stays in effect.
    func read() -> Changes {
        var changes = Changes()
        let before = Set(manifests.keys)
        manifests = [:]
        broken = [:]
        memory = try? MemoryInfoReader().read().total
        let files = AppFiles(vendor: listing(folders.vendor), config: listing(folders.config))
        let selected = files.selected
        for (name, sources) in selected.prefix(Self.maximumApps) { readApp(name, sources, &changes) }
        if let first = selected.dropFirst(Self.maximumApps).first {
            changes.errors.append(
                "\(folders.config)/apps: \(selected.count) apps; the limit is \(Self.maximumApps): \(first.0) and the apps "
                    + "after it are ignored")
        }
        readConfiguration(&changes)
        changes.gone = before.subtracting(manifests.keys).sorted()
        return changes
    }

    private func readApp(_ id: AppID, _ paths: [String], _ changes: inout Changes) {
        do {
            let sources = try paths.map(source)
            let (manifest, diagnostics) = parseManifest(id: id, sources: sources, memory: memory)
            append(diagnostics, &changes)
            manifests[id] = manifest
            if manifest == nil {
                broken[id] = diagnostics.first { $0.severity == .error }?.sentence ?? "it cannot be read"
            }
        } catch {
            broken[id] = "\(error)"
            changes.errors.append("\(error)")
        }
    }

    private func readConfiguration(_ changes: inout Changes) {
        do {
            let sources = try AppFiles(vendor: listing(folders.vendor), config: listing(folders.config)).configuration
                .map(source)
            let (parsed, diagnostics) = parseConfiguration(sources: sources, memory: memory)
            append(diagnostics, &changes)
            if let parsed { configuration = parsed }
        } catch {
            changes.errors.append("\(error)")
        }
    }

    private func append(_ diagnostics: [Diagnostic], _ changes: inout Changes) {
        for diagnostic in diagnostics {
            switch diagnostic.severity {
            case .error: changes.errors.append(diagnostic.sentence)
            case .warning: changes.warnings.append(diagnostic.sentence)
            }
        }
    }

    private func source(_ path: String) throws -> SourceFile {
        SourceFile(path: path, bytes: try readFile(at: path, limit: SourceFile.maximumSize))
    }
}

extension ManifestLibrary {
    /// The files of the vendor or the config folder. A folder that does not exist is empty.
    private func listing(_ folder: String) -> FolderListing {
        var listing = FolderListing(path: folder)
        listing.apps = names(folder + "/apps")
        for name in listing.apps where name.hasSuffix(".app.d") {
            let dropIns = names(folder + "/apps/" + name)
            listing.dropIns[name] = dropIns
            findMasked(dropIns, in: folder + "/apps/" + name, &listing)
        }
        findMasked(listing.apps.filter { $0.hasSuffix(".app") }, in: folder + "/apps", &listing)
        let own = names(folder)
        listing.hasConfiguration = own.contains("greenroom.conf")
        listing.configurationDropIns = names(folder + "/greenroom.conf.d")
        findMasked(own.filter { $0 == "greenroom.conf" }, in: folder, &listing)
        findMasked(listing.configurationDropIns, in: folder + "/greenroom.conf.d", &listing)
        return listing
    }

    private func names(_ folder: String) -> [String] {
        ((try? folderEntries(at: folder)) ?? []).sorted()
    }

    /// A file that is empty, or a link to /dev/null, masks the vendor's file of the same name.
    private func findMasked(_ names: [String], in folder: String, _ listing: inout FolderListing) {
        for name in names where isEmptyOrNull(at: folder + "/" + name) { listing.masked.insert(folder + "/" + name) }
    }
}
