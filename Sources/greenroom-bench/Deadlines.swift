import Glibc
import JSON
import Linux
import Systemd

/// How much later than promised a deadline's consequence comes.
func measureDeadlines(_ bench: Bench) throws {
    try measureLaunchDeadlines(bench)
    try measureTerminateDeadlines(bench)
}

private let shares = [("p50", 0.5), ("p99", 0.99), ("max", 1)]

/// Apps that never say that they are ready, each with a deadline of its own; beside it a program that does nothing but wait
/// for as many timers.
private func measureLaunchDeadlines(_ bench: Bench) throws {
    let count = bench.isQuick ? 40 : 200
    let step = 10
    bench.report.section(
        "Deadline lateness",
        "\(count) apps that hang in their launch, a deadline each \(step) ms: when the daemon acts, by its receipts")
    let board = try Board(slots: 2 * count)
    let manifests = (0..<count).map { number in
        (
            "app\(number)",
            Greenroom.manifest(
                [bench.app, "wait", board.path, "\(number)"], app: "Type=notify",
                lifecycle: "LaunchDeadlineSec=\(500 + step * number)ms")
        )
    }
    let greenroom = try Greenroom(bench, "deadlines", apps: manifests)
    let pending = try manifests.map { try greenroom.beginLaunch($0.0, background: true) }
    let first = clockNow() + 500_000_000
    let peer = try spawnBare([
        bench.app, "timers", board.path, "\(count)", "\(count)", "\(first)", "\(step * 1_000_000)",
    ])
    var (ours, theirs) = (Samples(), Samples())
    for one in pending {
        let answer = try greenroom.finish(one)
        guard let use = answer["receipt"]?["deadline"], let allowed = use["allowedSeconds"]?.numberValue,
            let wall = use["wallSeconds"]?.numberValue
        else {
            throw BenchFailure("an app that hangs was not ended by its deadline: \(answer.serialized(pretty: false))")
        }
        ours.add(wall - allowed)
    }
    reapBare(peer)
    for number in 0..<count { theirs.add(Double(board.time(count + number)) / 1e9) }
    greenroom.stop()
    bench.report.add("launch deadline", ours, "bare timerfd", theirs, at: shares)
}

/// Apps that are deaf to SIGTERM, and a second for each: from outside, from the call to the process's end.
private func measureTerminateDeadlines(_ bench: Bench) throws {
    let count = bench.isQuick ? 15 : 60
    let board = try Board(slots: 2 * count)
    let manifests = (0..<count).map {
        (
            "app\($0)",
            Greenroom.manifest(
                [bench.app, "stubborn", board.path, "\($0)"],
                lifecycle: "TerminateDeadlineSec=1s\nSuspendDelaySec=1min")
        )
    }
    let greenroom = try Greenroom(bench, "terminating", apps: manifests)
    for (name, _) in manifests { try greenroom.finish(try greenroom.beginLaunch(name, background: true)) }
    let command = [bench.app, "stubborn", board.path, "%(process_num)d"]
    let section = Supervisor.program(
        "app", command, count: count, first: count, starts: true, more: "stopwaitsecs=1")
    let supervisor = try Supervisor(bench, "supervisor-terminating", programs: section)
    try board.awaitTimes(0..<2 * count, "all programs run")
    var watch = EndWatch()
    for number in 0..<count {
        try watch.add(board.pid(number), isOurs: true)
        _ = try greenroom.begin("Terminate", [.string("app\(number)"), .bool(false)])
        watch.wait(milliseconds: 10)
        try watch.add(board.pid(count + number), isOurs: false)
        try supervisor.call("supervisor.stopProcess", [.string("app:\(count + number)"), .bool(false)])
        watch.wait(milliseconds: 10)
    }
    while !watch.isOver { watch.wait(milliseconds: 20_000) }
    greenroom.stop()
    supervisor.stop()
    bench.report.add(
        "SIGKILL 1 s after SIGTERM, from outside", watch.ours, "supervisord", watch.theirs, at: shares)
}

/// Processes whose ends are waited for, each a second after it was told.
private struct EndWatch {
    private var waiting: [(process: Linux.Process, due: UInt64, isOurs: Bool)] = []
    private(set) var ours = Samples()
    private(set) var theirs = Samples()

    var isOver: Bool { waiting.isEmpty }

    mutating func add(_ pid: Int32, isOurs: Bool) throws {
        guard let process = try Process.open(pid) else { throw BenchFailure("process \(pid) has ended by itself") }
        waiting.append((process, clockNow() + 1_000_000_000, isOurs))
    }

    /// Notes who ends within this time; without any left to wait for, at once.
    mutating func wait(milliseconds: Int) {
        let end = clockNow() + UInt64(milliseconds) * 1_000_000
        while !waiting.isEmpty {
            let now = clockNow()
            guard now < end else { return }
            var polled = waiting.map { pollfd(fd: $0.process.descriptor, events: Int16(POLLIN), revents: 0) }
            guard poll(&polled, nfds_t(polled.count), Int32((end - now) / 1_000_000 + 1)) > 0 else { continue }
            let time = clockNow()
            for index in polled.indices.reversed() where polled[index].revents != 0 {
                let ended = waiting.remove(at: index)
                if ended.isOurs { ours.add(from: ended.due, to: time) } else { theirs.add(from: ended.due, to: time) }
            }
        }
    }
}
