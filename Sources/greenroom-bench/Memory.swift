import Control
import Glibc
import Linux
import Posix
import Systemd

/// Compares the footprint of suspended apps with what the machine gains when they are killed, and measures what it costs to
/// find it out.
func measureMemory(_ bench: Bench) throws {
    bench.report.section(
        "Footprint of suspended apps",
        "memoryBytes of the app; peer: what MemAvailable, the per-CPU lists and SwapFree gain when it is killed")
    let programs: [(name: String, kind: String)] = [
        ("300 MiB of its own", "own"), ("200 MiB shared after 4 forks", "forks"), ("memfd, 4 processes", "memfd"),
        ("memfd that no process maps", "unmapped"), ("file in /dev/shm, linked", "linked"),
        ("page cache of 600 MiB", "cache"),
    ]
    for program in programs {
        let folder = "\(bench.folder)/memory-\(program.kind)"
        try compareOrLeaveOut(bench, program.name, folder, command: [bench.app, "memory", program.kind, folder])
    }
    for name in bench.isQuick ? [] : ["postgres", "redis", "jvm", "node", "chromium"] {
        let folder = "\(bench.folder)/memory-\(name)"
        let user = name == "postgres" && geteuid() == 0 ? "User=postgres" : ""
        try compareOrLeaveOut(bench, name, folder, command: ["\(bench.scripts)/\(name).sh", folder], app: user)
    }
}

/// Why a program is not measured: it is not installed, does not load, or is not suspended in time. What is wrong with the daemon is
/// another error, which ends the run.
private struct LeftOut: Error {
    var reason: String
}

/// For how long a program has loaded what it is to keep, and for how long it is then suspended, or killed, in seconds.
private let (loading, changing) = (90, 30)

/// Compares, or adds the line of a program that is left out.
private func compareOrLeaveOut(
    _ bench: Bench, _ name: String, _ folder: String, command: [String], app: String = ""
) throws {
    do {
        try compare(bench, name, folder, command: command, app: app)
    } catch let leftOut as LeftOut {
        bench.report.add(Figure(name: name, unit: .bytes, ours: nil, peer: "left out: \(leftOut.reason)", remark: ""))
    }
}

/// Launches a program into the background, waits until it is suspended, and has it killed.
private func compare(_ bench: Bench, _ name: String, _ folder: String, command: [String], app: String) throws {
    try createDirectories(at: folder)
    // Another user writes to it.
    chmod(folder, 0o1777)
    let linked = try linkedFile(folder)
    defer { if let linked { unlink(linked) } }
    let manifest = Greenroom.manifest(command, app: app, lifecycle: "BackgroundTimeSec=infinity")
    let greenroom = try Greenroom(
        bench, "daemon-" + String(folder.split(separator: "/").last ?? ""), apps: [("app", manifest)])
    defer { greenroom.stop() }
    try launch(greenroom)
    try awaitLoaded(greenroom, folder)
    // Garbage collection, and children that touch their pages.
    rest(microseconds: 3_000_000)
    try greenroom.discardSignals()
    try greenroom.call("Background", [.string("app")])
    try awaitState("suspended", greenroom)
    // The exact size follows from a helper thread.
    rest(microseconds: 1_000_000)
    let status = try AppStatus(variant: try greenroom.call("Status", [.string("app")]))
    let costs = try cost(of: try processes(of: greenroom))
    let before = try freeMemory()
    try greenroom.call("SimulatePressure", [.string("critical")])
    try awaitState("notRunning", greenroom)
    rest(microseconds: 1_200_000)
    let gained = Double(try freeMemory()) - Double(before)
    let ours = Double(status.memoryBytes)
    let difference = 100 * (ours - gained) / max(gained, 1)
    let remark = abs(difference) > 1000 ? "" : "\(difference < 0 ? "−" : "+")\(fixed(abs(difference), digits: 1)) %"
    bench.report.add(
        Figure(name: name, unit: .bytes, ours: ours, peer: costs, theirs: max(0, gained), remark: remark))
}

/// For the program that maps a file of a tmpfs: the file, which the program does not remove.
private func linkedFile(_ folder: String) throws -> String? {
    guard folder.hasSuffix("-linked") else { return nil }
    let path = "/dev/shm/greenroom-bench-\(getpid())"
    try replaceFile(at: path, with: [])
    symlink(path, folder + "/linked")
    return path
}

/// The daemon refuses the launch if the user of the program does not exist, for example.
private func launch(_ greenroom: Greenroom) throws {
    do {
        try greenroom.finish(try greenroom.beginLaunch("app", background: false))
    } catch let error as BusError where !greenroom.hasEnded {
        throw LeftOut(reason: error.message)
    }
}

/// Waits until the program has loaded what it is to keep.
private func awaitLoaded(_ greenroom: Greenroom, _ folder: String) throws {
    let end = clockNow() + UInt64(loading) * 1_000_000_000
    while access(folder + "/loaded", F_OK) != 0 {
        let status = try status(greenroom)
        guard status.state != "notRunning" else { throw LeftOut(reason: "it ended; is it installed?") }
        guard clockNow() < end else { throw LeftOut(reason: "it has not loaded after \(loading) s") }
        rest(microseconds: 100_000)
    }
}

private func awaitState(_ state: String, _ greenroom: Greenroom) throws {
    guard try !greenroom.enters(state, app: "app", seconds: changing) else { return }
    let status = try status(greenroom)
    let reason = status.suspendProblem ?? status.awake.first?.explanation
    throw LeftOut(reason: "it is \(status.state) after \(changing) s" + (reason.map { ": \($0)" } ?? ""))
}

private func status(_ greenroom: Greenroom) throws -> AppStatus {
    try AppStatus(variant: try greenroom.call("Status", [.string("app")]))
}

/// MemAvailable, the free pages of the per-CPU lists, and SwapFree, in bytes.
private func freeMemory() throws -> UInt64 {
    // Adds up the counters of the processors, which are otherwise some seconds old (kernel: sysctl/vm.rst). Root only.
    try? writeControlFile("/proc/sys/vm/stat_refresh", "1")
    let reader = try MemoryInfoReader()
    let info = try reader.read()
    return info.available + info.swapFree + (try reader.perCPUPages())
}

/// The processes in the groups of a daemon's apps.
private func processes(of greenroom: Greenroom) throws -> [Int32] {
    let words = try greenroom.containment().split(separator: " ")
    guard let group = words.first(where: { $0.hasPrefix("/") }) else { return [] }
    var pids: [Int32] = []
    for leaf in try folderEntries(at: String(group), onlyFolders: true) {
        guard let bytes = try? readFile(at: "\(group)/\(leaf)/cgroup.procs", limit: 1 << 20) else { continue }
        pids += String(decoding: bytes, as: UTF8.self).split(separator: "\n").compactMap { Int32($0) }
    }
    return pids
}

/// What the two readings of these processes take, in words: the best of five.
private func cost(of pids: [Int32]) throws -> String {
    let proc = ProcFS()
    func microseconds(_ body: (Int32) throws -> Void) rethrows -> String {
        var best = UInt64.max
        for _ in 0..<5 {
            let start = clockNow()
            for pid in pids { try body(pid) }
            best = min(best, clockNow() - start)
        }
        return fixed(Double(best) / 1000, digits: 0)
    }
    let estimate = try microseconds { _ = try proc.memory(of: $0) }
    let exact = try microseconds { _ = try proc.memoryRollup(of: $0) }
    return "\(pids.count) \(pids.count == 1 ? "process" : "processes"), estimate \(estimate) µs, exact \(exact) µs"
}
