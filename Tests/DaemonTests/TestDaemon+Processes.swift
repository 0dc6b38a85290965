import Control
import Glibc
import JSON
import Linux
import Posix
import Systemd
import TestKit

extension TestDaemon {
    /// The cgroup that contains all apps' cgroups, from the daemon's log; `nil`: it has none.
    var groupRoot: String? {
        let log = TestDaemon.text(of: root + "/log")
        guard let start = log.firstRange(of: "in cgroups below ") else { return nil }
        return log[start.upperBound...].split(separator: " ", maxSplits: 1).first.map(String.init)
    }

    /// The cgroup of a running app; `nil`: the daemon has no cgroups.
    func groupPath(_ app: String) throws -> String? {
        let text = TestDaemon.text(of: "/proc/\(try pid(app))/cgroup")
        for line in text.split(separator: "\n") where line.hasPrefix("0::") {
            for mount in ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"] where exists(at: mount + "/cgroup.procs") {
                let path = mount + line.dropFirst(3)
                return path.contains("greenroom") ? path : nil
            }
        }
        return nil
    }

    /// All processes of an app, including those that left its session.
    func processes(of app: String) throws -> [Int32] {
        guard let group = try groupPath(app) else { return processesByEnvironment(of: app) }
        return TestDaemon.text(of: group + "/cgroup.procs").split(separator: "\n").compactMap { Int32($0) }
    }

    private func processesByEnvironment(of app: String) -> [Int32] {
        let words = ["GREENROOM_APP=\(app)", "NOTIFY_SOCKET=\(runtime)/"]
        return entries(of: "/proc").compactMap { Int32($0) }.filter { pid in
            let environment = "\0" + TestDaemon.text(of: "/proc/\(pid)/environ")
            return isAlive(pid) && words.allSatisfy { environment.contains("\0" + $0) }
        }
    }

    func frozen(_ app: String) throws -> Bool {
        guard let group = try groupPath(app) else {
            return try processes(of: app).allSatisfy { try ProcFS().stat(of: $0)?.isStopped ?? false }
        }
        return TestDaemon.text(of: group + "/cgroup.events").contains("frozen 1")
    }

    /// Waits for a condition for which there is no event. It has a limit, so that a failing test ends.
    func eventually(_ what: String, _ condition: () throws -> Bool) throws {
        for _ in 0..<10_000 {
            if try condition() { return }
            poll(nil, 0, 5)
        }
        throw TestFailure("timeout: \(what)")
    }

    /// Waits until the app catches a signal.
    func settle(_ app: String, catches signal: Int32) throws {
        let pid = try self.pid(app)
        try eventually("\(app) catches \(signal)") { try ProcFS().status(of: pid)?.catches(signal) ?? false }
    }

    // MARK: Asynchronous calls

    func begin(
        _ member: String, _ app: String, _ more: [Variant] = [.dictionary([])]
    ) throws -> BusConnection.Pending {
        try bus.callAsync(
            path: ControlNames.managerPath, interface: ControlNames.managerInterface, member: member,
            [.string(app)] + more, timeout: .seconds(60))
    }

    func finish(_ pending: BusConnection.Pending) throws -> JSONValue {
        _ = try bus.wait(for: pending, until: EventLoop.now() + .seconds(60))
        guard let result = pending.result else { throw TestFailure("no answer") }
        return JSONValue(try result.get()[0])
    }

    /// Kills the daemon with SIGKILL at its next system call `number`: before the kernel carries it out (`when` is
    /// "entry") or after ("exit").
    /// - Returns: the process that kills the daemon; it ends after the daemon.
    func killAtSystemCall(_ number: Int, _ when: String) throws -> Linux.Process {
        let attached = root + "/attached"
        var starting = try startProcess(
            SpawnRequest(
                executable: TestDaemon.app, arguments: ["kill-at", when, "\(number)", "\(process.pid)", attached]))
        while try starting.outcome() == .pending { waitForReadable([starting.outcomeDescriptor]) }
        try eventually("the daemon is traced") { exists(at: attached) }
        return starting.process
    }

    func runDebugger(on pid: Int32) throws -> Linux.Process {
        let log = SharedDescriptor(try Descriptor.open(root + "/gdb", O_WRONLY | O_CREAT, mode: 0o600))
        var starting = try startProcess(
            SpawnRequest(
                executable: "/usr/bin/gdb", arguments: ["-q", "-nx", "-p", "\(pid)", "-ex", "shell sleep 1000"],
                environment: ["PATH=/usr/bin:/bin", "HOME=/"], standardOutput: log, standardError: log))
        while try starting.outcome() == .pending { waitForReadable([starting.outcomeDescriptor]) }
        return starting.process
    }

    /// Holds up the end of a process, with its memory, until the file `release` exists. The file `attached` is created first.
    func holdEnd(of pid: Int32, attached: String, release: String) throws -> Linux.Process {
        var starting = try startProcess(
            SpawnRequest(
                executable: TestDaemon.app, arguments: ["hold-end", "\(pid)", attached, release], environment: []))
        while try starting.outcome() == .pending { waitForReadable([starting.outcomeDescriptor]) }
        return starting.process
    }
}

/// Whether a process exists and is not a zombie.
func isAlive(_ pid: Int32) -> Bool {
    guard let stat = try? ProcFS().stat(of: pid) else { return false }
    return !stat.isDead
}

enum JSONText {
    /// A string in the record that a method returned.
    static func of(_ results: [Variant], _ key: String) -> String? {
        results.first.flatMap { JSONValue($0)[key]?.stringValue }
    }
}

extension TestDaemon {
    /// Runs greenroomd, or another program, until it exits.
    /// - Returns: its exit status and its output.
    static func runToEnd(
        _ arguments: [String], in folder: String, executable: String = binaries + "/greenroomd"
    ) throws -> (EndStatus?, String) {
        let path = folder + "/output"
        _ = try removeFile(at: path)
        let output = SharedDescriptor(try Descriptor.open(path, O_WRONLY | O_CREAT | O_TRUNC, mode: 0o600))
        var starting = try startProcess(
            SpawnRequest(
                executable: executable, arguments: arguments, environment: ["HOME=/", "PATH=/bin"],
                standardOutput: output, standardError: output))
        while try starting.outcome() == .pending { waitForReadable([starting.outcomeDescriptor]) }
        waitForReadable([starting.process.descriptor])
        return (try starting.process.reap()?.status, text(of: path))
    }
}
