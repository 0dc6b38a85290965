import LifecycleCore
import Linux
import Manifest

/// All manifests and the configuration, as last read from disk.
final class ManifestLibrary {
    struct Changes {
        /// Apps whose manifest was removed, or has an error now. Some may be unknown to the core.
        var gone: [AppID] = []
        /// Apps that an error disables now or no longer, or another error than before; sorted.
        var disabled: [AppID] = []
        var errors: [ManifestFinding] = []
        var warnings: [ManifestFinding] = []
        /// What was in effect before.
        var replaced = Replaced([:], [:], [])
    }

    /// Manifests that are no longer in effect. They are released in steps: 10,000 at once take some 10 ms.
    final class Replaced {
        private var manifests: [AppID: SharedManifest]
        private var files: [AppID: ManifestFiles]
        private var ids: ArraySlice<AppID>
        private static let step = 32

        init(_ manifests: [AppID: SharedManifest], _ files: [AppID: ManifestFiles], _ ids: [AppID]) {
            self.manifests = manifests
            self.files = files
            self.ids = ids[...]
        }

        /// Releases the next ones.
        /// - Returns: whether there are more.
        func release() -> Bool {
            for id in ids.prefix(Self.step) { (manifests[id], files[id]) = (nil, nil) }
            ids = ids.dropFirst(Self.step)
            return !ids.isEmpty
        }
    }

    private(set) var manifests: [AppID: SharedManifest] = [:]
    /// The apps of `manifests`, sorted.
    private(set) var ids: [AppID] = []
    /// Apps that are disabled by an error in their manifest, and the first error.
    private(set) var broken: [AppID: String] = [:]
    /// The files of all apps, also of the broken ones.
    private(set) var files: [AppID: ManifestFiles] = [:]
    /// Why files were ignored, and the configuration was refused: for people, without full stops.
    private(set) var fileProblems: [String] = []
    private(set) var configuration = ManagerConfiguration()
    /// The instances without a file of their own, also those without a valid manifest.
    private(set) var transient: [AppID: TransientInstance] = [:]
    private let folders: Folders
    private let limits: ManifestReading.Limits
    /// The templates, and what else the last reading has found: instances are created from it.
    private var templates: [String: Template] = [:]
    private var found: AppFiles
    private var parsing: ManifestParsing?
    private var hasRead = false
    /// The reading that will be adopted.
    private weak var reading: ManifestReading?
    /// Whether an app has a process.
    var isRunning: (AppID) -> Bool = { _ in false }

    /// The most apps, so that a folder with too many files does not block the daemon, and requests for instances do not fill its
    /// memory.
    static let maximumApps = 10_000

    init(folders: Folders, limits: ManifestReading.Limits = ManifestReading.Limits()) {
        self.folders = folders
        self.limits = limits
        found = AppFiles(vendor: FolderListing(path: folders.vendor), config: FolderListing(path: folders.config))
    }

    /// The name of the app or template that is most similar to `name`, for a suggestion.
    func nearest(_ name: String) -> String? {
        let names = manifests.keys.map(\.name) + templates.values.filter(\.isDefined).map { $0.name + "@" }
        return Manifest.nearest(name, among: names.sorted())
    }

    /// Whether the files of an app on disk are not those that were read.
    func needsReload(_ id: AppID) -> Bool { files[id]?.haveChanged(of: id, in: folders) ?? false }

    /// The manifest of an app that was created after the manifests were read; `nil` if there is none.
    func unreadManifest(of id: AppID) -> String? { unreadFile(id.name) }

    /// The same of a template.
    func unreadTemplate(_ name: String) -> String? { unreadFile(name + "@") }

    private func unreadFile(_ name: String) -> String? {
        let paths = [folders.config, folders.vendor].map { "\($0)/apps/\(name).app" }
        return paths.first { exists(at: $0) && !isEmptyOrNull(at: $0) }
    }

    // MARK: Reading

    /// Begins to read all manifests and the configuration.
    func beginReading() -> ManifestReading {
        let reading = ManifestReading(
            folders: folders, limits: limits, previous: ids, transient: transient, isRunning: isRunning)
        self.reading = reading
        return reading
    }

