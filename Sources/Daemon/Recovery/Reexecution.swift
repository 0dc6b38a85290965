import Glibc
import Linux
import Posix

/// Executes the installed program in this process, so that apps stay its children and no descriptor is lost. A table in
/// a memfd names the descriptors that are passed on: a line `NAME NUMBER` each.
enum Reexecution {
    /// The variable that contains the table's descriptor.
    static let variable = "GREENROOM_REEXEC_FD"
    /// The longest table in bytes.
    private static let longest = 16 << 20

    /// Replaces this program. Returns only by throwing.
    /// - Parameter path: `executable()`.
    /// - Throws: why this program still runs.
    static func run(_ path: String, _ descriptors: [(name: String, descriptor: SharedDescriptor)]) throws {
        let lines = descriptors.map { "\($0.name) \($0.descriptor.raw)\n" }.joined()
        let table = SharedDescriptor(try MemoryFile.sealed("greenroom-reexec", Array(lines.utf8)))
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

    /// The descriptors that the previous program passed on; `nil`: this one was not executed by reexec.
    static func takeTable() throws -> [(name: String, descriptor: SharedDescriptor)]? {
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
        return try String(decoding: bytes, as: UTF8.self).split(separator: "\n").map { line in
            let words = line.split(separator: " ")
            guard words.count == 2, let raw = Int32(words[1]), raw > 2, fcntl(raw, F_GETFD) >= 0
            else { throw Problem("\(variable): '\(line)' is not an open descriptor") }
            let descriptor = SharedDescriptor(Descriptor(adopting: raw))
            try descriptor.descriptor.setInherited(false)
            return (String(words[0]), descriptor)
        }
    }
}
