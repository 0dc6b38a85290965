import Glibc

/// Returns why a file, or the files in a folder, are not safe: another user could change or replace them. `nil`: they are safe,
/// or the path does not exist.
package func reasonToDistrust(_ path: String) -> String? {
    var about = Glibc.stat()
    guard stat(path, &about) == 0 else { return nil }
    let mode = "(mode \(String(about.st_mode & 0o7777, radix: 8)))"
    if about.st_uid != 0 && about.st_uid != geteuid() { return "it belongs to uid \(about.st_uid)" }
    if about.st_mode & S_IWOTH != 0 { return "every user may write to it \(mode)" }
    // The group of root, and a user's own group, have no other members.
    if about.st_mode & S_IWGRP != 0, about.st_gid != 0, about.st_gid != getegid() {
        return "group \(about.st_gid) may write to it \(mode)"
    }
    return nil
}

/// Whether every user may read the file: it is readable, and all folders on the way to it can be searched. Links are followed.
package func isReadableByOthers(_ path: String) -> Bool {
    guard let resolved = realpath(path, nil) else { return false }
    defer { free(resolved) }
    var current = String(cString: resolved)
    var needed = S_IROTH
    while true {
        var about = Glibc.stat()
        guard stat(current, &about) == 0, about.st_mode & needed != 0 else { return false }
        guard let slash = current.lastIndex(of: "/"), current != "/" else { return true }
        current = slash == current.startIndex ? "/" : String(current[..<slash])
        needed = S_IXOTH
    }
}
