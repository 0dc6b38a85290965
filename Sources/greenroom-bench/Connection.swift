import Linux
import Posix

/// Measures calls of an app over its connection. The peer is a message over a pair of sockets to another process and back, which
/// is the cost of the kernel alone: two wakeups.
func measureConnection(_ bench: Bench) throws {
    let rounds = bench.isQuick ? 300 : 1000
    bench.report.section(
        "Connection of an app",
        "calls of an app over its connection and, alternating, a message of 64 bytes over a pair of sockets; \(rounds) each, "
            + "after 3 ms of idle time")
    let times = bench.folder + "/connection.times"
    let greenroom = try Greenroom(
        bench, "calls",
        apps: [
            (
                "app",
                Greenroom.manifest([bench.folder + "/connection", "\(rounds)", times], app: "Type=notify")
            )
        ])
    try greenroom.finish(try greenroom.beginLaunch("app", background: false))
    try eventually("the app has measured its calls", everyMicroseconds: 20_000, seconds: 60) { exists(at: times) }
    greenroom.stop()
    var (ping, begin, end, both) = (Samples(), Samples(), Samples(), Samples())
    for line in String(decoding: try readFile(at: times, limit: 1 << 20), as: UTF8.self).split(separator: "\n") {
        let values = line.split(separator: " ").compactMap { Double($0) }.map { $0 / 1e9 }
        guard values.count == 3 else { throw BenchFailure("the app wrote the line '\(line)'") }
        ping.add(values[0])
        begin.add(values[1])
        end.add(values[2])
        both.add(values[1] + values[2])
    }
    bench.report.add("BeginTask", begin, "ping over a socket pair", ping)
    bench.report.add("EndTask", end, "ping over a socket pair", ping)
    bench.report.add("BeginTask, then EndTask", both, "ping over a socket pair", ping)
}
