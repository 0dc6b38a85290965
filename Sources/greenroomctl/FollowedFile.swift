import Glibc
import Posix

/// A file that an app writes its output to, and the one before it. The daemon renames a full file at a launch, and frees the space at the
/// start of one while the app runs.
final class FollowedFile {
    /// A line that is longer is printed in pieces.
    private static let longestLine = 1 << 16
    private static let chunk = 1 << 16

    let path: String
    private let format: OutputFormat
    private var file: SharedDescriptor?
    private var position: Int64 = 0
    /// The start of a line that has no end yet.
    private var rest: [UInt8] = []

    init(path: String, format: OutputFormat) {
        self.path = path
        self.format = format
    }

    // MARK: Printing

    /// Prints the last lines of both files; `nil`: all.
    func printLast(_ lines: Int?) throws(Failure) {
        let current = try Self.open(path)
        let start =
            try current.map { (file) throws(Failure) in try Self.start(of: lines, in: file) } ?? (offset: 0, lines: 0)
        let missing = lines.map { $0 - start.lines }
        if missing ?? 1 > 0, let older = try Self.open(path + "~1") {
            (file, position) = (older, try Self.start(of: missing, in: older).offset)
            try printToEnd()
            try printRest()
        }
        (file, position) = (current, start.offset)
        try printToEnd()
    }

    /// Prints what was added. A file that was renamed is read to its end before the new one.
    func printNew() throws(Failure) {
        try printToEnd()
        guard let new = try Self.open(path) else { return }
        if let file, Self.identity(file) == Self.identity(new) { return }
        try printToEnd()
        try printRest()
        (file, position) = (new, 0)
        try printToEnd()
    }

    /// Prints the last line if it has no end.
    func printRest() throws(Failure) {
        if rest.isEmpty { return }
        try write(format.bytes(rest[...])[...], to: STDOUT_FILENO)
        rest = []
    }

    private func printToEnd() throws(Failure) {
        guard let file else { return }
        // It was truncated.
        if let size = Self.size(file), size < position { (position, rest) = (0, []) }
        while true {
            let bytes = try Self.read(file, position, Self.chunk, path)
            if bytes.isEmpty { return }
            position += Int64(bytes.count)
            rest += bytes
            var shown: [UInt8] = []
            var start = rest.startIndex
            while let end = rest[start...].firstIndex(of: UInt8(ascii: "\n")) {
                shown += format.bytes(rest[start..<end])
                start = end + 1
            }
            rest.removeFirst(start)
            try write(shown[...], to: STDOUT_FILENO)
            if rest.count >= Self.longestLine { try printRest() }
        }
    }

    // MARK: Reading

    /// Whether there is no output at all.
    var isEmpty: Bool {
        [path, path + "~1"].allSatisfy { path in
            var about = stat()
            return stat(path, &about) != 0 || about.st_size == 0
        }
    }

    /// - Returns: `nil` if there is no file.
    private static func open(_ path: String) throws(Failure) -> SharedDescriptor? {
        do {
            // A FIFO in its position would block.
            let file = try Descriptor.open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY)
            try file.refuseIrregular(path)
            return SharedDescriptor(file)
        } catch {
            let hint =
                error.errno == EACCES ? "Only the user of greenroomd and root can read the output of its apps." : nil
            if error.errno == ENOENT { return nil }
            throw Failure("Cannot read \(escaped(path)): \(SystemError.text(of: error.errno))", hint: hint)
        }
    }

    private static func read(
        _ file: SharedDescriptor, _ offset: Int64, _ count: Int, _ path: String
    ) throws(Failure) -> [UInt8] {
        var result = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, used in
            repeat {
                result = pread(file.raw, buffer.baseAddress, count, off_t(offset))
            } while result < 0 && errno == EINTR
            used = max(0, result)
        }
        guard result >= 0 else { throw Failure("Cannot read \(escaped(path)): \(SystemError.text(of: errno))") }
        return bytes
    }

    /// Where the last lines begin, and how many there are.
    /// - Parameter lines: `nil`: all, which are not counted.
    private static func start(of lines: Int?, in file: SharedDescriptor) throws(Failure) -> (offset: Int64, lines: Int)
    {
        let size = size(file) ?? 0
        let first = try firstLine(file)
        guard let lines else { return (first, 0) }
        if lines <= 0 { return (size, 0) }
        var (end, found) = (size, 0)
        while end > first {
            let begin = max(first, end - Int64(chunk))
            let bytes = try read(file, begin, Int(end - begin), "")
            for index in bytes.indices.reversed() where bytes[index] == UInt8(ascii: "\n") {
                let next = begin + Int64(index) + 1
                // The end of the last line begins no other.
                if next == size { continue }
                found += 1
                if found == lines { return (next, found) }
            }
            end = begin
        }
        return (first, size > first ? found + 1 : 0)
    }

    /// The first complete line after the space that the daemon has freed.
    private static func firstLine(_ file: SharedDescriptor) throws(Failure) -> Int64 {
        var offset = Int64(lseek(file.raw, 0, 3))  // SEEK_DATA
        if offset <= 0 { return 0 }
        while true {
            let bytes = try read(file, offset, chunk, "")
            if bytes.isEmpty { return offset }
            if let end = bytes.firstIndex(of: UInt8(ascii: "\n")) { return offset + Int64(end) + 1 }
            offset += Int64(bytes.count)
        }
    }

    private static func about(_ file: SharedDescriptor) -> stat? {
        var about = stat()
        return fstat(file.raw, &about) == 0 ? about : nil
    }

    private static func size(_ file: SharedDescriptor) -> Int64? { about(file).map { Int64($0.st_size) } }

    private static func identity(_ file: SharedDescriptor) -> [UInt64]? {
        about(file).map { [UInt64($0.st_dev), UInt64($0.st_ino)] }
    }
}

/// Waits for changes of files, and for new files in their positions (inotify(7)).
struct FileChanges: ~Copyable {
    private let descriptor: Descriptor

    init(_ paths: [String]) throws(Failure) {
        let number = inotify_init1(Int32(IN_CLOEXEC))
        guard number >= 0 else { throw Failure("Cannot follow: \(SystemError.text(of: errno))") }
        descriptor = Descriptor(adopting: number)
        for path in paths {
            // Without leave to read the folder, the file that is there now is followed.
            let folder = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
            inotify_add_watch(descriptor.raw, folder, UInt32(IN_CREATE) | UInt32(IN_MOVED_TO))
            watch(path)
        }
    }

    /// Watches the file that is in this position now. A file that is watched already stays so.
    borrowing func watch(_ path: String) {
        inotify_add_watch(descriptor.raw, path, UInt32(IN_MODIFY) | UInt32(IN_MOVE_SELF))
    }

    /// Waits for at least one change.
    borrowing func wait() throws(Failure) {
        var events = [UInt8](repeating: 0, count: 1 << 14)
        while read(descriptor.raw, &events, events.count) < 0 {
            guard errno == EINTR else { throw Failure("Cannot follow: \(SystemError.text(of: errno))") }
        }
    }
}
