import Glibc
import Posix
import TestKit
import Testing

@testable import Linux

@Suite(
    "The ends of watched processes",
    .enabled(if: TestContainment.isPossible && geteuid() == 0, "needs a cgroup v2 mount, and root"))
struct DescriptorWatchEndTests {
    private func waitForEnd(_ process: Process) throws {
        kill(process.pid, SIGKILL)
        try wait(for: process.descriptor)
    }

    @Test("when a frozen process is killed, its peers see the end once its duplicates are closed (L50)")
    func killed() throws {
        let holder = try DescriptorHolder("tcp")
        defer { holder.end() }
        try holder.freeze()
        let watch = try holder.watch()
        try waitForEnd(watch.processes[0])
        #expect(try holder.send("q") == "open")
        watch.processEnded(0)
        #expect(try holder.send("e") == "end")
        #expect(watch.watched == 0)
        // The second time nothing happens, and what was ready is gone.
        watch.processEnded(0)
        #expect(try watch.now().isEmpty)
    }

    @Test("a listening socket that two processes share is watched once, until both have ended (L50)")
    func shared() throws {
        let holder = try DescriptorHolder("shared-listener")
        defer { holder.end() }
        try holder.freeze()
        let watch = try holder.watch()
        #expect(watch.processes.count == 2)
        #expect(watch.watched == 1)
        try waitForEnd(watch.processes[0])
        watch.processEnded(0)
        #expect(watch.watched == 1)
        try holder.send("p")
        #expect(try watch.input().pid == watch.processes[1].pid)
        try waitForEnd(watch.processes[1])
        watch.processEnded(1)
        #expect(watch.watched == 0)
    }

    @Test("a socket that lingers is closed on a helper thread: neither an end nor a thaw waits for its peer (L50)")
    func lingering() throws {
        let holder = try DescriptorHolder("lingering")
        defer { holder.end() }
        try holder.freeze()
        try holder.watch().close()
        try eventually("the process still has it") { holder.closer.pending == 0 }
        let watch = try holder.watch()
        try waitForEnd(watch.processes[0])
        watch.processEnded(0)
        // On a thread of its own.
        #expect(holder.closer.pending == 0)
        #expect(holder.budget.pending == 1)
        // It counts until it is closed.
        #expect(holder.budget.available < holder.budget.total - 2)
        try holder.send("c")
        try eventually("it is closed") { holder.budget.pending == 0 }
    }

    // MARK: Local peers

    @Test(
        "with onlyPeers nothing is reported until a local peer has filled half of the buffer (L50)",
        arguments: ["tcp", "unix", "pipe"])
    func halfFull(_ kind: String) throws {
        let holder = try DescriptorHolder(kind)
        defer { holder.end() }
        try holder.freeze()
        let watch = try holder.watch(onlyPeers: true)
        #expect(watch.watched == 1)
        try holder.send("p")
        for look in try watch.wait() {
            guard case .nothing = look else {
                Issue.record("\(look)")
                continue
            }
        }
        // Messages of one byte, but for TCP, whose buffer takes some megabytes.
        try holder.send("f")
        let input = try watch.input(at: .seconds(1))
        #expect(input.isHalfFull)
        #expect(input.bytes > 3)
    }

    @Test("of messages to an AF_UNIX socket the first one counts: the kernel limits how many wait (L50)")
    func messages() throws {
        let holder = try DescriptorHolder("unix-datagram")
        defer { holder.end() }
        try holder.freeze()
        let watch = try holder.watch(onlyPeers: true)
        try holder.send("p")
        #expect(try watch.input().isHalfFull)
    }

    @Test("with onlyPeers nothing but sockets of local peers and pipes is watched (L50)")
    func onlyPeers() throws {
        for kind in ["udp", "eventfd", "timerfd", "inotify", "terminal", "blocked-pipe"] {
            let holder = try DescriptorHolder(kind)
            defer { holder.end() }
            try holder.freeze()
            let watch = try holder.watch(onlyPeers: true)
            #expect(watch.watched == 0, "\(kind)")
            #expect(watch.unwatched == [], "\(kind)")
        }
    }
}
