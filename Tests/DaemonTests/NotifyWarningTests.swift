import JSON
import Linux
import Systemd
import TestKit
import Testing

@testable import Daemon

/// Warnings about notify messages that have no effect.
@Suite("Warnings about notify messages")
struct NotifyWarningTests {
    @Test("in a minute ten warnings are logged, and then the number of the others")
    func limit() {
        var limit = NotifyWarningLimit()
        let start = Duration.seconds(100)
        var logged = (0..<30).map { limit.admits(at: start + .seconds($0)) }
        #expect(logged == Array(repeating: true, count: 10) + Array(repeating: false, count: 20))
        #expect(limit.end == start + .seconds(60))
        #expect(!limit.isOver(at: start + .seconds(59)) && limit.isOver(at: start + .seconds(60)))
        var omitted = [limit.takeOmitted(), limit.takeOmitted()]
        logged = (0..<11).map { _ in limit.admits(at: start + .seconds(60)) }
        omitted.append(limit.takeOmitted())
        #expect(logged.count { $0 } == 10)
        #expect(omitted == [20, 0, 1])
    }

    @Test(
        "a key that is not known is answered with the nearest one",
        arguments: [
            ("X_GREENROOM_BACKGRUOND", "X_GREENROOM_BACKGROUND"), ("X_GREENROM_END_TASK", "X_GREENROOM_END_TASK"),
            ("REDAY", "READY"), ("status", "STATUS"),
        ])
    func nearestKey(key: String, known: String) {
        #expect(notifyKeyProblem(key) == "\(key)= is not known and was ignored; did you mean \(known)=?")
    }

    @Test("a key that is similar to none is a problem only if it is one of Greenroom's")
    func noNearestKey() {
        let icon = "X_GREENROOM_COLOUR_OF_THE_ICON"
        #expect(notifyKeyProblem(icon) == "\(icon)= is not known and was ignored")
        #expect(notifyKeyProblem("X_GREENROOM_END_MODE") == "X_GREENROOM_END_MODE= is not implemented; it was ignored")
        for key in ["X_OTHER", "", "COLOUR"] { #expect(notifyKeyProblem(key) == nil) }
    }

    private func start(_ script: String) throws -> TestDaemon {
        let daemon = try TestDaemon(["photos": TestDaemon.manifest("\(script) say STATUS=said")])
        try daemon.launch("photos")
        try daemon.eventually("the last message is read") {
            try daemon.status("photos")["statusText"]?.stringValue == "said"
        }
        return daemon
    }

    private func log(_ daemon: TestDaemon) -> String { TestDaemon.text(of: daemon.root + "/log") }

    @Test(
        "a typing error, a bad value and a refused state are logged, and the last of them is shown in the status",
        arguments: [
            ("say X_GREENROOM_BACKGRUOND=1", "did you mean X_GREENROOM_BACKGROUND=?"),
            ("say X_GREENROOM_WAKE_DONE=done", "X_GREENROOM_WAKE_DONE=done: expected new-data, no-data or failed"),
            ("say FDSTORE=1", "FDSTORE=1 had no effect: the message contained no descriptor"),
            ("say X_GREENROOM_BACKGROUND=yes", "X_GREENROOM_BACKGROUND=yes: expected 1"),
        ])
    func shown(script: String, problem: String) throws {
        let daemon = try start(script)
        #expect(log(daemon).contains(problem))
        #expect(try daemon.status("photos")["lastWarning"]?.stringValue?.contains(problem) == true)
        // A new process has said nothing yet.
        try daemon.terminate("photos")
        #expect(try daemon.status("photos")["lastWarning"] == nil)
    }

    @Test("an app without a mistake has no warning in its status")
    func none() throws {
        let daemon = try start("say X_GREENROOM_BEGIN_TASK=a say X_GREENROOM_END_TASK=a say FDPOLL=0 say X_OTHER=1")
        #expect(try daemon.status("photos")["lastWarning"] == nil)
    }

    @Test("of many warnings ten are logged, and their number when the app ends")
    func many() throws {
        let daemon = try start("usurp 50")
        try daemon.terminate("photos")
        let lines = log(daemon).split(separator: "\n")
        let logged = lines.count { $0.contains("MAINPID=1 is not a process of this app") }
        // More than ten only if reading the messages takes longer than a minute.
        #expect(logged >= 10 && logged < 50)
        let omitted = lines.compactMap { line -> Int? in
            guard line.hasSuffix(" more warnings about its notify messages or its inbox were not logged") else {
                return nil
            }
            return line.split(separator: " ").dropLast(12).last.flatMap { Int($0) }
        }
        #expect(logged + omitted.reduce(0, +) == 50)
    }

    @Test("the warnings that an app sends too many messages are limited like all others")
    func floods() throws {
        let daemon = try TestDaemon(["photos": TestDaemon.manifest("")])
        try daemon.launch("photos")
        let socket = try daemon.notifySocket("photos")
        // Each datagram causes nine warnings about lines, and one that the rest waits: the second one's are not logged.
        for _ in 0..<2 { try sendDatagram(String(repeating: "x\n", count: 2000), to: socket) }
        try sendDatagram("STATUS=said", to: socket)
        try daemon.eventually("the last message is read") {
            try daemon.status("photos")["statusText"]?.stringValue == "said"
        }
        let isFlood = { (line: String) in line.contains("notify messages within 1s; the rest waits") }
        #expect(log(daemon).split(separator: "\n").count { isFlood(String($0)) } == 1)
        let last = try daemon.status("photos")["lastWarning"]?.stringValue
        #expect(isFlood(last ?? ""))
    }

    @Test("warnings about what an app puts into its inbox are limited like all others, and each push is written")
    func obstructedInbox() throws {
        let daemon = try TestDaemon(["photos": TestDaemon.manifest("", "[Lifecycle]\nBackgroundModes=push")])
        try daemon.launch("photos")
        // Folders with the names of the files.
        for number in 10...59 {
            try createDirectories(at: daemon.runtime + "/inbox/photos/push.00000000000000\(number)/deep")
        }
        for number in 1...59 { try daemon.ask("Push", "photos", [.string("\(number)")]) }
        for number in 10...59 { #expect(daemon.inbox("photos", "push.00000000000000\(number)") == "\(number)\n") }
        let logged = log(daemon).split(separator: "\n").count { $0.contains("a directory of the app in its inbox") }
        // More than ten only if the pushes take longer than a minute.
        #expect(logged >= 10 && logged < 50)
        #expect(try daemon.status("photos")["lastWarning"]?.stringValue?.contains("push.0000000000000059") == true)
        try daemon.eventually("the folders are removed") {
            entries(of: daemon.runtime + "/inbox").allSatisfy { !$0.hasPrefix(".") }
        }
    }
}
