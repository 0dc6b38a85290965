import Posix

/// Identifies a process: pids are reused, a pid together with its start time is not.
package struct ProcessKey: Hashable {
    package var pid: Int32
    /// In clock ticks since boot.
    package var startTime: UInt64

    package init(pid: Int32, startTime: UInt64) {
        self.pid = pid
        self.startTime = startTime
    }
}

extension ProcessStat {
    package var key: ProcessKey { ProcessKey(pid: pid, startTime: startTime) }
}

/// All live processes of the machine, for process-group mode. All families share one table, so that the environment of each
/// process is read once.
final class ProcessTable {
    let proc: ProcFS
    /// The values of the variable; `nil` for a process without it.
    private var markers: [ProcessKey: String?] = [:]

    static let variable = "GREENROOM_RUN"

    init(proc: ProcFS) { self.proc = proc }

    /// Removes the markers of processes that have ended.
    func prune(_ alive: some Sequence<ProcessKey>, count: Int) {
        guard markers.count > 2 * count + 64 else { return }
        let alive = Set(alive)
        markers = markers.filter { alive.contains($0.key) }
    }

    func marker(of stat: ProcessStat) throws(SystemError) -> String? {
        if let known = markers[stat.key] { return known }
        // Without any environment: no permission, the process has ended, or it is executing a program and has no environment
        // for a moment. So the result is not kept.
        guard let environment = try proc.environment(of: stat.pid), !environment.isEmpty else { return nil }
        let prefix = Array("\(Self.variable)=".utf8)
        let marker = environment.first { $0.starts(with: prefix) }.map { $0.dropFirst(prefix.count).text }
        markers[stat.key] = .some(marker)
        return marker
    }
}

/// The value of the variable: `NAME:APP:RUN:RANDOM`, with the name of the daemon's group. The ID of an instance may contain colons.
struct RunMarker {
    let app: String
    let run: UInt64

    /// `nil`: it is the marker of another daemon, or no marker.
    init?(_ value: String, of name: String) {
        guard value.hasPrefix(name + ":") else { return nil }
        let parts = value.dropFirst(name.count + 1).split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count >= 3, let run = UInt64(parts[parts.count - 2]) else { return nil }
        app = parts.dropLast(2).joined(separator: ":")
        self.run = run
    }

    static func value(_ name: String, _ app: String, _ run: UInt64, random: UInt64) -> String {
        "\(name):\(app):\(run):\(String(random, radix: 16))"
    }
}
