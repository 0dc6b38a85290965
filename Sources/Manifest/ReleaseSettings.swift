import LifecycleCore

/// `Releases=`: what an app has to let go of before it is suspended (L43).
package enum Release {
    /// Before a path: a lock on the file counts, and not that it is open.
    package static let lockPrefix = "lock:"
    /// The most entries of an app, each of which is compared with each descriptor at a suspension.
    static let maximumCount = 32
    static let maximumLength = 256

    static func isValid(_ text: String) -> Bool {
        let path = text.hasPrefix(lockPrefix) ? String(text.dropFirst(lockPrefix.count)) : text
        return text.utf8.count <= maximumLength && isNormalizedPath(path) && path != "/"
    }
}

extension AppManifest {
    static func releaseSettings(_ specifiers: Specifiers) -> [Setting<AppManifest>] {
        [
            releases(specifiers),
            .value("Lifecycle", "ReleasesAction", "kill or wait", \.policy.waitsForRelease) {
                ["kill": false, "wait": true][$0]
            },
            .value("Lifecycle", "BackgroundGPU", "yes or no", \.policy.forbidsBackgroundGPU) {
                parseBoolean($0).map { !$0 }
            },
        ]
    }

    private static func releases(_ specifiers: Specifiers) -> Setting<AppManifest> {
        .list(
            "Lifecycle", "Releases", "normalized absolute paths, with wildcards, each with lock: before it or not",
            \.releases, maximum: Release.maximumCount, specifiers
        ) { Release.isValid($0) ? $0 : nil }
    }
}
