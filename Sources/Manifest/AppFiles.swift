package import LifecycleCore

/// The names in a vendor or config folder, as somebody has listed them.
package struct FolderListing: Hashable, Sendable {
    package var path: String
    /// Names in `apps/`.
    package var apps: [String]
    /// Names in `apps/ID.app.d/` by ID's folder name (`ID.app.d`).
    package var dropIns: [String: [String]]
    /// Whether there is a `greenroom.conf`, and the names in `greenroom.conf.d/`.
    package var hasConfiguration: Bool
    package var configurationDropIns: [String]
    /// Paths that are links to /dev/null, or empty: they mask what the other folder has by that name.
    package var masked: Set<String>

    package init(
        path: String, apps: [String] = [], dropIns: [String: [String]] = [:], hasConfiguration: Bool = false,
        configurationDropIns: [String] = [], masked: Set<String> = []
    ) {
        self.path = path
        self.apps = apps
        self.dropIns = dropIns
        self.hasConfiguration = hasConfiguration
        self.configurationDropIns = configurationDropIns
        self.masked = masked
    }
}

/// Which files count: the config folder's win over the vendor's of the same name; drop-ins of both are read in the order of
/// their names (as systemd.unit(5) has it).
package struct AppFiles {
    let vendor: FolderListing
    let config: FolderListing

    package init(vendor: FolderListing, config: FolderListing) {
        self.vendor = vendor
        self.config = config
    }

    /// By app, in the order of their names: the manifest, then its drop-ins.
    package var selected: [(id: AppID, paths: [String])] {
        var found: [AppID: String] = [:]
        for folder in [vendor, config] {
            for name in folder.apps where name.hasSuffix(".app") {
                if let id = AppID(String(name.dropLast(4))) { found[id] = "\(folder.path)/apps/\(name)" }
            }
        }
        return found.keys.sorted().compactMap { id in
            guard let path = found[id], !isMasked(path) else { return nil }
            return (id, [path] + dropIns("apps/\(id).app.d", { $0.dropIns["\(id).app.d"] ?? [] }))
        }
    }

    package var configuration: [String] {
        let file = [config, vendor].first { $0.hasConfiguration }.map { "\($0.path)/greenroom.conf" }
        let main = file.flatMap { isMasked($0) ? nil : [$0] } ?? []
        return main + dropIns("greenroom.conf.d", \.configurationDropIns)
    }

    private func dropIns(_ folder: String, _ names: (FolderListing) -> [String]) -> [String] {
        // By bytes: to a file system an accented letter and a letter with an accent are two names, to a String one.
        var found: [[UInt8]: String] = [:]
        for listing in [vendor, config] {
            for name in dropInNames(names(listing)) { found[Array(name.utf8)] = "\(listing.path)/\(folder)/\(name)" }
        }
        let paths = found.sorted { $0.key.lexicographicallyPrecedes($1.key) }.map(\.value)
        // One more than is read: the parser has the sentence for that.
        return Array(paths.filter { !isMasked($0) }.prefix(maximumSources))
    }

    private func isMasked(_ path: String) -> Bool { config.masked.contains(path) || vendor.masked.contains(path) }
}

/// Which of a folder's names are drop-ins, in the order in which they are read: by their bytes. Hidden ones are none (as
/// systemd).
package func dropInNames(_ names: [String]) -> [String] {
    names.filter { name in
        let bytes = Array(name.utf8)
        return bytes.first != UInt8(ascii: ".") && bytes.suffix(5).elementsEqual(".conf".utf8)
    }.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
}
