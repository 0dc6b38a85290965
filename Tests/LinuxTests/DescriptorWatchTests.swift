import Glibc
import Posix
import TestKit
import Testing

@testable import Linux

@Suite(
    "Watching the descriptors of frozen processes",
    .enabled(if: TestContainment.isPossible && geteuid() == 0, "needs a cgroup v2 mount, and root"))
struct DescriptorWatchTests {
    struct Expected: Sendable, CustomTestStringConvertible {
        let kind: String
        let found: WatchedKind
        var bytes: UInt64 = 0
        var isEnd = false
        var testDescription: String { kind }
    }

    static let kinds = [
        Expected(kind: "pipe", found: .pipe, bytes: 3),
        Expected(kind: "fifo", found: .pipe, bytes: 3),
        Expected(kind: "blocked-pipe", found: .pipe),
        Expected(kind: "listener", found: .listener),
        Expected(kind: "tcp", found: .stream, bytes: 3),
        Expected(kind: "fin", found: .stream, isEnd: true),
        Expected(kind: "blocked-tcp", found: .stream),
        Expected(kind: "urgent", found: .stream),
        Expected(kind: "udp", found: .datagram, bytes: 3),
        Expected(kind: "unix-listener", found: .listener),
        Expected(kind: "unix", found: .stream, bytes: 3),
        Expected(kind: "unix-datagram", found: .datagram, bytes: 3),
        Expected(kind: "unix-seqpacket", found: .stream, bytes: 3),
        Expected(kind: "eventfd", found: .event),
        Expected(kind: "timerfd", found: .timer),
        Expected(kind: "inotify", found: .event),
        Expected(kind: "terminal", found: .terminal),
        Expected(kind: "queue", found: .event),
        Expected(kind: "pidfd", found: .event),
        // A socket that the process has closed, and that its epoll descriptor still watches.
        Expected(kind: "hidden", found: .epoll),
        // A socket that only a thread with a descriptor table of its own has.
        Expected(kind: "thread-listener", found: .listener),
        // The first thread has ended.
        Expected(kind: "leaderless-listener", found: .listener),
    ]

    @Test(
        "what arrives at a frozen process is found, and found by the process after the thaw (L50)",
        arguments: Self.kinds)
    func kind(_ expected: Expected) throws {
        let holder = try DescriptorHolder(expected.kind)
        defer { holder.end() }
        try holder.freeze()
        let watch = try holder.watch(fullnessMattersBelow: 2)
        #expect(watch.watched == 1)
        #expect(watch.unwatched == [])
        #expect(try watch.now().isEmpty)
        try holder.send("p")
        let input = try watch.input()
        #expect(input.kind == expected.found)
        #expect(input.bytes == expected.bytes)
        #expect(input.isEnd == expected.isEnd)
        #expect(input.pid == holder.pid)
        #expect(input.descriptor == holder.number)
        // Each change once.
        #expect(try watch.now(at: .seconds(1)).isEmpty)
        watch.close()
        #expect(holder.budget.used == 0)
        try holder.enclosure.thaw()
        #expect(try holder.send("w") == "0")
    }

    @Test(
        "what arrived before the watch is found at once (L50)", arguments: ["tcp", "udp", "unix", "pipe", "listener"])
    func before(_ kind: String) throws {
        let holder = try DescriptorHolder(kind)
        defer { holder.end() }
        try holder.freeze()
        try holder.send("p")
        let watch = try holder.watch(fullnessMattersBelow: 2)
        #expect(try watch.input().bytes == (kind == "listener" ? 0 : 3))
    }

    @Test("a timer descriptor with which the process waits in ticks does not wake it, and hides nothing (L51)")
    func tick() throws {
        let holder = try DescriptorHolder("timerfd")
        defer { holder.end() }
        try holder.freeze()
        let watch = try holder.watch(
            ignoring: [TimerTick(process: holder.pid, number: holder.number)])
        #expect(watch.watched == 0 && watch.unwatched == [])
        try holder.send("p")
        #expect(try watch.now().isEmpty)
    }

