import Control
import Glibc
import Linux
import Posix

/// The options of a benchmark run and its report.
final class Bench {
    let programs: String
    let app: String
    /// The scripts that start real programs and let them use memory.
    let scripts: String
    let supervisord = "/usr/bin/supervisord"
    /// The directory for configuration, state and logs.
    let folder: String
    /// The directory for sockets and runtime files, on a file system in memory such as /run if there is one.
    let runtime: String
    let isQuick: Bool
    /// Whether the measurements use fewer apps. Without cgroups, greenroomd reads all of /proc to find the processes of one app,
    /// which takes minutes with 1,000 apps.
    private(set) var hasFewApps = false
    let report: Report
    /// How many apps the parts `turns` and `sockets` use; 0: 1,000, and if the part is chosen 10,000 too, which takes minutes.
    private let apps: Int
    /// For how long the parts `waking`, `waking-web`, `hosting` and `hosting-show` send requests to many servers.
    let minutes: Int
    private(set) var turnSizes: [Int] = []

    init(
        programs: String, app: String, scripts: String, folder: String, runtime: String, isQuick: Bool, wantsJSON: Bool,
        apps: Int, minutes: Int
    ) {
        self.programs = programs
        self.app = app
        self.scripts = scripts
        self.folder = folder
        self.runtime = runtime
        self.isQuick = isQuick
        self.apps = apps
        self.minutes = max(1, minutes)
        report = Report(wantsJSON: wantsJSON)
    }

    private static let parts: [(name: String, measure: @Sendable (Bench) throws -> Void)] = [
        ("launches", measureLaunches), ("resuming", measureResuming), ("deadlines", measureDeadlines),
        ("rest", measureFootprint), ("turns", measureTurns), ("sockets", measureHeldSockets), ("core", measureCore),
        ("descriptors", measureDescriptors), ("memory", measureMemory), ("waking", measureWaking),
        ("waking-shapes", measureShapes), ("waking-web", measureWeb),
        ("hosting", measureHosting), ("hosting-show", measureHostingShow), ("connection", measureConnection),
    ]

    /// Take some minutes, so they are measured only if they are chosen.
    private static let longParts: Set = ["waking", "waking-shapes", "waking-web", "hosting", "hosting-show"]

    /// - Parameter only: the name of the part to measure, or `nil` for all parts but the long ones.
    /// - Returns: whether there is such a part.
    func run(only: String?) throws -> Bool {
        let chosen = Self.parts.filter { only == nil ? !Self.longParts.contains($0.name) : $0.name == only }
        guard !chosen.isEmpty else { return false }
        try describeMachine()
        turnSizes = apps > 0 ? [apps] : hasFewApps ? [200] : only == nil ? [1000] : [1000, 10_000]
        for part in chosen { try part.measure(self) }
        report.finish()
        return true
    }

    /// Records the cgroup in a containment description, so that the script removes it if this program is killed.
    func record(groupsOf containment: String) {
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
            ("peers", "supervisord \(supervisorVersion), and plain system calls as the lower bound"),
        ]
        greenroom.stop()
        report.begin()
    }

    private var supervisorVersion: String {
        let status = text("/var/lib/dpkg/status").split(separator: "\n")
        guard let start = status.firstIndex(of: "Package: supervisor"),
            let version = status[start...].first(where: { $0.hasPrefix("Version: ") })
        else { return "of unknown version" }
        return String(version.dropFirst("Version: ".count))
    }

    private func text(_ path: String) -> String {
        (try? readFile(at: path, limit: 64 << 20)).map { String(decoding: $0, as: UTF8.self) } ?? ""
    }

    /// The value of the first line of the form `NAME : VALUE`.
    private func line(_ path: String, _ name: String) -> String? {
        let line = text(path).split(separator: "\n").first { $0.hasPrefix(name) }
        return line?.split(separator: ":", maxSplits: 1).last.map { String($0.drop { $0 == " " || $0 == "\t" }) }
    }
}
