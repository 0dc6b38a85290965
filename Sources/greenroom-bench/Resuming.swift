import Glibc
import Linux
import Systemd

/// Measures the time from the request to resume a suspended program to its next instruction.
func measureResuming(_ bench: Bench) throws {
    let count = bench.isQuick ? 40 : 300
    bench.report.section(
        "Suspended → first instruction",
        "from the call of Activate, or the plain system call, to the time that the program records; \(count) each, alternating"
    )
    let resuming = try Resuming(bench)
    for (name, kind) in [("in a busy loop", Resuming.spinning), ("asleep in read(2)", Resuming.sleeping)] {
        let results = try resuming.measure(kind, count)
        bench.report.add(name, results.ours, "cgroup.freeze ← 0", results.thawed)
        bench.report.add(name, results.ours, "SIGCONT", results.continued)
        bench.report.add(
            "\(name), until the reply", results.answers, "cgroup.freeze ← 0", results.thawed, at: [("p50", 0.5)])
    }
    resuming.stop()
}

/// How long after the request programs have run again.
struct Resumed {
    var ours = Samples()
    /// Until the reply to the call.
    var answers = Samples()
    /// Frozen in a cgroup; `nil` if no cgroup can be created on this machine.
    var thawed: Samples?
    var continued = Samples()
}

final class Resuming {
    static let spinning = 0
    static let sleeping = 1

    private let bench: Bench
    private let board: Board
    private let greenroom: Greenroom
    private let group: BareGroup?
    private let pipes: [Pipe]
    private var children: [pid_t] = []
    private var sequence: UInt64 = 0

    /// What suspends an app. Each owner has one app of each kind.
    private enum Owner: Int, CaseIterable { case greenroom, group, signals }

    init(_ bench: Bench) throws {
        self.bench = bench
        let board = try Board(slots: 2 * Owner.allCases.count)
        let pipes = try Owner.allCases.map { _ in try Pipe() }
        self.board = board
        self.pipes = pipes
        group = try BareGroup(bench)
        func command(_ owner: Owner, _ kind: Int) -> [String] {
            let slot = "\(Self.slot(owner, kind))"
            return kind == Self.spinning
                ? [bench.app, "spin", board.path, slot]
                : [bench.app, "asleep", board.path, slot, pipes[owner.rawValue].readingPath]
        }
        let manifests = [Self.spinning, Self.sleeping].map {
            ("app\($0)", Greenroom.manifest(command(.greenroom, $0), lifecycle: "SuspendDelaySec=0"))
        }
        greenroom = try Greenroom(bench, "resuming", apps: manifests)
        for kind in [Self.spinning, Self.sleeping] {
            if let group { try start(.group, kind) { try group.start(command(.group, kind), kind) } }
            try start(.signals, kind) { self.children.append(try spawnChild(command(.signals, kind))) }
            try start(.greenroom, kind) {
                try self.greenroom.finish(try self.greenroom.beginLaunch("app\(kind)", background: false))
            }
            // Apps that are not measured are suspended.
            try group?.freeze(kind)
            stopChild(kind)
            try background(kind)
        }
    }

    private static func slot(_ owner: Owner, _ kind: Int) -> Int { owner.rawValue * 2 + kind }

    private func start(_ owner: Owner, _ kind: Int, _ body: () throws -> Void) throws {
        try body()
        let slot = Self.slot(owner, kind)
        try board.awaitTimes(slot..<slot + 1, "the program runs")
    }

    func stop() {
        greenroom.stop()
        group?.remove()
        for child in children {
            kill(child, SIGKILL)
            waitForChild(child)
        }
    }

    // MARK: Suspending

    private func background(_ kind: Int) throws {
        try greenroom.call("Background", [.string("app\(kind)")])
        try greenroom.next(state: "suspended", of: "app\(kind)")
    }

    private func stopChild(_ kind: Int) {
        kill(children[kind], SIGSTOP)
        var status: Int32 = 0
        while waitpid(children[kind], &status, WUNTRACED) < 0, errno == EINTR {}
    }

