import CLinux
import Glibc
package import Posix

/// What a file is like, without its contents.
package struct FileState: Equatable, Sendable {
    package var size: Int64
    /// Of the last change of its contents, since 1970.
    package var seconds: Int64
    package var nanoseconds: Int64

    package init(size: Int64, seconds: Int64, nanoseconds: Int64) {
        self.size = size
        self.seconds = seconds
        self.nanoseconds = nanoseconds
    }
}

/// Watches a file that an app's user may put on any file system, and reads what it is like, on a helper thread: the server of the file
/// system may never answer. The nearest folder above it that exists is watched.
package final class FileStateReader {
    /// Readable after a change in the folder (`FolderWatch.clear`).
    package let changes: SharedDescriptor
    private let thread: HelperThread
    private let path: String
    private var file: SharedDescriptor?
    private var watch: Int32?
    private var token: UInt64 = 0
    /// How many helper threads of the app wait for a file system that no further one is started.
    private static let mostBlocked = 4

    /// - Parameter owner: the app.
    /// - Returns: `nil` if too many helper threads of the app wait already.
    package init?(path: String, owner: String) throws(SystemError) {
        try path.refuseNul("stat")
        guard BlockedHelper.examining(for: owner, limit: Self.mostBlocked) < Self.mostBlocked else { return nil }
        self.path = path
        let flags = Int32(IN_CLOEXEC) | Int32(IN_NONBLOCK)
        changes = SharedDescriptor(Descriptor(adopting: try checkErrno(inotify_init1(flags), "inotify_init1")))
        thread = try HelperThread(name: "settings", .examines, owner: owner)
    }

    /// Readable when a reading is complete.
    package var completions: SharedDescriptor? { thread.completions }
    /// The thread has not answered yet.
    package var isBusy: Bool { file != nil }

    /// Begins to read, if nothing is being read.
    package func read() throws(SystemError) {
        guard !isBusy else { return }
        let file = SharedDescriptor(try MemoryFile.empty("settings-file"))
        try writeAll(Array(path.utf8), to: file.descriptor)
        token += 1
        let inotify = try changes.descriptor.duplicate()
        let output = try file.descriptor.duplicate()
        guard try thread.watchFile(inotify, insteadOf: watch, file: output, token: token) else { return }
        self.file = file
    }

    package enum Outcome: Equatable { case pending, absent, present(FileState) }

    /// What was read; `pending`: nothing is complete.
    package func take() -> Outcome {
        let done = (try? thread.collect()) ?? []
        guard let end = done.first(where: { $0.token == token }), let file else { return .pending }
        self.file = nil
        let size = MemoryLayout<clinux_file_state>.size
        let bytes = (try? MemoryFile.contents(file.descriptor, limit: 1 << 16)) ?? []
        guard end.errno == 0, bytes.count >= size else { return .absent }
        let state = bytes.withUnsafeBytes { $0.loadUnaligned(as: clinux_file_state.self) }
        watch = state.watch >= 0 ? state.watch : nil
        guard state.exists != 0 else { return .absent }
        return .present(FileState(size: state.size, seconds: state.seconds, nanoseconds: state.nanoseconds))
    }
}
