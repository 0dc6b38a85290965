import Glibc
import Posix
import TestKit
import Testing

@testable import Linux

@Suite(
    "Watching descriptors of rare kinds",
    .enabled(if: TestContainment.isPossible && geteuid() == 0, "needs a cgroup v2 mount, and root"))
struct RareDescriptorTests {
    @Test(
        "a descriptor of a rare kind is watched, or reported as not watched, and is not ready before anything arrives (L50)",
        arguments: ["seccomp", "perf-event", "userfaultfd", "blocking-userfaultfd"])
    func rare(_ kind: String) throws {
        let holder = try DescriptorHolder(kind)
        defer { holder.end() }
        // Without the permission for one.
        guard holder.number >= 0 else { return }
        try holder.freeze()
        let watch = try holder.watch()
        let unwatched = watch.unwatched.reduce(0) { $0 + $1.count }
        #expect(watch.watched + unwatched == 1)
        #expect(watch.unwatched.allSatisfy { $0.problem == .notSupported })
        #expect(try watch.now().isEmpty)
        watch.close()
        #expect(holder.budget.used == 0)
    }

    @Test("nothing arrives at a BPF map, a memfd or a namespace (L50)", arguments: ["bpf", "memfd", "namespace"])
    func noInput(_ kind: String) throws {
        let holder = try DescriptorHolder(kind)
        defer { holder.end() }
        guard holder.number >= 0 else { return }
        try holder.freeze()
        let watch = try holder.watch()
        #expect(watch.watched == 0)
        #expect(watch.unwatched == [])
    }

    @Test("a connection in a network namespace that no process is in wakes the app (L50)")
    func lostNamespace() throws {
        let holder = try DescriptorHolder("lost-namespace")
        defer { holder.end() }
        guard holder.number >= 0 else { return }
        try holder.freeze()
        let watch = try holder.watch(fullnessMattersBelow: 2)
        #expect(watch.watched == 1)
        try holder.send("p")
        #expect(try watch.input().descriptor == holder.number)
    }

    // MARK: The app's own epoll descriptors

    @Test(
        "an epoll descriptor that may watch a file of a FUSE server is not watched: the daemon would ask that server (L50)"
    )
    func foreignFile() throws {
        let holder = try DescriptorHolder("hidden-file")
        defer { holder.end() }
        try holder.freeze()
        let watch = try holder.watch()
        #expect(watch.watched == 0)
        #expect(watch.unwatched == [.init(what: "epoll", problem: .notSupported, count: 1)])
        watch.close()
        #expect(holder.budget.used == 0)
    }

    @Test(
        "an epoll descriptor with too many levels below is not watched, and all others can be added to the loop (L50)")
    func deep() throws {
        let holder = try DescriptorHolder("deep")
        defer { holder.end() }
        try holder.freeze()
        let watch = try holder.watch()
        // Older kernels permit more levels.
        #expect(watch.watched == 1 || watch.unwatched == [.init(what: "epoll", problem: .notSupported, count: 1)])
        let loop = try Epoll()
        #expect(loop.add(try #require(watch.descriptor).raw, [.readable], data: 0) == 0)
    }

    @Test("if the targets of an epoll descriptor are not known in time, it is reported as not watched (L50)")
    func noAnswer() throws {
        let holder = try DescriptorHolder("hidden")
        defer { holder.end() }
        try holder.freeze()
        let (processes, _) = try holder.enclosure.openProcesses(limit: 100)
        let watch = try DescriptorWatch(processes, onlyPeers: false, budget: holder.budget, closer: holder.closer)
        while watch.advance(), watch.pendingAnswer == nil {}
        #expect(watch.pendingAnswer != nil)
        #expect(!watch.isComplete)
        watch.giveUpWaiting()
        try watch.make()
        #expect(watch.isComplete)
        #expect(watch.watched == 0)
        #expect(watch.unwatched == [.init(what: "epoll", problem: .failed, count: 1)])
        watch.close()
        #expect(holder.budget.used == 0)
    }

    @Test("each step duplicates a bounded number of descriptors, however many the app has (L50)")
    func steps() throws {
        try inOwnProcess {
            guard raiseDescriptorLimit() > 40_000 else { return }
            let holder = try DescriptorHolder("many")
            try holder.freeze()
            let (processes, _) = try holder.enclosure.openProcesses(limit: 100)
            let watch = try DescriptorWatch(processes, onlyPeers: false, budget: holder.budget, closer: holder.closer)
            var (steps, most, before) = (0, 0, 0)
            while watch.advance() {
                steps += 1
                most = max(most, watch.duplicates.count - before)
                before = watch.duplicates.count
            }
            #expect(most == DescriptorWatch.takenInStep)
            #expect(steps > 9_900 / DescriptorWatch.takenInStep)
            watch.close()
            holder.end()
        }
    }
}
