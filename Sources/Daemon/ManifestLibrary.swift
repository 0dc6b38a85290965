import LifecycleCore
import Linux
import Manifest

/// All manifests and the configuration, as last read from disk.
final class ManifestLibrary {
    struct Changes {
        /// Apps whose manifest was removed, or has an error now.
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
        private var manifests: [AppID: AppManifest]
        private var files: [AppID: ManifestFiles]
        private var ids: ArraySlice<AppID>
        private static let step = 32

        init(_ manifests: [AppID: AppManifest], _ files: [AppID: ManifestFiles], _ ids: [AppID]) {
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

    private(set) var manifests: [AppID: AppManifest] = [:]
    /// The apps of `manifests`, sorted.
    private(set) var ids: [AppID] = []
    /// Apps that are disabled by an error in their manifest, and the first error.
    private(set) var broken: [AppID: String] = [:]
    /// The files of all apps, also of the broken ones.
    private(set) var files: [AppID: ManifestFiles] = [:]
    private(set) var configuration = ManagerConfiguration()
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

    /// Whether the files of an app on disk are not those that were read.
    func needsReload(_ id: AppID) -> Bool { files[id]?.haveChanged(of: id, in: folders) ?? false }

    /// The manifest of an app that was created after the manifests were read; `nil` if there is none.
    func unreadManifest(of id: AppID) -> String? {
        let paths = [folders.config, folders.vendor].map { "\($0)/apps/\(id).app" }
        return paths.first { exists(at: $0) && !isEmptyOrNull(at: $0) }
    }

    /// Begins to read all manifests and the configuration.
    func beginReading() -> ManifestReading { ManifestReading(folders: folders, previous: ids) }

    /// Replaces what was read before. An error in a manifest disables that app. If the configuration has an error, the previous
    /// one stays in effect.
    func adopt(_ reading: ManifestReading) -> Changes {
        let replaced = Replaced(manifests, files, ids)
        manifests = reading.manifests
        files = reading.appFiles
        ids = reading.ids
        let both = Set(broken.keys).union(reading.broken.keys)
        let disabled = both.filter { broken[$0] != reading.broken[$0] }.sorted()
        broken = reading.broken
        if let configuration = reading.configuration { self.configuration = configuration }
        return Changes(
            gone: reading.gone, disabled: disabled, errors: reading.errors, warnings: reading.warnings,
            replaced: replaced)
    }
}
