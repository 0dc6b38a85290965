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
    static func releases(_ specifiers: Specifiers) -> Setting<AppManifest> {
        .list(
            "Lifecycle", "Releases", "normalized absolute paths, with wildcards, each with lock: before it or not",
            \.releases, maximum: Release.maximumCount, specifiers
        ) { Release.isValid($0) ? $0 : nil }
    }
}
