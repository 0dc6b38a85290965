import CSystemd
import Glibc

/// Object paths that contain an escaped name (sd_bus_path_encode(3)): `/org/greenroom/app/org_2eexample`.
package enum ObjectPath {
    /// Returns the path of `id` below `prefix`, which must be a valid object path.
    package static func encode(_ id: String, below prefix: String) -> String {
        var path: UnsafeMutablePointer<CChar>?
        let result = sd_bus_path_encode(prefix, id, &path)
        precondition(result >= 0, "'\(prefix)' is not an object path")
        defer { free(path) }
        return path.map { String(cString: $0) } ?? prefix
    }

    /// Returns the name of a path directly below `prefix`; `nil` for any other path.
    package static func decode(_ path: String, below prefix: String) -> String? {
        var id: UnsafeMutablePointer<CChar>?
        guard sd_bus_path_decode(path, prefix, &id) > 0, let id else { return nil }
        defer { free(id) }
        let name = String(cString: id)
        // Each name has one path: `a/b` and `_61` (for `a`) are refused.
        return !name.isEmpty && encode(name, below: prefix) == path ? name : nil
    }
}
