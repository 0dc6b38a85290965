package import LifecycleCore

/// The file names in a vendor or configuration directory. The caller reads the directory.
///
/// A template `NAME@.app` is the manifest of all instances `NAME@INSTANCE` that have no file of their own.
package struct FolderListing: Hashable, Sendable {
    package var path: String
    /// The apps whose manifests are in `apps/`, also instances of templates with a file or a link of their own.
    package private(set) var apps: Set<AppID> = []
    /// The names of the templates in `apps/`, without the `@`.
    package private(set) var templates: Set<String> = []
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
        for name in apps { _ = addManifest(file: name) }
    }

    /// Adds a file in `apps/`.
    /// - Returns: whether it is the manifest of an app or a template.
    package mutating func addManifest(file name: String) -> Bool {
        guard name.hasSuffix(".app") else { return false }
        let name = String(name.dropLast(4))
        if let id = AppID(name) {
            apps.insert(id)
        } else if let template = templateName(name) {
            templates.insert(template)
        } else {
            return false
        }
        return true
    }

    fileprivate func has(_ name: String) -> Bool {
        AppID(name).map(apps.contains) ?? templateName(name).map(templates.contains) ?? false
    }
}

/// The name of a template, as it is written, without its `@`.
///
/// - Returns: `nil` if the text is no valid name of a template: an ID, and `@` at its end.
package func templateName(_ text: String) -> String? {
    guard text.utf8.last == UInt8(ascii: "@"), let id = AppID(String(text.unicodeScalars.dropLast())),
        id.template == nil
    else { return nil }
    return id.name
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
    ///
    /// An instance of a template that has no file has the manifest of the template. The drop-ins of the template apply to it,
    /// too (`worker@.app.d`); the instance's own drop-in of the same name replaces the template's.
    package func files(of id: AppID) -> [String]? {
        guard let path = manifest("\(id)") ?? id.template.flatMap({ manifest("\($0)@") }), !isMasked(path) else {
            return nil
        }
        return [path] + dropIns(ofTemplate: id.template, and: "\(id)")
    }

    /// A template's file and its drop-ins; `nil` if there is none or it is masked.
    ///
    /// - Parameter name: without the `@`.
    package func files(ofTemplate name: String) -> [String]? {
        guard let path = manifest("\(name)@"), !isMasked(path) else { return nil }
        return [path] + dropIns(ofTemplate: name, and: nil)
    }

    /// The names of all templates that are not masked, without the `@`, sorted.
    package var templates: [String] {
        vendor.templates.union(config.templates).filter { files(ofTemplate: $0) != nil }.sorted()
    }

    private func manifest(_ name: String) -> String? {
        [config, vendor].first { $0.has(name) }.map { "\($0.path)/apps/\(name).app" }
    }

    private func dropIns(ofTemplate template: String?, and name: String?) -> [String] {
        let folders = [template.map { "\($0)@" }, name].compactMap { $0.map { "\($0).app.d" } }
        return dropIns(folders.map { "apps/\($0)" }) { listing in folders.map { listing.dropIns[$0] ?? [] } }
    }

    /// `greenroom.conf` and its drop-ins, in the order in which they are read.
    package var configuration: [String] {
        let file = [config, vendor].first { $0.hasConfiguration }.map { "\($0.path)/greenroom.conf" }
        let main = file.flatMap { isMasked($0) ? nil : [$0] } ?? []
        return main + dropIns(["greenroom.conf.d"]) { [$0.configurationDropIns] }
    }

    /// - Parameters:
    ///   - directories: relative to a listing; of files with the same name in one listing, the last one counts.
    ///   - names: the names in each of these directories.
    private func dropIns(_ directories: [String], _ names: (FolderListing) -> [[String]]) -> [String] {
        // The key is the name's bytes: String compares by canonical equivalence, file systems do not.
        var found: [[UInt8]: String] = [:]
        for listing in [vendor, config] {
            for (directory, names) in zip(directories, names(listing)) {
                for name in dropInNames(names) { found[Array(name.utf8)] = "\(listing.path)/\(directory)/\(name)" }
            }
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
