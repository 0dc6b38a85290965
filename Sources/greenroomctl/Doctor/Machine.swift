import Glibc
import Posix

/// The files of a machine that `doctor` reads. In tests: a folder with a made-up /proc, /sys and /etc. Nothing is written.
struct Machine {
    /// A prefix of every path; empty for this machine.
    var root = ""
    /// Whether the daemon runs as root.
    var isForRoot: Bool
    /// The process whose limits are those of the daemon: the daemon, or this one.
    var process = "self"

    /// Files of /proc, /sys and /etc that are shown or parsed have the size of a page.
    private static let maximumText = 64 << 10
    /// mountinfo of a host with thousands of containers.
    private static let maximumBytes = 1 << 20
    /// The most entries of a folder. /proc has one for each process.
    private static let maximumEntries = 100_000

    init(root: String = "", isForRoot: Bool) {
        self.root = root
        self.isForRoot = isForRoot
    }

    func bytes(_ path: String) -> [UInt8]? { bytes(path, Self.maximumBytes) }

    private func bytes(_ path: String, _ limit: Int) -> [UInt8]? { try? readFile(at: root + path, limit: limit) }

    /// A file without control characters but line feeds and tabs; `nil` if it does not exist, cannot be read, or is too large.
    func text(_ path: String) -> String? {
        bytes(path, Self.maximumText).map { bytes in
            String(decoding: bytes, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
                .map {
                    $0.split(separator: "\t", omittingEmptySubsequences: false).map { escaped(String($0)) }.joined(
                        separator: "\t")
                }
                .joined(separator: "\n")
        }
    }

    func lines(_ path: String) -> [Substring] { (text(path) ?? "").split(separator: "\n") }

    /// The first word of a file.
    func word(_ path: String) -> String? {
        text(path)?.split(whereSeparator: { $0 == " " || $0 == "\n" || $0 == "\t" }).first.map(String.init)
    }

    func number(_ path: String) -> UInt64? { word(path).flatMap { UInt64($0) } }

    func exists(_ path: String) -> Bool { access(root + path, F_OK) == 0 }

    /// Whether this user may write a file or folder.
    func isWritable(_ path: String) -> Bool { access(root + path, W_OK) == 0 }

    /// The names in a folder, sorted.
    func entries(_ path: String) -> [String] {
        guard let folder = opendir(root + path) else { return [] }
        defer { closedir(folder) }
        var names: [String] = []
        while names.count < Self.maximumEntries, let entry = readdir(folder) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if !name.hasPrefix(".") { names.append(name) }
        }
        return names.sorted()
    }

    /// Whether a process with this name (comm, at most 15 characters) runs.
    func runs(_ name: String) -> Bool {
        entries("/proc").contains { pid in
            pid.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
                && word("/proc/\(pid)/comm") == name
        }
    }

    /// Whether systemd is PID 1 (sd_booted(3)).
    var hasSystemd: Bool { exists("/run/systemd/system") }
}
