import Manifest

/// A manifest that the library and the runs of the app share: it takes most of a KiB.
@dynamicMemberLookup
final class SharedManifest {
    let value: AppManifest

    init(_ value: AppManifest) { self.value = value }

    subscript<Value>(dynamicMember path: KeyPath<AppManifest, Value>) -> Value { value[keyPath: path] }
}
