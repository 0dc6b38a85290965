import Glibc

/// Creates a new folder below `/tmp`.
package func makeTemporaryFolder(_ name: String) -> String {
    var template = Array("/tmp/\(name)-XXXXXX".utf8CString)
    precondition(mkdtemp(&template) != nil, "mkdtemp: \(errno)")
    return template.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? "" }
}

/// The names in a folder, unsorted; none if it cannot be read.
package func entries(of folder: String) -> [String] {
    guard let directory = opendir(folder) else { return [] }
    defer { closedir(directory) }
    var names: [String] = []
    while let entry = readdir(directory) {
        let name = withUnsafePointer(to: &entry.pointee.d_name) {
            $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        }
        if name != ".", name != ".." { names.append(name) }
    }
    return names
}

/// Removes a folder with its contents, as far as possible.
package func removeTree(_ path: String) {
    for name in entries(of: path) {
        let child = path + "/" + name
        if unlink(child) != 0 { removeTree(child) }
    }
    rmdir(path)
}
