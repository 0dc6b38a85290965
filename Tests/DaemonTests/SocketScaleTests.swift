import Control
import Glibc
import JSON
import Linux
import Posix
import TestKit
import Testing

/// Thousands of instances with held sockets: what they do, not how fast.
@Suite("Many held sockets", .enabled(if: isTestingAll, "make test-all holds them"), .serialized)
struct SocketScaleTests {
    private static func start(_ count: Int, _ settings: String) throws -> TestDaemon {
        let root = try TestDaemon.makeFolder()
        let apps = root + "/config/apps"
        try createDirectories(at: apps)
        for number in 0..<count {
            guard symlink("worker@.app", "\(apps)/worker@\(number).app") == 0 else {
                throw TestFailure("symlink: error \(errno)")
            }
        }
        return try TestDaemon(["worker@": SocketStage.manifest("", settings, in: root)], root: root)
    }

    private func listed(_ daemon: TestDaemon) throws -> Int {
        try daemon.renewConnection()
        return try daemon.listed().count
    }

    /// Thousands of signals come with the answer, and greenroomd ends the connection of a client that reads them too slowly. The
    /// next reload has no changes, so it has no signals.
    @discardableResult
    private func reload(_ daemon: TestDaemon) throws -> [String] {
        for _ in 1...3 {
            try daemon.renewConnection()
            if let errors = try? daemon.reload() { return errors }
        }
        try daemon.renewConnection()
        return try daemon.reload()
    }

    @Test(
        "2,000 instances have their sockets; any of them is launched by a connection; all are there after a reload, SIGKILL and reexec",
        .timeLimit(.minutes(10)))
    func instances() throws {
        let count = 2000
        var daemon = try Self.start(count, "ListenStream=ROOT/sockets/%i\n")
        let sockets = daemon.root + "/sockets"
        func check(_ numbers: [Int]) throws {
            try daemon.renewConnection()
            #expect(try listed(daemon) == count)
            #expect(entries(of: sockets).count == count)
            for number in numbers {
                try SocketClient(.path("\(sockets)/\(number)")).exchange("\(number)")
                try daemon.renewConnection()
                #expect(try daemon.status("worker@\(number)")["sockets"]?.arrayValue?[0]["problem"] == nil)
            }
        }
        try check([0, 1023, count - 1])
        try reload(daemon)
        try check([1, 1999])
        // Without a store the sockets of those that run are taken back, and the others are bound again.
        daemon.crash()
        daemon = try daemon.successor()
        try check([0, 2, 1998])
        try daemon.renewConnection()
        _ = try daemon.call("Reexec")
        try daemon.reconnect()
        try check([1, 3, 1997])
        try daemon.renewConnection()
        #expect(try daemon.status("worker@3")["launches"]?.integerValue == 1)
        // Their template goes, and all that do not run with it.
        unlink(daemon.config + "/apps/worker@.app")
        try reload(daemon)
        try daemon.eventually("the sockets are removed") { entries(of: sockets).count < 100 }
    }

    @Test(
        "100,000 instances are asked for: those beyond the limit are refused with a sentence, and the memory is given back",
        .timeLimit(.minutes(20)))
    func tooMany() throws {
        let (limit, count) = (10_000, 100_000)
        let daemon = try Self.start(0, "ListenStream=@greenroom-test-\(getpid())-%i\n")
        let apps = daemon.config + "/apps"
        var peaks: [UInt64] = []
        for _ in 0..<3 {
            try daemon.renewConnection()
            for number in 0..<count where symlink("worker@.app", "\(apps)/worker@\(number).app") != 0 {
                throw TestFailure("symlink: error \(errno)")
            }
            let errors = try reload(daemon)
            #expect(
                errors.count == 1 && errors[0].contains("\(count) apps; the limit is \(limit)"), "\(errors.prefix(3))")
            #expect(try listed(daemon) == limit)
            try daemon.renewConnection()
            let refusal = daemon.launchRefusal("worker@new")
            #expect(refusal?.contains("\(limit)") == true, "\(refusal ?? "")")
            try SocketClient(.abstract("greenroom-test-\(getpid())-0")).exchange("one")
            try daemon.renewConnection()
            try daemon.terminate("worker@0")
            for number in 0..<count { unlink("\(apps)/worker@\(number).app") }
            try reload(daemon)
            #expect(try listed(daemon) == 0)
            peaks.append(try memory(daemon))
        }
        // The third time needs no more than the second one. The allocator keeps some of what the first ones have left.
        #expect(peaks[2] < peaks[1] + peaks[1] / 4, "\(peaks)")
    }

    /// The resident memory of the daemon, without the files that it maps.
    private func memory(_ daemon: TestDaemon) throws -> UInt64 {
        let lines = TestDaemon.text(of: "/proc/\(daemon.process.pid)/status").split(separator: "\n")
        let line = try #require(lines.first { $0.hasPrefix("RssAnon:") })
        return try #require(
            line.split(whereSeparator: { $0 == " " || $0 == "\t" }).dropFirst().first.flatMap { UInt64($0) })
    }
}