    @Test("where one byte is enough, a pipe is not asked how many wait: its writer may hold its lock (L50)")
    func unasked() throws {
        let holder = try DescriptorHolder("pipe")
        defer { holder.end() }
        try holder.freeze()
        let watch = try holder.watch(fullnessMattersBelow: 1)
        try holder.send("p")
        let input = try watch.input()
        #expect(input.bytes == 0)
        #expect(!input.isEnd)
        #expect(watch.helper == nil)
    }

    @Test(
        "what waits at a connection that a look has found is known without its lock (L50)",
        .enabled(if: !DiagnosticSocket.isSerialized, "needs Linux 6.9"), arguments: [1, 2])
    func known(threshold: UInt64) throws {
        let holder = try DescriptorHolder("tcp")
        defer { holder.end() }
        try holder.freeze()
        let (known, describer) = (try tcpSockets(), SocketDescriber())
        let watch = try holder.watch(fullnessMattersBelow: threshold)
        watch.describe = { inode in known[inode].flatMap { describer.describe(inode, $0) } }
        try holder.send("p")
        let first = try watch.input()
        #expect(first.bytes == 3 && first.peer.hasPrefix("127.0.0.1:") && !first.isEnd)
        try holder.send("p")
        #expect(try watch.input(at: .seconds(1)).bytes == 6)
        #expect(watch.helper == nil)
    }

    @Test("data and the end of the stream after it are one input, reported once (L50)")
    func dataAndEnd() throws {
        let holder = try DescriptorHolder("tcp")
        defer { holder.end() }
        try holder.freeze()
        try holder.send("p")
        let watch = try holder.watch()
        #expect(try watch.input().bytes == 3)
        try holder.send("c")
        let input = try watch.input(at: .seconds(1))
        #expect(input.isEnd)
        #expect(input.bytes == 3)
        #expect(try watch.now(at: .seconds(2)).isEmpty)
    }

    @Test("an app gets an eighth of what all apps together may have")
    func share() {
        #expect(DescriptorBudget(total: 800).limit(with: DescriptorCloser()) == 100)
        #expect(DescriptorBudget(total: 1 << 20).limit(with: DescriptorCloser()) == DescriptorWatch.maximum)
    }

    @Test("an end of the stream from before the watch is not reported (L50)")
    func oldEnd() throws {
        let holder = try DescriptorHolder("fin")
        defer { holder.end() }
        try holder.freeze()
        try holder.send("p")
        let watch = try holder.watch()
        for look in try watch.now() {
            guard case .nothing = look else {
                Issue.record("\(look)")
                continue
            }
        }
    }

    @Test("the peer of a connection is named by its address, or by its process (L50)")
    func peer() throws {
        let tcp = try DescriptorHolder("tcp")
        defer { tcp.end() }
        try tcp.freeze()
        let watch = try tcp.watch()
        try tcp.send("p")
        #expect(try watch.input().peer.hasPrefix("127.0.0.1:"))
        let unix = try DescriptorHolder("unix")
        defer { unix.end() }
        try unix.freeze()
        let other = try unix.watch()
        try unix.send("p")
        let peer = try other.input().peer
        #expect(peer.hasPrefix("PID ") && peer.hasSuffix("(greenroom-testa)"), "\(peer)")
    }

    // MARK: Limits

