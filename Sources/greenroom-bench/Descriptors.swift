import Glibc
import Linux
import Posix

/// Measures what a start of a process costs while this process has many descriptors open, as the daemon of many apps has, and
/// when it passes some on, as to an app with held sockets.
func measureDescriptors(_ bench: Bench) throws {
    let (few, many) = (100, [4_000, 19_000])
    let count = bench.isQuick ? 50 : 300
    bench.report.section(
        "Launch with many descriptors",
        "\(count) starts of /bin/true by the daemon's code until it is executed, with many descriptors open; "
            + "peer: with \(few)")
    raiseLimit(to: (many.max() ?? 0) + 500)
    let file = try Descriptor.open("/dev/null", O_RDONLY)
    for open in many {
        for passed in [0, 4] {
            var (ours, theirs) = (Samples(), Samples())
            // In turns, so that other activity on the machine affects both.
            let size = 10
            for _ in 0..<(count / size) {
                try measure(&theirs, size, having: few, passing: passed, of: file)
                try measure(&ours, size, having: open, passing: passed, of: file)
            }
            let held = passed == 0 ? "" : ", passing \(passed)"
            bench.report.add("start → executed, \(open)\(held)", ours, "with \(few) descriptors", theirs)
        }
    }
}

private func measure(
    _ samples: inout Samples, _ count: Int, having open: Int, passing passed: Int, of file: borrowing Descriptor
) throws {
    var held: [Int32] = []
    defer { for number in held { close(number) } }
    for _ in 0..<open {
        let number = fcntl(file.raw, F_DUPFD_CLOEXEC, 3)
        guard number >= 0 else { throw BenchFailure("cannot open \(open) descriptors: error \(errno)") }
        held.append(number)
    }
    var request = SpawnRequest(executable: "/bin/true")
    for number in 0..<passed {
        let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        let socket = Descriptor(adopting: socket(AF_UNIX, type, 0))
        request.passedDescriptors.append(PassedDescriptor(SharedDescriptor(socket), name: "s\(number)"))
    }
    for _ in 0..<count {
        let start = clockNow()
        var starting = try startProcess(request)
        while try starting.outcome() == .pending {
            var polled = pollfd(fd: starting.outcomeDescriptor.raw, events: Int16(POLLIN), revents: 0)
            poll(&polled, 1, -1)
        }
        samples.add(from: start, to: clockNow())
        waitForChild(starting.pid)
    }
}

/// Raises the soft limit of open files as far as the hard limit permits.
private func raiseLimit(to wanted: Int) {
    let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    var limit = rlimit()
    guard getrlimit(resource, &limit) == 0, limit.rlim_cur < rlim_t(wanted) else { return }
    limit.rlim_cur = min(limit.rlim_max, rlim_t(wanted))
    setrlimit(resource, &limit)
}
