import CSystemd
import Glibc

/// Object paths that carry a name, escaped as sd_bus_path_encode(3) does: `/org/greenroom/app/org_2eexample`.
package enum ObjectPath {
    /// The path of `id` below `prefix`, which must be a valid object path.
    package static func encode(_ id: String, below prefix: String) -> String {
        var path: UnsafeMutablePointer<CChar>?
        let result = sd_bus_path_encode(prefix, id, &path)
        precondition(result >= 0, "'\(prefix)' is no object path")
        defer { free(path) }
        return path.map { String(cString: $0) } ?? prefix
    }

    /// The name that `path` carries directly below `prefix`; `nil` for any other path.
    package static func decode(_ path: String, below prefix: String) -> String? {
        var id: UnsafeMutablePointer<CChar>?
        guard sd_bus_path_decode(path, prefix, &id) > 0, let id else { return nil }
        defer { free(id) }
        let name = String(cString: id)
        // Two ways of writing one name must not be two objects: `a/b` below the prefix, `_61` for `a`.
        return !name.isEmpty && encode(name, below: prefix) == path ? name : nil
    }
}
