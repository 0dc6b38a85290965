import Control
import Glibc
import Linux
import Posix

/// What all measurements have in common: where the programs are, how much is measured, and where it is told.
final class Bench {
    let programs: String
    let app: String
    let supervisord = "/usr/bin/supervisord"
    /// For what stays: configuration, state, logs.
    let folder: String
    /// For what lives as long as a daemon: in memory where the machine has such a file system, as /run is.
    let runtime: String
    let isQuick: Bool
    /// Without cgroups every look at an app is a reading of all of /proc: with a thousand it would take minutes.
    private(set) var hasFewApps = false
    let report: Report

    init(programs: String, app: String, folder: String, runtime: String, isQuick: Bool, wantsJSON: Bool) {
        self.programs = programs
        self.app = app
        self.folder = folder
        self.runtime = runtime
        self.isQuick = isQuick
        report = Report(wantsJSON: wantsJSON)
    }

    private static let parts: [(name: String, measure: @Sendable (Bench) throws -> Void)] = [
        ("launches", measureLaunches), ("resuming", measureResuming), ("deadlines", measureDeadlines),
        ("rest", measureFootprint), ("core", measureCore),
    ]

    /// - Parameter only: the one part to measure; `nil`: all.
    /// - Returns: whether there is such a part.
    func run(only: String?) throws -> Bool {
        let chosen = Self.parts.filter { only == nil || $0.name == only }
        guard !chosen.isEmpty else { return false }
        try describeMachine()
        for part in chosen { try part.measure(self) }
        report.finish()
        return true
    }

    /// Notes the cgroup that a containment names, for the script to remove should this program not come to it.
    func remember(groupsOf containment: String) {
        guard let word = containment.split(separator: " ").first(where: { $0.hasPrefix("/") }),
            let file = try? AppendFile(folder + "/groups")
        else { return }
        try? file.append(Array("\(word)\n".utf8))
    }

    private func describeMachine() throws {
        var name = utsname()
        uname(&name)
        let release = withUnsafeBytes(of: &name.release) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        let processor = line("/proc/cpuinfo", "model name") ?? "unknown"
        let memory = line("/proc/meminfo", "MemTotal").flatMap { Int($0.prefix { $0 != " " }) } ?? 0
        let greenroom = try Greenroom(self, "about")
        let containment = try greenroom.containment()
        hasFewApps = isQuick || containment.contains("by process group")
        let load = text("/proc/loadavg").prefix { $0 != " " }
        report.machine = [
            (
                "machine",
                "Linux \(release), \(sysconf(Int32(_SC_NPROCESSORS_ONLN))) × \(processor), \(memory >> 20) GiB, "
                    + "load \(load) at the start"
            ),
            ("greenroomd", "\(try greenroom.version()), \(containment)"),
            ("peers", "supervisord \(supervisorVersion), and the bare calls of the kernel: these are the floor"),
        ]
        greenroom.stop()
        report.begin()
    }

    private var supervisorVersion: String {
        let status = text("/var/lib/dpkg/status").split(separator: "\n")
        guard let start = status.firstIndex(of: "Package: supervisor"),
            let version = status[start...].first(where: { $0.hasPrefix("Version: ") })
        else { return "of another source than Debian" }
        return String(version.dropFirst("Version: ".count))
    }

    private func text(_ path: String) -> String {
        (try? readFile(at: path, limit: 64 << 20)).map { String(decoding: $0, as: UTF8.self) } ?? ""
    }

    /// The value of the first line `NAME : VALUE`.
    private func line(_ path: String, _ name: String) -> String? {
        let line = text(path).split(separator: "\n").first { $0.hasPrefix(name) }
        return line?.split(separator: ":", maxSplits: 1).last.map { String($0.drop { $0 == " " || $0 == "\t" }) }
    }
}