    @Test("a descriptor is looked at once in an interval, however much arrives (L50)")
    func interval() throws {
        let holder = try DescriptorHolder("tcp")
        defer { holder.end() }
        try holder.freeze()
        let watch = try holder.watch()
        try holder.send("p")
        #expect(try watch.input(at: .seconds(10)).bytes == 3)
        try holder.send("p")
        try LinuxTests.wait(for: #require(watch.descriptor))
        let ready = try #require(try watch.ready().first)
        guard case .rests = watch.look(ready, now: .seconds(10) + .milliseconds(99)) else {
            Issue.record("it was looked at")
            return
        }
        // Out of the set: even a flood costs nothing.
        try holder.send("p")
        #expect(try watch.now().isEmpty)
        #expect(watch.watchAgain(ready))
        #expect(try watch.input(at: .seconds(11)).bytes == 9)
    }

    @Test("10,000 descriptors of one process are watched, and closed together (L50)")
    func many() throws {
        try inOwnProcess {
            guard raiseDescriptorLimit() > 40_000 else { return }
            let before = entries(of: "/proc/self/fd").count
            let holder = try DescriptorHolder("many")
            try holder.freeze()
            let kept = entries(of: "/proc/self/fd").count
            let watch = try holder.watch()
            #expect(watch.watched > 9_900)
            #expect(watch.unwatched == [])
            try holder.send("p")
            #expect(try watch.input().descriptor == holder.number)
            watch.close()
            // The pidfd is closed with the watch.
            withExtendedLifetime(watch) { #expect(entries(of: "/proc/self/fd").count == kept + 1) }
            holder.end()
            #expect(entries(of: "/proc/self/fd").count <= before + 8)
        }
    }

    @Test("beyond the limit listening sockets come first, and the rest is reported (L50)")
    func limit() throws {
        let holder = try DescriptorHolder("listener-last")
        defer { holder.end() }
        try holder.freeze()
        let watch = try holder.watch(limit: 64)
        #expect(watch.watched <= 64)
        #expect(watch.unwatched.map(\.what) == ["socket"])
        #expect(watch.unwatched.first?.problem == .tooMany)
        #expect(watch.unwatched.first.map { $0.count > 9_000 } ?? false)
        try holder.send("p")
        #expect(try watch.input().kind == .listener)
    }

    @Test("beyond what this process may open, all apps together, nothing more is watched (L50)")
    func budget() throws {
        let holder = try DescriptorHolder("many")
        defer { holder.end() }
        try holder.freeze()
        let (processes, _) = try holder.enclosure.openProcesses(limit: 100)
        let budget = DescriptorBudget(total: 500)
        let watch = try DescriptorWatch(processes, onlyPeers: false, budget: budget, closer: holder.closer)
        try watch.make()
        #expect(budget.used <= 500)
        #expect(watch.watched > 400)
        #expect(watch.unwatched.first?.problem == .tooMany)
        watch.close()
        #expect(budget.used == 0)
    }

    @Test("kinds of problems are limited, and further ones are counted together")
    func problems() throws {
        let watch = try DescriptorWatch(
            [], onlyPeers: false, budget: DescriptorBudget(total: 100), closer: DescriptorCloser())
        for number in 0..<20 { watch.count("kind \(number)", .notSupported) }
        watch.count(String(repeating: "x", count: 100), .failed)
        #expect(watch.unwatched.count == DescriptorWatch.maximumUnwatched)
        #expect(watch.unwatched.last?.what == "other")
        #expect(watch.unwatched.last?.count == 14)
        #expect(watch.unwatched.allSatisfy { $0.what.utf8.count <= DescriptorWatch.maximumWhat })
    }

    // MARK: What is not watched

    @Test("files and the signals of a process are no input, and write ends with space neither (L50)")
    func noInput() throws {
        for kind in ["file", "signalfd", "write-end"] {
            let holder = try DescriptorHolder(kind)
            defer { holder.end() }
            try holder.freeze()
            let watch = try holder.watch()
            #expect(watch.watched == 0, "\(kind)")
            #expect(watch.unwatched == [], "\(kind)")
        }
    }

    @Test("files that are registered with an io_uring are reported as not watched (L50)")
    func uring() throws {
        let holder = try DescriptorHolder("uring")
        defer { holder.end() }
        // Without io_uring: a container, or kernel.io_uring_disabled.
        guard holder.number >= 0 else { return }
        try holder.freeze()
        let watch = try holder.watch()
        #expect(watch.unwatched == [.init(what: "io_uring", problem: .notSupported, count: 1)])
    }

    @Test("a process that may not be examined is reported as not permitted (L50)")
    func notPermitted() throws {
        try inOwnProcess {
            let holder = try DescriptorHolder("undumpable")
            try holder.freeze()
            // Without capabilities, for all threads.
            try #require(seteuid(65534) == 0)
            let watch = try holder.watch()
            try #require(seteuid(0) == 0)
            #expect(watch.watched == 0)
            #expect(watch.unwatched.map(\.problem) == [.notPermitted])
            watch.close()
            holder.end()
        }
    }
}
