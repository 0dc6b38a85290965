import Glibc
import Linux
import Posix

/// Executes the installed program in this process, so that apps stay its children and no descriptor is lost. A table in
/// a memfd names the descriptors that are passed on: a line `NAME NUMBER` each.
///
/// What execve(2) closes, it closes on this thread, and some of what apps send takes long to close. So descriptors that wait to
/// be closed are passed on as well, and the next program closes them.
enum Reexecution {
    /// The variable that contains the table's descriptor.
    static let variable = "GREENROOM_REEXEC_FD"
    /// The name of a descriptor that waits to be closed, or is being closed.
    static let closing = "closing"
    /// The longest table in bytes.
    private static let longest = 16 << 20

    /// Replaces this program. Returns only by throwing.
    /// - Parameter path: `executable()`.
    /// - Throws: why this program still runs.
    static func run(_ path: String, _ descriptors: [(name: String, descriptor: SharedDescriptor)]) throws {
        // Created first: it could get the number of a descriptor that is closed meanwhile.
        let table = SharedDescriptor(try MemoryFile.empty("greenroom-reexec"))
        let waiting = DescriptorCloser.holdAll()
        defer {
            setInherited(waiting, false)
            DescriptorCloser.continueAll()
        }
        setInherited(waiting, true)
        let named = descriptors.map { ($0.name, $0.descriptor.raw) } + waiting.map { (closing, $0) }
        let lines = named.map { "\($0.0) \($0.1)\n" }.joined()
        try writeAll(Array(lines.utf8), to: table.descriptor, path: "greenroom-reexec")
        try MemoryFile.seal(table.descriptor)
        let all = descriptors.map(\.descriptor) + [table]
        defer {
            // execve(2) has failed: apps must not inherit these.
            for descriptor in all { try? descriptor.descriptor.setInherited(false) }
        }
        for descriptor in all { try descriptor.descriptor.setInherited(true) }
        setenv(variable, String(table.raw), 1)
        defer { unsetenv(variable) }
        let arguments = CommandLine.arguments.map { strdup($0) } + [nil]
        defer { for argument in arguments { free(argument) } }
        // Signals stay blocked and pending, so none is lost and none ends the process before the new program handles
        // it.
        execve(path, arguments, environ)
        throw SystemError(call: "execve", errno: errno, path: path)
    }

    /// Those that were closed meanwhile are ignored. If another thread has opened one of these numbers since, the next program
    /// closes it.
    private static func setInherited(_ numbers: [Int32], _ isInherited: Bool) {
        for number in numbers { _ = fcntl(number, F_SETFD, isInherited ? 0 : FD_CLOEXEC) }
    }

    /// The path of the program that `run` executes.
    /// - Throws: if it does not exist or cannot be executed.
    static func executable() throws -> String {
        let path = try program()
        try checkErrno(access(path, X_OK), "access", path)
        return path
    }

    /// The path of this program. After an upgrade it is the path of the new one.
    private static func program() throws -> String {
        var target = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink("/proc/self/exe", &target, target.count - 1)
        guard count > 0 else { throw SystemError(call: "readlink", errno: errno, path: "/proc/self/exe") }
        let path = String(decoding: target[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
        let suffix = " (deleted)"
        return path.hasSuffix(suffix) ? String(path.dropLast(suffix.count)) : path
    }

    /// The descriptors that the previous program passed on; `nil`: this one was not executed by reexec. Those that waited to be
    /// closed are closed on a helper thread.
    static func takeTable() throws -> [(name: String, descriptor: UntakenDescriptor)]? {
        guard let text = getenv(variable).map({ String(cString: $0) }) else { return nil }
        unsetenv(variable)
        guard let raw = Int32(text), raw > 2, fcntl(raw, F_GETFD) >= 0 else {
            throw Problem("\(variable)=\(text) is not a table of descriptors")
        }
        let table = Descriptor(adopting: raw)
        guard MemoryFile.isMemoryFile(table) else {
            throw Problem("\(variable)=\(text) is not a table of descriptors")
        }
        guard let bytes = try MemoryFile.contents(table, limit: longest) else {
            throw Problem("\(variable)=\(text): the table of descriptors is too long")
        }
        let closer = DescriptorCloser()
        var passed: [(name: String, descriptor: UntakenDescriptor)] = []
        for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n") {
            let words = line.split(separator: " ")
            guard words.count == 2, let raw = Int32(words[1]), raw > 2 else { throw notOpen(line) }
            guard fcntl(raw, F_GETFD) >= 0 else {
                // The previous program was closing it.
                if words[0] == closing { continue }
                throw notOpen(line)
            }
            let descriptor = Descriptor(adopting: raw)
            try descriptor.setInherited(false)
            if words[0] == closing {
                closer.close(descriptor)
            } else {
                passed.append((String(words[0]), UntakenDescriptor(descriptor, closer: closer)))
            }
        }
        return passed
    }

    private static func notOpen(_ line: Substring) -> Problem {
        Problem("\(variable): '\(line)' is not an open descriptor")
    }
}
