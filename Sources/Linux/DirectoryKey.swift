import CLinux
import Glibc

/// The key of a directory that is encrypted with fscrypt (Documentation/filesystems/fscrypt.rst), and the process that removes and adds it.
///
/// The calls wait for the file system, and a process that has had the key should end soon. So this program executes itself once more,
/// with a name of its own, for each of them.
package enum DirectoryKey {
    /// The name by which the program is executed.
    package static let program = "greenroom-protect"

    package enum Verb: String, Sendable {
        /// Prints a sentence if the directory cannot be protected.
        case check
        /// Removes the key. Prints `busy` if files are open, and `busy PID NAME` for at most 16 processes.
        case lock
        /// Adds the key that a command prints.
        case unlock
    }

    package static func request(_ verb: Verb, _ directory: String, _ command: [String]) -> SpawnRequest {
        SpawnRequest(
            executable: "/proc/self/exe", arguments: [verb.rawValue, directory] + command, argumentZero: program,
            environment: ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"])
    }

    /// What this process does if it was executed for a directory.
    /// - Returns: its exit status; `nil`: it was executed for something else.
    package static func run(_ arguments: [String]) -> Int32? {
        guard arguments.count >= 3, arguments[0] == program else { return nil }
        var command: [UnsafeMutablePointer<CChar>?] = arguments.dropFirst(3).map { strdup($0) } + [nil]
        return clinux_protect(arguments[1], arguments[2], &command)
    }

    /// Why a directory cannot be protected; `nil`: it can. It waits for the file system.
    package static func problem(of directory: String) -> String? {
        clinux_protect_problem(clinux_protect_check(directory)).map { String(cString: $0) }
    }
}
