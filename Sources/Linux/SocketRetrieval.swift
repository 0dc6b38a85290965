import CLinux
package import Posix

extension Enclosure {
    /// How many processes and descriptors are examined.
    private static let mostProcesses = 64
    private static let mostDescriptors = 16_384

    /// Finds sockets in the processes of the run, and returns descriptors of them (pidfd_getfd(2)).
    /// - Parameter inodes: of the sockets.
    /// - Returns: those that were found, by inode. A process that may not be examined has none.
    package func takeSockets(_ inodes: Set<UInt64>) throws(SystemError) -> [UInt64: SharedDescriptor] {
        var found: [UInt64: SharedDescriptor] = [:]
        var left = Self.mostDescriptors
        for process in try openProcesses(limit: Self.mostProcesses).opened {
            guard
                let list = try? DescriptorList(in: "/proc/\(process.pid)", of: process, process: 0, table: 0)
            else { continue }
            while left > 0, let entries = try? list.next(), !entries.isEmpty {
                left -= entries.count
                for entry in entries where entry.kind == .socket && found[entry.inode] == nil {
                    guard inodes.contains(entry.inode) else { continue }
                    found[entry.inode] = Self.descriptor(of: process, entry)
                }
                if found.count == inodes.count { return found }
            }
        }
        return found
    }

    /// `nil` if the number belongs to another file by now, or the process may not be examined.
    private static func descriptor(of process: Process, _ entry: ListedDescriptor) -> SharedDescriptor? {
        let number = clinux_pidfd_getfd(process.descriptor.raw, entry.number)
        guard number >= 0 else { return nil }
        if clinux_inode(number) == entry.inode { return SharedDescriptor(Descriptor(adopting: number)) }
        // The close(2) of another file can block.
        DescriptorCloser().close(Descriptor(adopting: number))
        return nil
    }
}
