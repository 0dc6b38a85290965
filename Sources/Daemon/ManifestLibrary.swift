import LifecycleCore
import Linux
import Manifest
import Posix

/// All manifests and the configuration, as they lie on disk.
final class ManifestLibrary {
    struct Changes {
        /// Apps whose manifest is gone or was disabled by an error.
        var gone: [AppID] = []
        var errors: [String] = []
        var warnings: [String] = []
    }

    private(set) var manifests: [AppID: AppManifest] = [:]
    /// Apps that an error in their manifest disables, and the first such error.
    private(set) var broken: [AppID: String] = [:]
    private(set) var configuration = ManagerConfiguration()
    /// The machine's, in bytes, for percentages.
    private var memory: UInt64?
    private let folders: Folders

    /// More apps than this are not read: a folder full of rubbish is not the end of the daemon.
    static let maximumApps = 10_000

    init(folders: Folders) {
        self.folders = folders
    }

    func nearest(_ name: String) -> String? {
        Manifest.nearest(name, among: manifests.keys.map(\.name).sorted())
    }

    /// Reads everything anew. What can't be read is an error of that app alone; the configuration that stood before stays
    /// where the new one is wrong.
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
                "\(folders.config)/apps: \(selected.count) apps; at most \(Self.maximumApps) are read: \(first.0) and those "
                    + "behind it are passed over")
        }
        readConfiguration(&changes)
        changes.gone = before.subtracting(manifests.keys).sorted()
        return changes
    }

    private func readApp(_ id: AppID, _ paths: [String], _ changes: inout Changes) {
        do {
            let sources = try paths.map(source)
            let (manifest, diagnostics) = parseManifest(id: id, sources: sources, memory: memory)
            note(diagnostics, &changes)
            manifests[id] = manifest
            if manifest == nil {
                broken[id] = diagnostics.first { $0.severity == .error }?.sentence ?? "it could not be read"
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
            note(diagnostics, &changes)
            if let parsed { configuration = parsed }
        } catch {
            changes.errors.append("\(error)")
        }
    }

    private func note(_ diagnostics: [Diagnostic], _ changes: inout Changes) {
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
    /// What lies in a vendor or config folder. A folder that is not there is an empty one.
    private func listing(_ folder: String) -> FolderListing {
        var listing = FolderListing(path: folder)
        listing.apps = names(folder + "/apps")
        for name in listing.apps where name.hasSuffix(".app.d") {
            let dropIns = names(folder + "/apps/" + name)
            listing.dropIns[name] = dropIns
            note(dropIns, in: folder + "/apps/" + name, &listing)
        }
        note(listing.apps.filter { $0.hasSuffix(".app") }, in: folder + "/apps", &listing)
        let own = names(folder)
        listing.hasConfiguration = own.contains("greenroom.conf")
        listing.configurationDropIns = names(folder + "/greenroom.conf.d")
        note(own.filter { $0 == "greenroom.conf" }, in: folder, &listing)
        note(listing.configurationDropIns, in: folder + "/greenroom.conf.d", &listing)
        return listing
    }

    private func names(_ folder: String) -> [String] {
        ((try? folderEntries(at: folder)) ?? []).sorted()
    }

    private func note(_ names: [String], in folder: String, _ listing: inout FolderListing) {
        for name in names where isEmptyOrNull(at: folder + "/" + name) { listing.masked.insert(folder + "/" + name) }
    }
}
