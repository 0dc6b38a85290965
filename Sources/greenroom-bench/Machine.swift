import Glibc
import Posix

/// The machine on which something is measured.
struct Machine: Equatable, CustomStringConvertible {
    /// The release of the kernel.
    var kernel: String
    /// How many processors are online.
    var processors: Int
    /// The model of the processors.
    var processor: String

    var description: String { "Linux \(kernel), \(processors) × \(processor)" }

    static func current() -> Machine {
        var name = utsname()
        uname(&name)
        return Machine(
            kernel: withUnsafeBytes(of: &name.release) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) },
            processors: sysconf(Int32(_SC_NPROCESSORS_ONLN)),
            processor: line("/proc/cpuinfo", "model name") ?? "unknown")
    }

    /// The size of the memory: `23 GiB`.
    static var memory: String {
        let size = line("/proc/meminfo", "MemTotal").flatMap { Int($0.prefix { $0 != " " }) } ?? 0
        return "\(size >> 20) GiB"
    }

    /// The load average of the last minute.
    static var load: String { String(text("/proc/loadavg").prefix { $0 != " " }) }

    static var supervisorVersion: String {
        let status = text("/var/lib/dpkg/status").split(separator: "\n")
        guard let start = status.firstIndex(of: "Package: supervisor"),
            let version = status[start...].first(where: { $0.hasPrefix("Version: ") })
        else { return "of unknown version" }
        return String(version.dropFirst("Version: ".count))
    }

    private static func text(_ path: String) -> String {
        (try? readFile(at: path, limit: 64 << 20)).map { String(decoding: $0, as: UTF8.self) } ?? ""
    }

    /// The value of the first line of the form `NAME : VALUE`.
    private static func line(_ path: String, _ name: String) -> String? {
        let line = text(path).split(separator: "\n").first { $0.hasPrefix(name) }
        return line?.split(separator: ":", maxSplits: 1).last.map { String($0.drop { $0 == " " || $0 == "\t" }) }
    }
}
