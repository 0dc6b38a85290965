import Glibc
import Posix
import TestKit
import Testing

@testable import Linux

/// A process with a descriptor, in a cgroup of its own, and another process at the other end (Tests/TestApp/descriptors.c).
final class DescriptorHolder {
    private let test: TestContainment
    let enclosure: Enclosure
    /// -1: the kernel does not offer this kind.
    let number: Int32
    let pid: Int32
    let closer = DescriptorCloser()
    let budget = DescriptorBudget(total: 100_000)
    private let helper: Process
    private let channel: SharedDescriptor

    init(_ kind: String) throws {
        test = try TestContainment("holder-\(kind)-\(UInt16.random(in: 0 ... .max))")
        enclosure = try test.containment.create(app: "org.example.holder", run: 1)
        let group = try #require(enclosure.path)
        let pair = try SocketPair()
        try pair.far.setNonBlocking(false)
        try pair.near.setNonBlocking(false)
        channel = SharedDescriptor(try pair.near.duplicate())
        let far = SharedDescriptor(try pair.far.duplicate())
        var starting = try startProcess(
            SpawnRequest(
                executable: programFolder() + "/greenroom-testapp",
                arguments: ["descriptor", kind, group + "/cgroup.procs"], environment: ["PATH=/usr/bin:/bin"],
                standardInput: far, standardOutput: far))
        helper = starting.process
        let outcome = try starting.finalOutcome()
        if outcome != .executed { _ = try starting.process.waitForEnd() }
        try #require(outcome == .executed)
        let words = try Self.line(channel).split(separator: " ").compactMap { Int32($0) }
        try #require(words.count == 2, "the helper has failed")
        (pid, number) = (words[0], words[1])
    }

    /// Sends a command to the process at the other end.
    @discardableResult
    func send(_ command: String) throws -> String {
        try writeAll(Array(command.utf8), to: channel.descriptor)
        return try Self.line(channel)
    }

    private static func line(_ channel: SharedDescriptor) throws -> String {
        var (text, byte): ([UInt8], UInt8) = ([], 0)
        while true {
            try wait(for: channel)
            try #require(read(channel.raw, &byte, 1) == 1, "the helper has ended")
            if byte == 10 { return String(decoding: text, as: UTF8.self) }
            text.append(byte)
        }
    }

    func freeze() throws {
        try enclosure.freeze()
        try eventually("the group is frozen") { try enclosure.isFrozen() }
    }

    /// Makes the whole watch.
    func watch(
        onlyPeers: Bool = false, fullnessMattersBelow: UInt64 = 1, leftBefore: LeftInput = LeftInput(),
        limit: Int = DescriptorWatch.maximum, ignoring timers: Set<TimerTick> = [], wakesOnEnds: Bool = false
    ) throws -> DescriptorWatch {
        let (processes, omitted) = try enclosure.openProcesses(limit: DescriptorWatch.maximumProcesses)
        let watch = try DescriptorWatch(
            processes, omitted: omitted, onlyPeers: onlyPeers, fullnessMattersBelow: fullnessMattersBelow,
            leftBefore: leftBefore, limit: limit, budget: budget, closer: closer)
        watch.ignoredTimers = timers
        watch.wakesOnEnds = wakesOnEnds
        try watch.make()
        return watch
    }

    /// Ends all processes and removes the group.
    func end() {
        do {
            try enclosure.killAll()
            shutdown(channel.raw, Int32(SHUT_RDWR))
            _ = try helper.waitForEnd()
        } catch {
            Issue.record(error)
        }
        test.end()
    }
}

extension DescriptorWatch {
    /// Does all steps.
    func make() throws {
        while true {
            while advance() {}
            guard let answer = pendingAnswer else { return }
            try LinuxTests.wait(for: answer)
        }
    }

    /// Waits until something arrives, and looks at it.
    /// - Parameter time: of the look.
    func wait(at time: Duration = .zero) throws -> [Look] {
        while true {
            try LinuxTests.wait(for: #require(descriptor))
            let looks = try now(at: time)
            if !looks.isEmpty { return looks }
        }
    }

    /// The input that has arrived; it fails if there is other than one.
    func input(at time: Duration = .zero) throws -> ArrivedInput {
        let looks = try wait(at: time)
        guard looks.count == 1, case .input(let input) = looks[0] else {
            throw SystemError(call: "look: \(looks)", errno: EPROTO)
        }
        return input
    }

    /// What is ready now.
    func now(at time: Duration = .zero) throws -> [Look] {
        try ready().flatMap { Self.isAnswer($0) ? answers() : [look($0, now: time)] }.filter {
            if case .asked = $0 { false } else { true }
        }
    }
}