    /// Replaces what was read before. An error in a manifest disables that app. If the configuration has an error, the previous
    /// one stays in effect.
    func adopt(_ reading: ManifestReading) -> Changes {
        // Otherwise all apps would be gone, with their sockets and the clients that wait there.
        if let obstacle = reading.obstacle, hasRead {
            return Changes(errors: [ManifestFinding(.error, "the manifests were not read again: \(obstacle)")])
        }
        hasRead = true
        let replaced = Replaced(manifests, files, ids)
        manifests = reading.manifests
        files = reading.appFiles
        ids = reading.ids
        transient = reading.transient
        templates = reading.templates
        found = reading.files
        parsing = reading.parsing
        let both = Set(broken.keys).union(reading.broken.keys)
        let disabled = both.filter { broken[$0] != reading.broken[$0] }.sorted()
        broken = reading.broken
        fileProblems = reading.fileProblems
        if let configuration = reading.configuration { self.configuration = configuration }
        return Changes(
            gone: reading.gone, disabled: disabled, errors: reading.errors, warnings: reading.warnings,
            replaced: replaced)
    }

    // MARK: Instances without a file

    /// Takes over the instances of the previous daemon, before the first reading.
    func recover(_ instances: [AppID: TransientInstance]) { transient = instances }

    /// Whether there is a template of this name, as last read.
    func hasTemplate(_ name: String) -> Bool { templates[name]?.isDefined ?? false }

    /// Whether the manifest of an app is an empty file or a link to /dev/null.
    func isMasked(_ id: AppID) -> Bool { found.hasManifest(of: id) && found.files(of: id) == nil }

    /// Creates an instance of a template, from the template as it was last read.
    func instantiate(_ id: AppID) throws(InstanceProblem) -> AppManifest {
        guard let template = id.template.flatMap({ templates[$0] }), template.isDefined, let parsing,
            !found.hasManifest(of: id), let paths = found.files(of: id)
        else { throw .noTemplate }
        guard manifests.count + broken.count < limits.apps else { throw .tooMany(limits.apps) }
        let files = ManifestFiles(of: id, paths, in: folders, template: template)
        let sources: [SourceFile]
        do { sources = try template.sources(of: paths) } catch { throw .error("\(error)") }
        let (parsed, diagnostics) = parsing.parse(id, sources)
        guard var manifest = parsed else {
            throw .error(diagnostics.first { $0.severity == .error }?.sentence ?? "it cannot be read")
        }
        manifest.policy.isTransient = true
        self.files[id] = files
        insert(manifest, TransientInstance(holdsSockets: !manifest.sockets.all.isEmpty))
        return manifest
    }

    /// Whether an ID is free for a command of `greenroomctl run`.
    func isFree(_ id: AppID) -> Bool {
        manifests[id] == nil && broken[id] == nil && transient[id] == nil && !found.hasManifest(of: id)
    }

    /// Creates the app of a command of `greenroomctl run`.
    func instantiate(_ id: AppID, command: RunSettings) throws(InstanceProblem) -> AppManifest {
        guard let parsing, isFree(id) else { throw .noTemplate }
        guard manifests.count + broken.count < limits.apps else { throw .tooMany(limits.apps) }
        switch parsing.parse(id, command) {
        case .success(let manifest):
            insert(manifest, TransientInstance(command: command))
            return manifest
        case .failure(let problem): throw .error(problem.description)
        }
    }

    private func insert(_ manifest: AppManifest, _ instance: TransientInstance) {
        let id = manifest.id
        manifests[id] = SharedManifest(manifest, like: ids.last.flatMap { manifests[$0] })
        ids.insert(id, at: position(of: id))
        transient[id] = instance
        reading?.instanceWasCreated(id, instance)
    }

    /// Removes an instance without a file.
    func remove(_ id: AppID) {
        guard transient.removeValue(forKey: id) != nil else { return }
        (manifests[id], files[id], broken[id]) = (nil, nil, nil)
        let position = position(of: id)
        if position < ids.count, ids[position] == id { ids.remove(at: position) }
        reading?.instanceWasRemoved(id)
    }

    /// Where the app is in `ids`, or would be.
    private func position(of id: AppID) -> Int {
        var range = 0..<ids.count
        while !range.isEmpty {
            let middle = (range.lowerBound + range.upperBound) / 2
            range = ids[middle] < id ? middle + 1..<range.upperBound : range.lowerBound..<middle
        }
        return range.lowerBound
    }
}

/// Why an instance cannot be created.
enum InstanceProblem: Error, Hashable {
    case noTemplate
    /// An error in the files of the template or in drop-ins of the instance.
    case error(String)
    /// There are as many apps as there may be.
    case tooMany(Int)
}

extension AppFiles {
    /// Whether an app has a file of its own, which may be a mask.
    func hasManifest(of id: AppID) -> Bool { config.apps.contains(id) || vendor.apps.contains(id) }
}
