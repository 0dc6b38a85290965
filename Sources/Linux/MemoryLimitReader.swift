import Glibc
import Posix

/// Finds the tightest memory limit on the way from the apps' group to the root. The files stay open: a level without a limit
/// costs two reads.
package final class MemoryLimitReader {
    package let path: MemoryPath
    private let levels: [Level]

    package init(_ path: MemoryPath) {
        self.path = path
        levels = path.groups.map { Level($0, path.version) }
    }

    /// What the limits leave to the apps.
    package struct Limits: Equatable {
        /// All groups with a limit that is not above the memory of the machine, the lowest first.
        package var all: [MemoryLimit] = []
        /// The limit below which least is available.
        package var tightest: MemoryLimit?
        /// What the apps can have in swap: at most what the machine has.
        package var swapTotal: UInt64
        package var swapFree: UInt64

        /// Returns the limit whose group is to be watched. If the group that is watched already is about as tight as the
        /// tightest one, it is kept: a new PSI trigger measures from the start.
        /// - Parameter folder: the group that is watched.
        package func watched(before folder: String?) -> MemoryLimit? {
            guard let tightest, let kept = all.first(where: { $0.folder == folder }),
                kept.available <= saturated(tightest.available, tightest.total / 16)
            else { return tightest }
            return kept
        }
    }

    /// - Parameters:
    ///   - machine: a limit above its memory is none. One that is equal counts: lxcfs shows the limit of a container as the machine's memory.
    ///   - report: gets a sentence for each group that cannot be read, once until it can be read again. It is skipped.
    package func read(machine: MemoryInfo, report: (String) -> Void) -> Limits {
        var limits = Limits(swapTotal: machine.swapTotal, swapFree: machine.swapFree)
        for level in levels {
            do {
                guard let found = try level.read(machine) else { continue }
                limits.add(found)
                level.problem = nil
            } catch {
                level.report("\(error)", report)
            }
        }
        if path.version == .one { addInvisible(machine, &limits) }
        for index in limits.all.indices { locate(&limits.all[index]) }
        if var tightest = limits.all.min(by: { $0.available < $1.available }) {
            tightest.kills = kills(tightest)
            limits.tightest = tightest
        }
        return limits
    }

    /// v1: a group above those that are mounted here, such as a container's, may have the smallest limit. Its use is not known:
    /// it is at least that of the highest group that is visible.
    private func addInvisible(_ machine: MemoryInfo, _ limits: inout Limits) {
        guard let top = levels.last, let lowest = levels.first,
            let limit = (try? lowest.stat(.one))?.hierarchicalLimit, limit <= machine.total,
            limit < limits.all.map(\.total).min() ?? .max, let found = try? top.limit(limit, "memory.stat", machine)
        else { return }
        limits.add(found)
    }

    /// Names the files that report stalls and events.
    private func locate(_ limit: inout MemoryLimit) {
        switch path.version {
        case .one: limit.pressurePath = path.appsFolder.map { $0 + "/memory.pressure" }
        case .two:
            limit.pressurePath = "\(limit.folder)/memory.pressure"
            limit.hasEvents = true
        }
    }

    /// How often a process was killed because of a limit.
    private func kills(_ limit: MemoryLimit) -> UInt64 {
        switch path.version {
        // v1 counts a kill for the group of the process, and not for those above it.
        case .one: levels.first?.value("memory.oom_control", "oom_kill") ?? 0
        case .two: MemoryEvents(of: limit.folder).kills
        }
    }
}

extension MemoryEvents {
    /// Reads the events that a group's own limits have caused. `oom_kill` counts also apps that exceed a limit of their own, and
    /// kills for the whole machine. `oom` of memory.events.local counts only shortages below this limit, and may count one for
    /// each process that waits. So the smaller of both is used: it grows only with a kill for this limit.
    package init(of folder: String) {
        func read(_ name: String) -> MemoryEvents? {
            (try? readFileIfPresent(at: "\(folder)/\(name)", limit: 4096)).flatMap { $0 }.map(
                MemoryEvents.init(parsing:))
        }
        let all = read("memory.events") ?? MemoryEvents()
        // Linux 5.2.
        guard let local = read("memory.events.local") else {
            self = all
            return
        }
        self = local
        kills = min(all.kills, local.oom)
    }
}

extension MemoryLimitReader.Limits {
    fileprivate mutating func add(_ found: Level.Found) {
        if let limit = found.limit { all.append(limit) }
        swapTotal = min(swapTotal, found.swapTotal ?? .max)
        swapFree = min(swapFree, found.swapFree ?? .max)
    }
}

