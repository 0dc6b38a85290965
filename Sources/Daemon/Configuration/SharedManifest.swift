import Manifest

/// A manifest that the library and the runs of the app share: it takes most of a KiB.
@dynamicMemberLookup
final class SharedManifest {
    let value: AppManifest

    /// - Parameter other: of another app, with which it shares the values that are equal.
    init(_ value: AppManifest, like other: SharedManifest? = nil) {
        var value = value
        if let other { value.share(with: other.value) }
        self.value = value
    }

    subscript<Value>(dynamicMember path: KeyPath<AppManifest, Value>) -> Value { value[keyPath: path] }
}