    func measure(_ kind: Int, _ count: Int) throws -> Resumed {
        var results = Resumed()
        var (answers, thawed) = (Samples(), Samples())
        for _ in 0..<count {
            try resume(.greenroom, kind, &results.ours) {
                let start = clockNow()
                try self.greenroom.call("Activate", [.string("app\(kind)")])
                answers.add(from: start, to: clockNow())
            }
            try background(kind)
            if let group {
                try resume(.group, kind, &thawed) { try group.thaw(kind) }
                try group.freeze(kind)
            }
            try resume(.signals, kind, &results.continued) { kill(self.children[kind], SIGCONT) }
            stopChild(kind)
        }
        results.answers = answers
        results.thawed = group == nil ? nil : thawed
        return results
    }

    private func resume(_ owner: Owner, _ kind: Int, _ samples: inout Samples, _ body: () throws -> Void) throws {
        let slot = Self.slot(owner, kind)
        sequence += 1
        let number = sequence
        board.request(slot, number)
        if kind == Self.sleeping { try pipes[owner.rawValue].writeByte() }
        // All processes are idle before the measurement, as when a user returns to an app.
        rest(microseconds: 2000)
        let start = clockNow()
        try body()
        try eventually("a program that was suspended runs", everyMicroseconds: 50) { board.answered(slot) == number }
        samples.add(from: start, to: board.time(slot))
    }
}

/// A cgroup for each program, and the files that freeze them.
private final class BareGroup {
    private let containment: Containment
    private var enclosures: [Enclosure] = []
    private var files: [Int32] = []
    private var starts: [Linux.Process] = []

    /// - Returns: `nil` if no cgroup can be created on this machine.
    init?(_ bench: Bench) throws {
        let name = "greenroom-bench-\(getpid())"
        let mode = ContainmentMode.detect(name: name)
        guard case .cgroup(let root) = mode else { return nil }
        bench.record(groupsOf: root.path)
        containment = try Containment(mode: mode, name: name)
    }

    func start(_ command: [String], _ kind: Int) throws {
        let enclosure = try containment.create(app: "bare", run: UInt64(kind))
        guard let path = enclosure.path, let descriptor = enclosure.cgroupDescriptor else {
            throw BenchFailure("cannot create a cgroup")
        }
        let file = open(path + "/cgroup.freeze", O_WRONLY | O_CLOEXEC)
        guard file >= 0 else { throw BenchFailure("\(path)/cgroup.freeze: error \(errno)") }
        var starting = try startProcess(
            SpawnRequest(executable: command[0], arguments: Array(command.dropFirst()), cgroup: descriptor))
        starts.append(starting.process)
        enclosures.append(enclosure)
        files.append(file)
        try eventually("\(command[0]) is executed") { try starting.outcome() != .pending }
    }

    func freeze(_ kind: Int) throws {
        try put("1", kind)
        try eventually("a group is frozen") { try self.enclosures[kind].isFrozen() }
    }

    func thaw(_ kind: Int) throws { try put("0", kind) }

    private func put(_ text: StaticString, _ kind: Int) throws {
        guard write(files[kind], text.utf8Start, 1) == 1 else { throw BenchFailure("cgroup.freeze: error \(errno)") }
    }

    func remove() {
        for enclosure in enclosures { _ = try? enclosure.killAll() }
        for process in starts { waitForChild(process.pid) }
        for file in files { close(file) }
        try? eventually("the cgroup is removed") { try self.containment.removeRoot() == .removed }
    }
}

/// A pipe whose reading end another process opens by a path.
private final class Pipe {
    private var ends: [Int32] = [-1, -1]

    init() throws {
        guard pipe(&ends) == 0 else { throw BenchFailure("pipe: error \(errno)") }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    }

    deinit { for end in ends { close(end) } }

    var readingPath: String { "/proc/\(getpid())/fd/\(ends[0])" }

    func writeByte() throws {
        var byte: UInt8 = 1
        guard write(ends[1], &byte, 1) == 1 else { throw BenchFailure("write: error \(errno)") }
    }
}
