import Control
import Glibc
import Linux
import Posix

/// What `greenroom-bench` is called with.
struct BenchOptions {
    /// The directory of greenroomd and greenroom-sim.
    var programs = ""
    /// The program that the benchmark starts as an app.
    var app = ""
    /// The scripts that start real programs and let them use memory.
    var scripts = ""
    /// The directory for configuration, state and logs.
    var folder = ""
    /// The directory for sockets and runtime files, on a file system in memory such as /run if there is one.
    var runtime = ""
    var isQuick = false
    var wantsJSON = false
    /// How many apps the parts `turns` and `sockets` use; 0: 1,000, and if the part is chosen 10,000 too, which takes minutes.
    var apps = 0
    /// For how long the parts `waking`, `waking-web`, `hosting` and `hosting-show` send requests to many servers.
    var minutes = 1
    /// The commit of the programs.
    var commit: String?
    /// The file for the run as JSON.
    var recording: String?
}

/// A benchmark run and its report.
final class Bench {
    let programs: String
    let app: String
    let scripts: String
    let supervisord = "/usr/bin/supervisord"
    let folder: String
    let runtime: String
    let isQuick: Bool
    /// Whether the measurements use fewer apps. Without cgroups, greenroomd reads all of /proc to find the processes of one app,
    /// which takes minutes with 1,000 apps.
    private(set) var hasFewApps = false
    let report: Report
    private let apps: Int
    let minutes: Int
    let commit: String?
    private(set) var turnSizes: [Int] = []

    init(_ options: BenchOptions) {
        programs = options.programs
        app = options.app
        scripts = options.scripts
        folder = options.folder
        runtime = options.runtime
        isQuick = options.isQuick
        apps = options.apps
        minutes = max(1, options.minutes)
        commit = options.commit
        report = Report(wantsJSON: options.wantsJSON, recording: options.recording)
    }

    private static let parts: [(name: String, measure: @Sendable (Bench) throws -> Void)] = [
        ("launches", measureLaunches), ("resuming", measureResuming), ("deadlines", measureDeadlines),
        ("rest", measureFootprint), ("turns", measureTurns), ("sockets", measureHeldSockets), ("core", measureCore),
        ("descriptors", measureDescriptors), ("memory", measureMemory), ("waking", measureWaking),
        ("waking-shapes", measureShapes), ("waking-many", measureMany), ("waking-web", measureWeb),
        ("hosting", measureHosting), ("hosting-show", measureHostingShow), ("connection", measureConnection),
    ]

    /// Take some minutes, so they are measured only if they are chosen.
    private static let longParts: Set = [
        "waking", "waking-shapes", "waking-many", "waking-web", "hosting", "hosting-show",
    ]

    /// - Parameter only: the name of the part to measure, or `nil` for all parts but the long ones.
    /// - Returns: whether there is such a part.
    func run(only: String?) throws -> Bool {
        let chosen = Self.parts.filter { only == nil ? !Self.longParts.contains($0.name) : $0.name == only }
        guard !chosen.isEmpty else { return false }
        try describeMachine()
        turnSizes = apps > 0 ? [apps] : hasFewApps ? [200] : only == nil ? [1000] : [1000, 10_000]
        for part in chosen {
            report.part = part.name
            try part.measure(self)
        }
        try report.finish()
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
        let greenroom = try Greenroom(self, "about")
        let containment = try greenroom.containment()
        hasFewApps = isQuick || containment.contains("by process group")
        let built = commit.map { " of \($0)" } ?? ""
        let version = "\(try greenroom.version())\(built), \(containment)"
        greenroom.stop()
        report.begin([
            Run.Fact(
                name: "machine", value: "\(Machine.current()), \(Machine.memory), load \(Machine.load) at the start"),
            Run.Fact(name: "greenroomd", value: version),
            Run.Fact(
                name: "peers",
                value: "supervisord \(Machine.supervisorVersion), and plain system calls as the lower bound"),
        ])
    }
}
