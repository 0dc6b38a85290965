package import Posix

/// Reads small files on a helper thread: for an attribute in /sys the kernel may ask the device, or wait for its lock, which one that is
/// being reset holds for seconds.
package final class AttributeReader {
    private let thread: HelperThread
    private var paths: [String] = []
    private var output: SharedDescriptor?
    private var token: UInt64 = 0
    /// The most files of one reading.
    private static let mostFiles = 4096
    /// More than all files of a reading can have.
    private static let mostBytes = 32 << 20

    package init() throws(SystemError) { thread = try HelperThread(name: "devices", .examines) }

    /// Readable when a reading is complete.
    package var completions: SharedDescriptor? { thread.completions }
    /// The thread has not answered yet.
    package var isBusy: Bool { output != nil }

    /// Begins to read files, if nothing is being read.
    package func read(_ files: [String]) throws(SystemError) {
        guard !isBusy else { return }
        let files = Array(files.prefix(Self.mostFiles))
        var bytes: [UInt8] = []
        for file in files {
            try file.refuseNul("open")
            bytes += file.utf8
            bytes.append(0)
        }
        let list = try MemoryFile.empty("device-files")
        try writeAll(bytes, to: list)
        let output = SharedDescriptor(try MemoryFile.empty("device-contents"))
        token += 1
        guard try thread.readFiles(list, output: try output.descriptor.duplicate(), token: token) else { return }
        (self.output, paths) = (output, files)
    }

    /// What was read, by path, without the files that cannot be read; `nil`: nothing is complete.
    package func take() -> [String: [UInt8]]? {
        let done = (try? thread.collect()) ?? []
        guard done.contains(where: { $0.token == token }), let output else { return nil }
        self.output = nil
        let bytes = (try? MemoryFile.contents(output.descriptor, limit: Self.mostBytes)) ?? []
        return Self.contents(bytes[...], of: paths)
    }

    private static func contents(_ bytes: ArraySlice<UInt8>, of paths: [String]) -> [String: [UInt8]] {
        var (bytes, contents) = (bytes, [String: [UInt8]]())
        for path in paths {
            guard bytes.count >= 4 else { break }
            let length = bytes.withUnsafeBytes { Int($0.loadUnaligned(as: Int32.self)) }
            bytes = bytes.dropFirst(4)
            if length < 0 { continue }
            contents[path] = Array(bytes.prefix(length))
            bytes = bytes.dropFirst(length)
        }
        return contents
    }
}
