import Control
import LifecycleCore
import Linux
import Manifest
import Posix
import Reports
import Systemd

/// What a reading of the machine's memory and of the limits finds. Sizes are in bytes.
struct MemoryNumbers {
    /// 0: unknown. Pages on the per-CPU lists are part of `available`, if they were counted.
    var total: UInt64 = 0
    var available: UInt64 = 0
    /// What the apps can have in swap: the least of what the machine has and of what their groups may use.
    var swapTotal: UInt64 = 0
    var swapFree: UInt64 = 0
    /// `nil`: not counted.
    var perCPULists: UInt64?
    var counters = VMStatistics()
    var limit: MemoryLimit?
    var stalls: PressureStalls?
    /// Where `stalls` was read.
    var stallsPath = ""

    func reading(_ sizes: [MemoryReading.Size]) -> MemoryReading {
        var reading = MemoryReading(total: total, available: available, sizes: sizes)
        reading.swapTotal = swapTotal
        reading.swapFree = swapFree
        reading.refaulted = counters.refaulted
        reading.limit = limit.map {
            MemoryReading.Limit(group: $0.group, total: $0.total, available: $0.available, kills: $0.kills)
        }
        reading.stalls = stalls.map { MemoryReading.Stalls(some: $0.some.total, full: $0.full.total) }
        return reading
    }
}

/// The memory of the machine and below the limits of groups: how much is available, and the kernel's reports that tasks stall
/// because it is short (PSI).
final class MemoryWatch {
    private let loop: EventLoop
    private let journal: Journal
    private unowned let events: any EventSink
    /// `nil` in process-group mode.
    private let apps: CgroupRoot?
    private let info: MemoryInfoReader?
    private let machineStalls = ReopenedFile("/proc/pressure/memory")
    private let machine: StallTriggers
    private let ownGroup = ReopenedFile("/proc/self/cgroup")
    private var membership: [UInt8]?
    private var groups: MemoryLimitReader?
    private var followed: FollowedLimit?
    /// What was logged about the limit last.
    private var reported: String?
    private var configuration = ManagerConfiguration()

    init(loop: EventLoop, journal: Journal, events: any EventSink, apps: CgroupRoot?) {
        self.loop = loop
        self.journal = journal
        self.events = events
        self.apps = apps
        info = try? MemoryInfoReader()
        machine = StallTriggers("/proc/pressure/memory", loop, events, journal)
        if info == nil {
            journal.logWarning("/proc/meminfo cannot be read: only Budget=, limits of cgroups and PSI limit memory")
        }
    }

    // MARK: Reading

    /// Reads everything now. The group of the tightest limit is watched from then on.
    func read() -> MemoryNumbers {
        var numbers = MemoryNumbers()
        let found = try? info?.read()
        if let found {
            (numbers.total, numbers.available) = (found.total, found.available)
            numbers.perCPULists = mayMatter(found) ? try? info?.perCPUPages() : nil
            numbers.available = min(found.total, found.available &+ (numbers.perCPULists ?? 0))
            numbers.counters = info?.counters() ?? VMStatistics()
        }
        readLimits(found ?? MemoryInfo(total: .max, available: .max, swapTotal: 0, swapFree: 0), &numbers)
        readStalls(&numbers)
        return numbers
    }

    /// Pages on the per-CPU lists are free, but MemAvailable includes them only some time after a process was killed. To count
    /// them takes as long as all other files together, and changes nothing while much is available.
    private func mayMatter(_ machine: MemoryInfo) -> Bool {
        let warning: MemoryAmount? = configuration.policy.warningAvailable
        return machine.available < machine.total / 2
            || machine.available / 2 < warning?.bytes(of: machine.total) ?? 0
    }

    private func readLimits(_ machine: MemoryInfo, _ numbers: inout MemoryNumbers) {
        if groups == nil || groups?.path.isOwnGroup == true { findOwnGroup() }
        (numbers.swapTotal, numbers.swapFree) = (machine.swapTotal, machine.swapFree)
        guard let limits = groups?.read(machine: machine, report: { journal.logWarning($0) }) else { return }
        numbers.limit = limits.tightest
        (numbers.swapTotal, numbers.swapFree) = (limits.swapTotal, limits.swapFree)
        follow(limits)
    }

    /// The apps' own stalls, or without them those of the machine.
    private func readStalls(_ numbers: inout MemoryNumbers) {
        for file in [followed?.stalls, machineStalls] {
            guard let file, let bytes = (try? file.read(limit: 4096)).flatMap({ $0 }),
                let stalls = PressureStalls(parsing: bytes)
            else { continue }
            (numbers.stalls, numbers.stallsPath) = (stalls, file.path)
            return
        }
    }

    /// Finds the groups whose limits count, unless this process is still in the same group as before.
    private func findOwnGroup() {
        let now = (try? ownGroup.read(limit: 64 * 1024)).flatMap { $0 } ?? []
        if membership == now { return }
        membership = now
        let mounts = (try? readFile(at: "/proc/self/mountinfo", limit: 4 << 20)) ?? []
        groups = MemoryPath(apps: apps, selfCgroup: now, mountInfo: mounts).map { MemoryLimitReader($0) }
        if groups == nil {
            log("no cgroup file system shows memory limits of this process: only the memory of the machine counts")
        }
    }

    // MARK: Watching

    /// Replaces the PSI triggers, and looks for limits again.
    func watch(_ configuration: ManagerConfiguration) {
        self.configuration = configuration
        machine.set(configuration.pressureThresholds)
        (groups, membership, followed) = (nil, nil, nil)
        _ = read()
    }

    /// Watches the group of the tightest limit.
    private func follow(_ limits: MemoryLimitReader.Limits) {
        let next = limits.watched(before: followed?.limit.folder)
        if next?.folder != followed?.limit.folder {
            followed = next.map { FollowedLimit($0, loop, events, journal) }
            followed?.triggers?.set(configuration.pressureThresholds)
        }
        report(next)
    }

    /// Logs the limit if it is another one than before.
    private func report(_ limit: MemoryLimit?) {
        let sentence = limit.map {
            "the memory of the apps is limited to \(formattedSize($0.total)) by \($0.file) of the group "
                + $0.group.printable()
        }
        if sentence == reported { return }
        reported = sentence
        log(sentence ?? "no cgroup limits the memory of the apps any more")
    }

    private func log(_ sentence: String) { journal.log(.notice, MessageID.warning, sentence) }
}

/// The limit whose group is watched.
private struct FollowedLimit {
    let limit: MemoryLimit
    let stalls: ReopenedFile?
    let triggers: StallTriggers?
    let events: LimitEvents?

    init(_ limit: MemoryLimit, _ loop: EventLoop, _ events: any EventSink, _ journal: Journal) {
        self.limit = limit
        stalls = limit.pressurePath.map { ReopenedFile($0) }
        triggers = limit.pressurePath.map { StallTriggers($0, loop, events, journal) }
        self.events = limit.hasEvents ? LimitEvents(limit.folder, loop, events, journal) : nil
    }
}