/// One group, and its files.
private final class Level {
    struct Found {
        var limit: MemoryLimit?
        var swapTotal: UInt64?
        var swapFree: UInt64?
    }

    let group: MemoryPath.Group
    private let version: MemoryPath.Version
    /// What was reported last; `nil`: the group could be read.
    var problem: String?
    private let limits: [ReopenedFile]
    private let usage: ReopenedFile
    private let statistics: ReopenedFile
    private let swapLimit: ReopenedFile
    private let swapUsage: ReopenedFile

    init(_ group: MemoryPath.Group, _ version: MemoryPath.Version) {
        self.group = group
        self.version = version
        func file(_ name: String) -> ReopenedFile { ReopenedFile("\(group.folder)/\(name)") }
        statistics = file("memory.stat")
        switch version {
        case .one:
            limits = [file("memory.limit_in_bytes")]
            usage = file("memory.usage_in_bytes")
            swapLimit = file("memory.memsw.limit_in_bytes")
            swapUsage = file("memory.memsw.usage_in_bytes")
        case .two:
            limits = [file("memory.max"), file("memory.high")]
            usage = file("memory.current")
            swapLimit = file("memory.swap.max")
            swapUsage = file("memory.swap.current")
        }
    }

    func report(_ sentence: String, _ report: (String) -> Void) {
        if problem == nil { report("the memory limit of the group \(group.name.printable()) is ignored: \(sentence)") }
        problem = sentence
    }

    /// - Returns: `nil` without the memory controller, as at the root.
    func read(_ machine: MemoryInfo) throws(SystemError) -> Found? {
        var smallest: (bytes: UInt64, file: String)?
        var isPresent = false
        for file in limits {
            guard let bytes = try file.read(limit: 64) else { continue }
            isPresent = true
            guard let limit = parseLimit(bytes) else { throw unreadable(file) }
            if let limit, limit <= machine.total, limit < smallest?.bytes ?? .max {
                smallest = (limit, String(file.path.dropFirst(group.folder.count + 1)))
            }
        }
        guard isPresent else {
            if access(group.folder, F_OK) == 0 { return nil }
            throw SystemError(call: "open", errno: errno, path: group.folder)
        }
        var found = smallest == nil ? Found() : try limit(smallest?.bytes ?? 0, smallest?.file ?? "", machine)
        if machine.swapTotal > 0, version == .two { try readSwap(machine, &found) }
        return found
    }

    /// Returns what is left below a limit of this group.
    func limit(_ limit: UInt64, _ file: String, _ machine: MemoryInfo) throws(SystemError) -> Found {
        guard let used = try number(usage) else { throw unreadable(usage) }
        let stat = try stat(version)
        var available = availableMemory(below: limit, used: used, reclaimable: stat.reclaimable)
        var found = Found()
        if version == .one, machine.swapTotal > 0, let both = try number(swapLimit),
            both < saturated(machine.total, machine.swapTotal), let bothUsed = try number(swapUsage)
        {
            // RAM and swap together.
            available = min(available, availableMemory(below: both, used: bothUsed, reclaimable: stat.reclaimable))
            found.swapTotal = both - min(both, limit)
            found.swapFree = (found.swapTotal ?? 0) - min(found.swapTotal ?? 0, stat.swapped)
        }
        found.limit = MemoryLimit(
            group: group.name, folder: group.folder, file: file, total: limit, available: available)
        return found
    }

    private func readSwap(_ machine: MemoryInfo, _ found: inout Found) throws(SystemError) {
        guard let bytes = try swapLimit.read(limit: 64) else { return }
        guard let limit = parseLimit(bytes) else { throw unreadable(swapLimit) }
        guard let limit, limit < machine.swapTotal else { return }
        found.swapTotal = limit
        found.swapFree = limit - min(limit, try number(swapUsage) ?? 0)
    }

    func stat(_ version: MemoryPath.Version) throws(SystemError) -> MemoryLimitStat {
        MemoryLimitStat(parsing: try statistics.read(limit: 16 * 1024) ?? [], version)
    }

    /// Reads a key of a file that does not stay open.
    func value(_ file: String, _ key: String) -> UInt64? {
        (try? readFileIfPresent(at: "\(group.folder)/\(file)", limit: 4096)).flatMap { $0 }.flatMap {
            flatKeyed($0, key)
        }
    }

    private func number(_ file: ReopenedFile) throws(SystemError) -> UInt64? {
        guard let bytes = try file.read(limit: 64) else { return nil }
        var scanner = ByteScanner(bytes)
        return scanner.number()
    }

    private func unreadable(_ file: ReopenedFile) -> SystemError {
        SystemError(call: "parse", errno: EBADMSG, path: file.path)
    }
}
