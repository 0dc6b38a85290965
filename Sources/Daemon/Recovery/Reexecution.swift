import Glibc
import Linux
import Posix

/// Exec in place: the same process with another program, so that apps stay our children and nothing is closed that is
/// worth keeping. What goes along stands in a table in memory, by name.
enum Reexecution {
    /// Says which descriptor the table is.
    static let variable = "GREENROOM_REEXEC_FD"
    /// A table is no longer than this: a line for each descriptor.
    private static let longest = 16 << 20

    /// - Throws: why this program is still the one that runs.
    static func run(_ descriptors: [(name: String, descriptor: SharedDescriptor)]) throws {
        let path = try program()
        let lines = descriptors.map { "\($0.name) \($0.descriptor.raw)\n" }.joined()
        let table = SharedDescriptor(try MemoryFile.sealed("greenroom-reexec", Array(lines.utf8)))
        let all = descriptors.map(\.descriptor) + [table]
        defer {
            // Still here: what apps are given must not include these.
            for descriptor in all { try? descriptor.descriptor.setInherited(false) }
        }
        for descriptor in all { try descriptor.descriptor.setInherited(true) }
        setenv(variable, String(table.raw), 1)
        defer { unsetenv(variable) }
        let arguments = CommandLine.arguments.map { strdup($0) } + [nil]
        defer { for argument in arguments { free(argument) } }
        // Blocked signals stay blocked and wait: nobody's SIGTERM is lost, or ends what is neither program yet.
        execve(path, arguments, environ)
        throw SystemError(call: "execve", errno: errno, path: path)
    }

    /// Where this program lies, or lay: an upgrade has put another one there.
    private static func program() throws -> String {
        var target = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink("/proc/self/exe", &target, target.count - 1)
        guard count > 0 else { throw SystemError(call: "readlink", errno: errno, path: "/proc/self/exe") }
        let path = String(decoding: target[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
        let gone = " (deleted)"
        return path.hasSuffix(gone) ? String(path.dropLast(gone.count)) : path
    }

    /// What this program was given by the one before; `nil`: it was started afresh.
    static func takeTable() throws -> [(name: String, descriptor: SharedDescriptor)]? {
        guard let text = getenv(variable).map({ String(cString: $0) }) else { return nil }
        unsetenv(variable)
        guard let raw = Int32(text), raw > 2, fcntl(raw, F_GETFD) >= 0 else {
            throw Problem("\(variable)=\(text) is no table of descriptors")
        }
        let table = Descriptor(adopting: raw)
        guard MemoryFile.isMemoryFile(table) else {
            throw Problem("\(variable)=\(text) is no table of descriptors")
        }
        guard let bytes = try MemoryFile.contents(table, limit: longest) else {
            throw Problem("\(variable)=\(text): the table of descriptors is too long")
        }
        return try String(decoding: bytes, as: UTF8.self).split(separator: "\n").map { line in
            let words = line.split(separator: " ")
            guard words.count == 2, let raw = Int32(words[1]), raw > 2, fcntl(raw, F_GETFD) >= 0
            else { throw Problem("\(variable): “\(line)” names no descriptor") }
            let descriptor = SharedDescriptor(Descriptor(adopting: raw))
            try descriptor.descriptor.setInherited(false)
            return (String(words[0]), descriptor)
        }
    }
}
