import Glibc
import TestKit
import Testing

@testable import Linux

@Suite(
    "Pipes of which an app has both ends",
    .enabled(if: TestContainment.isPossible && geteuid() == 0, "needs a cgroup v2 mount, and root"))
struct OwnPipeTests {
    /// One descriptor is ready, and it is no input.
    private func expectNothing(_ watch: DescriptorWatch) throws {
        let looks = try watch.wait()
        guard looks.count == 1, case .nothing = looks[0] else {
            Issue.record("\(looks)")
            return
        }
    }

    @Test("what a process has left in its own pipe is input at one freeze, and only what is added at the next (L50)")
    func ownPipe() throws {
        let holder = try DescriptorHolder("own-pipe")
        defer { holder.end() }
        try holder.freeze()
        try holder.send("p")
        let first = try holder.watch()
        #expect(try first.input().bytes == 3)
        first.close()
        // As after a thaw in which the process has not read it.
        let second = try holder.watch(leftBefore: first.left)
        try expectNothing(second)
        #expect(second.left == first.left)
        try holder.send("p")
        #expect(try second.input(at: .seconds(1)).bytes == 6)
        #expect(second.left != first.left)
    }

    @Test("an event descriptor that was readable at two freezes is no input, and what is added to it is (L50)")
    func eventDescriptor() throws {
        let holder = try DescriptorHolder("eventfd")
        defer { holder.end() }
        try holder.freeze()
        try holder.send("p")
        let first = try holder.watch()
        #expect(try first.input().kind == .event)
        first.close()
        let second = try holder.watch(leftBefore: first.left)
        try expectNothing(second)
        try holder.send("p")
        #expect(try second.input(at: .seconds(1)).kind == .event)
    }

    @Test("an own pipe that was empty at the freeze has input when as much as before arrives (L50)")
    func emptyPipe() throws {
        let full = try DescriptorHolder("own-pipe")
        defer { full.end() }
        try full.freeze()
        let inode = try #require(full.inode)
        var left = LeftInput()
        left.bytes[inode] = 3
        let watch = try full.watch(leftBefore: left)
        #expect(try watch.now().isEmpty)
        try full.send("p")
        #expect(try watch.input().bytes == 3)
    }

    @Test("an end that arrived before the watch is input once, where a caller waits for the program to end (L54)")
    func endBefore() throws {
        let holder = try DescriptorHolder("fin")
        defer { holder.end() }
        try holder.freeze()
        try holder.send("p")
        #expect(try holder.watch().now().isEmpty)
        let first = try holder.watch(wakesOnEnds: true)
        #expect(try first.input().isEnd)
        first.close()
        #expect(try holder.watch(leftBefore: first.left, wakesOnEnds: true).now().isEmpty)
    }

    @Test(
        "what the app alone can write to brings nothing from another program (L51)",
        arguments: [("own-pipe", true), ("eventfd", true), ("pipe", false), ("tcp", false), ("listener", false)])
    func silent(kind: String, isSilent: Bool) throws {
        let holder = try DescriptorHolder(kind)
        defer { holder.end() }
        try holder.freeze()
        let watch = try holder.watch()
        #expect(watch.watched > 0)
        #expect((watch.silent == watch.watched) == isSilent)
    }

    @Test("a pipe that another process writes to wakes at each freeze (L50)")
    func otherPipe() throws {
        let holder = try DescriptorHolder("pipe")
        defer { holder.end() }
        try holder.freeze()
        try holder.send("p")
        let first = try holder.watch(fullnessMattersBelow: 2)
        #expect(try first.input().bytes == 3)
        #expect(first.left == LeftInput())
        first.close()
        let second = try holder.watch(fullnessMattersBelow: 2, leftBefore: first.left)
        #expect(try second.input().bytes == 3)
    }

    @Test("only an anonymous pipe of which one process has both ends is its own (L50)")
    func ends() throws {
        for (kind, isOwn) in [("own-pipe", true), ("pipe", false), ("fifo", false), ("write-end", false)] {
            let holder = try DescriptorHolder(kind)
            defer { holder.end() }
            try holder.freeze()
            #expect(try holder.watch().ownPipes.isEmpty == !isOwn, "\(kind)")
        }
    }
}

extension DescriptorHolder {
    /// Of the pipe that the process has.
    fileprivate var inode: UInt64? {
        var about = Glibc.stat()
        return stat("/proc/\(pid)/fd/\(number)", &about) == 0 ? UInt64(about.st_ino) : nil
    }
}
