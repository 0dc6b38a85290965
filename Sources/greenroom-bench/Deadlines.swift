import Glibc
import JSON
import Linux
import Posix
import Systemd

/// Measures how long after its deadline an app is killed.
func measureDeadlines(_ bench: Bench) throws {
    try measureLaunchDeadlines(bench)
    try measureTerminateDeadlines(bench)
}

private let shares = [("p50", 0.5), ("p99", 0.99), ("max", 1)]

private func measureLaunchDeadlines(_ bench: Bench) throws {
    let count = bench.hasFewApps ? 40 : 200
    let (start, step) = bench.hasFewApps ? (1500, 50) : (3000, 10)
    bench.report.section(
        "Deadline lateness",
        "from the call to the end of the process; \(count) apps that never become ready, then "
            + "\(terminating(bench)) that ignore SIGTERM")
    let (ours, theirs) = try launchDeadlines(bench, "deadlines", count, start: start, step: step)
    bench.report.add("launch deadline to end of the process", ours, "timerfd, kill, waitpid", theirs, at: shares)
}

/// Launches apps that never become ready, with different deadlines. The result is the time from the call to the end of the
/// process, minus the deadline. The peer is a program that only waits for the same number of timers and kills a child at
/// each one.
///
/// - Parameters:
///   - name: of the directory of the daemon.
///   - start: the first deadline in milliseconds.
///   - step: between two of them.
func launchDeadlines(_ bench: Bench, _ name: String, _ count: Int, start: Int, step: Int) throws
    -> (ours: Samples, theirs: Samples)
{
    let board = try Board(slots: 2 * count)
    let manifests = (0..<count).map { number in
        (
            "app\(number)",
            Greenroom.manifest(
                [bench.app, "wait", board.path, "\(number)"], app: "Type=notify",
                lifecycle: "LaunchDeadlineSec=\(start + step * number)ms")
        )
    }
    // A launch that waits for a slot (L52) would be measured as a late deadline: none of these apps becomes ready.
    let greenroom = try Greenroom(
        bench, name, apps: manifests, configuration: "[Manager]\nLaunchesAtOnce=infinity\n")
    let first = clockNow() + UInt64(start) * 1_000_000
    let peer = try spawnChild([
        bench.app, "timers", board.path, "\(count)", "\(count)", "\(first)", "\(step * 1_000_000)",
    ])
    var watch = EndWatch()
    for number in 0..<count {
        let due = clockNow() + UInt64(start + step * number) * 1_000_000
        _ = try greenroom.beginLaunch("app\(number)", background: true)
        // Launches one app at a time, so that no launch delays another one.
        try eventually("a program runs") { board.time(number) != 0 }
        try watch.add(board.pid(number), due: due, isOurs: true)
    }
    watch.waitForAll()
    waitForChild(peer)
    var theirs = Samples()
    for number in 0..<count { theirs.add(Double(board.time(count + number)) / 1e9) }
    greenroom.stop()
    return (watch.ours, theirs)
}

private func terminating(_ bench: Bench) -> Int { bench.hasFewApps ? 15 : 60 }

/// Terminates apps that ignore SIGTERM, with a deadline of 1 s.
private func measureTerminateDeadlines(_ bench: Bench) throws {
    let count = terminating(bench)
    let board = try Board(slots: 2 * count)
    let manifests = (0..<count).map {
        (
            "app\($0)",
            Greenroom.manifest(
                [bench.app, "stubborn", board.path, "\($0)"],
                lifecycle: "TerminateDeadlineSec=1s")
        )
    }
    // All apps are in the foreground: in the background they would run in the idle class (L19), unlike supervisord's.
    let greenroom = try Greenroom(
        bench, "terminating", apps: manifests, configuration: "[Manager]\nForegroundLimit=\(count)\n")
    for (name, _) in manifests { try greenroom.finish(try greenroom.beginLaunch(name, background: false)) }
    let command = [bench.app, "stubborn", board.path, "%(process_num)d"]
    let section = Supervisor.program(
        "app", command, count: count, first: count, starts: true, more: "stopwaitsecs=1")
    let supervisor = try Supervisor(bench, "supervisor-terminating", programs: section)
    try board.awaitTimes(0..<2 * count, "all programs run")
    var watch = EndWatch()
    for number in 0..<count {
        try watch.add(board.pid(number), due: clockNow() + 1_000_000_000, isOurs: true)
        _ = try greenroom.begin("Terminate", [.string("app\(number)"), .bool(false)])
        watch.wait(milliseconds: 10)
        try watch.add(board.pid(count + number), due: clockNow() + 1_000_000_000, isOurs: false)
        try supervisor.call("supervisor.stopProcess", [.string("app:\(count + number)"), .bool(false)])
        watch.wait(milliseconds: 10)
    }
    watch.waitForAll()
    greenroom.stop()
    supervisor.stop()
    bench.report.add(
        "SIGTERM ignored, killed after 1 s", watch.ours, "supervisord", watch.theirs, at: shares)
}

/// Measures when processes end relative to their deadlines, which are in nanoseconds.
private struct EndWatch {
    private var waiting: [(process: Linux.Process, due: UInt64, isOurs: Bool)] = []
    private(set) var ours = Samples()
    private(set) var theirs = Samples()

    mutating func add(_ pid: Int32, due: UInt64, isOurs: Bool) throws {
        guard let process = try Process.open(pid) else {
            throw BenchFailure("process \(pid) ended before its deadline")
        }
        waiting.append((process, due, isOurs))
    }

    mutating func waitForAll() {
        while !waiting.isEmpty { wait(milliseconds: 60_000) }
    }

    /// Records the processes that end within this time. Returns early if there are none left.
    mutating func wait(milliseconds: Int) {
        let end = clockNow() + UInt64(milliseconds) * 1_000_000
        while !waiting.isEmpty {
            let now = clockNow()
            guard now < end else { return }
            var polled = waiting.map { pollfd(fd: $0.process.descriptor.raw, events: Int16(POLLIN), revents: 0) }
            guard poll(&polled, nfds_t(polled.count), Int32((end - now) / 1_000_000 + 1)) > 0 else { continue }
            let time = clockNow()
            for index in polled.indices.reversed() where polled[index].revents != 0 {
                let ended = waiting.remove(at: index)
                if ended.isOurs { ours.add(from: ended.due, to: time) } else { theirs.add(from: ended.due, to: time) }
            }
        }
    }
}
