import Glibc
import Linux
import Posix

/// Measures how many events per second the core handles, and how many bytes per second a process reads from a pipe.
func measureCore(_ bench: Bench) throws {
    bench.report.section(
        "Core without the daemon", "greenroom-sim --rate; peer: a byte through a pipe with write, poll and read")
    let theirs = pipeEvents(bench.isQuick ? 100_000 : 500_000)
    bench.report.add(
        Figure(name: "events", unit: .perSecond, ours: try coreRate(bench), peer: "pipe and poll", theirs: theirs))
}

/// Parses the output of greenroom-sim: `core: 2797755 events/s (…)`.
private func coreRate(_ bench: Bench) throws -> Double {
    let path = bench.folder + "/rate"
    let output = SharedDescriptor(try Descriptor.open(path, O_WRONLY | O_CREAT | O_TRUNC, mode: 0o600))
    let program = bench.programs + "/greenroom-sim"
    var starting = try startProcess(
        SpawnRequest(executable: program, arguments: ["--rate"], standardOutput: output))
    try eventually("\(program) is executed") { try starting.outcome() != .pending }
    waitForChild(starting.pid)
    let text = String(decoding: try readFile(at: path, limit: 4096), as: UTF8.self)
    let words = text.split(separator: " ")
    guard words.count > 2, words[0] == "core:", let rate = Double(words[1]) else {
        throw BenchFailure("unexpected output of greenroom-sim --rate: \(text)")
    }
    return rate
}

/// Measures how often per second a process can write a byte to a pipe, poll and read it: the minimum cost of an external
/// event. Like greenroom-sim, it counts processor time and takes the best of several passes.
func pipeEvents(_ count: Int) -> Double {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { return 0 }
    defer { for end in ends { close(end) } }
    var best = Double.infinity
    var byte: UInt8 = 0
    for _ in 0..<5 {
        let start = clock()
        for _ in 0..<count / 5 {
            write(ends[1], &byte, 1)
            var ready = pollfd(fd: ends[0], events: Int16(POLLIN), revents: 0)
            poll(&ready, 1, -1)
            read(ends[0], &byte, 1)
        }
        best = min(best, Double(clock() - start) / Double(CLOCKS_PER_SEC))
    }
    return Double(count / 5) / max(best, 1e-9)
}
