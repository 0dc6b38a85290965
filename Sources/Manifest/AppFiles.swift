package import LifecycleCore

/// The file names in a vendor or configuration directory. The caller reads the directory.
package struct FolderListing: Hashable, Sendable {
    package var path: String
    /// The apps whose manifests are in `apps/`.
    package private(set) var apps: Set<AppID> = []
    /// The names in each drop-in directory `apps/ID.app.d/`, by the directory's name (`ID.app.d`).
    package var dropIns: [String: [String]]
    /// Whether `greenroom.conf` exists.
    package var hasConfiguration: Bool
    /// The names in `greenroom.conf.d/`.
    package var configurationDropIns: [String]
    /// The paths of empty files and links to /dev/null. They mask the files of the same name in the other directory.
    package var masked: Set<String>

    package init(
        path: String, apps: [String] = [], dropIns: [String: [String]] = [:], hasConfiguration: Bool = false,
        configurationDropIns: [String] = [], masked: Set<String> = []
    ) {
        self.path = path
        self.dropIns = dropIns
        self.hasConfiguration = hasConfiguration
        self.configurationDropIns = configurationDropIns
        self.masked = masked
        for name in apps { _ = addApp(file: name) }
    }

    /// Adds a file in `apps/`.
    /// - Returns: the app whose manifest it is; `nil`: it is no manifest.
    package mutating func addApp(file name: String) -> AppID? {
        guard name.hasSuffix(".app"), let id = AppID(String(name.dropLast(4))) else { return nil }
        apps.insert(id)
        return id
    }
}

/// Selects the files that are read. A file of the configuration directory overrides the vendor's file of the same name, and
/// the drop-ins of both directories are read in the order of their names (systemd.unit(5)).
package struct AppFiles {
    package var vendor: FolderListing
    package var config: FolderListing

    package init(vendor: FolderListing, config: FolderListing) {
        self.vendor = vendor
        self.config = config
    }

    /// An app's manifest and its drop-ins, in the order in which they are read; `nil` if there is none or it is masked.
    package func files(of id: AppID) -> [String]? {
        guard let folder = [config, vendor].first(where: { $0.apps.contains(id) }) else { return nil }
        let name = "\(id).app"
        let path = "\(folder.path)/apps/\(name)"
        guard !isMasked(path) else { return nil }
        return [path] + dropIns("apps/\(name).d", { $0.dropIns["\(name).d"] ?? [] })
    }

    /// `greenroom.conf` and its drop-ins, in the order in which they are read.
    package var configuration: [String] {
        let file = [config, vendor].first { $0.hasConfiguration }.map { "\($0.path)/greenroom.conf" }
        let main = file.flatMap { isMasked($0) ? nil : [$0] } ?? []
        return main + dropIns("greenroom.conf.d", \.configurationDropIns)
    }

    private func dropIns(_ directory: String, _ names: (FolderListing) -> [String]) -> [String] {
        // The key is the name's bytes: String compares by canonical equivalence, file systems do not.
        var found: [[UInt8]: String] = [:]
        for listing in [vendor, config] {
            for name in dropInNames(names(listing)) { found[Array(name.utf8)] = "\(listing.path)/\(directory)/\(name)" }
        }
        let paths = found.sorted { $0.key.lexicographicallyPrecedes($1.key) }.map(\.value)
        // With the manifest this is one file more than the parser accepts, so that the parser reports the error.
        return Array(paths.filter { !isMasked($0) }.prefix(maximumSources))
    }

    private func isMasked(_ path: String) -> Bool { config.masked.contains(path) || vendor.masked.contains(path) }
}

/// Returns the names that are drop-ins (`*.conf`), sorted by their bytes. Hidden files are ignored, as in systemd.
package func dropInNames(_ names: [String]) -> [String] {
    names.filter { name in
        let bytes = Array(name.utf8)
        return bytes.first != UInt8(ascii: ".") && bytes.suffix(5).elementsEqual(".conf".utf8)
    }.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
}
