import Glibc

/// Whether this process may mount a file system.
package func mayMount() -> Bool {
    guard geteuid() == 0 else { return false }
    let folder = makeTemporaryFolder("greenroom-mount")
    defer { rmdir(folder) }
    guard mount("test", folder, "tmpfs", 0, "size=64k") == 0 else { return false }
    return detach(folder)
}

/// Detaches what is mounted on a path (MNT_DETACH).
@discardableResult
package func detach(_ path: String) -> Bool { umount2(path, 2) == 0 }

/// Writes to a file until the file system is full.
package func fill(_ path: String) -> Bool {
    let file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    guard file >= 0 else { return false }
    defer { close(file) }
    let block = [UInt8](repeating: 120, count: 4096)
    while write(file, block, block.count) > 0 {}
    return errno == ENOSPC
}
