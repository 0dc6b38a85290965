import Control
import Glibc
import Linux
import Posix

/// What apps use of the processor, by the kernel's counters: of the control group of the app, and without control groups of its
/// main process. This program reads them itself, so that the daemon has no work for it.
struct ProcessorMeter {
    private struct Counter {
        var pid: Int32
        /// The file `cpu.stat` of the app's group; `nil`: the app has none.
        var file: String?
        var used = Duration.zero
        var read = Duration.zero
    }

    private var counters: [String: Counter] = [:]
    private static let ticks = sysconf(Int32(_SC_CLK_TCK))

    init() {}

    /// Reads the counters of all apps that can run.
    /// - Returns: for each app that was read before, too, the share of one processor since then.
    mutating func measure(_ apps: [AppStatus], at now: Duration) -> [String: Double] {
        var shares: [String: Double] = [:]
        var next: [String: Counter] = [:]
        for app in apps {
            // A frozen app uses nothing.
            guard let pid = app.pid, app.state != "suspended", app.state != "notRunning" else { continue }
            let old = counters[app.id].flatMap { $0.pid == pid ? $0 : nil }
            var counter = old ?? Counter(pid: pid, file: Self.groupFile(app.id, pid))
            guard let used = Self.used(counter) else { continue }
            let time = now - counter.read
            if old != nil, time > .zero { shares[app.id] = max(0, (used - counter.used) / time) }
            (counter.used, counter.read) = (used, now)
            next[app.id] = counter
        }
        counters = next
        return shares
    }

    private static func used(_ counter: Counter) -> Duration? {
        if let file = counter.file {
            guard let bytes = try? readFile(at: file, limit: 1 << 14) else { return nil }
            let text = String(decoding: bytes, as: UTF8.self)
            guard text.hasPrefix("usage_usec ") else { return nil }
            return Int64(text.dropFirst(11).prefix { $0.isNumber }).map { .microseconds($0) }
        }
        guard let bytes = try? readFile(at: "/proc/\(counter.pid)/stat", limit: 1 << 12),
            let stat = ProcessStat(parsing: bytes), ticks > 0
        else { return nil }
        return .microseconds(Int64((stat.ownTicks + stat.childTicks) * 1_000_000 / UInt64(ticks)))
    }

    /// The daemon names the groups `APP.runN`. In other groups there are processes of several apps.
    private static func groupFile(_ app: String, _ pid: Int32) -> String? {
        guard let bytes = try? readFile(at: "/proc/\(pid)/cgroup", limit: 1 << 14) else { return nil }
        for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n") where line.hasPrefix("0::") {
            let parts = line.dropFirst(3).split(separator: "/")
            guard let last = parts.lastIndex(where: { $0.hasPrefix(app + ".run") }) else { return nil }
            let path = parts[...last].joined(separator: "/")
            return ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map { "\($0)/\(path)/cpu.stat" }
                .first { access($0, R_OK) == 0 }
        }
        return nil
    }
}
