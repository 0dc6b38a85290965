import Control
import Glibc
import JSON
import Systemd
import Testing

@Suite("Asking for a change")
struct RequestTests {
    @Test("each verb calls its method with what was given")
    func calls() throws {
        let expected: [([String], String, [Variant])] = [
            (["launch", "a"], "Launch", [.string("a"), .dictionary([])]),
            (
                ["launch", "a", "--url", "x:y", "--background", "--reason", "push"], "Launch",
                [
                    .string("a"),
                    .dictionary([("background", .bool(true)), ("reason", .string("push")), ("url", .string("x:y"))]),
                ]
            ),
            (["activate", "a"], "Activate", [.string("a")]), (["background", "a"], "Background", [.string("a")]),
            (["interrupt", "a"], "Interrupt", [.string("a")]), (["resume", "a"], "Resume", [.string("a")]),
            (["terminate", "a"], "Terminate", [.string("a"), .bool(false)]),
            (["terminate", "a", "--remove"], "Terminate", [.string("a"), .bool(true)]),
            (["push", "a"], "Push", [.string("a"), .string("")]),
            (["push", "a", "hello"], "Push", [.string("a"), .string("hello")]),
            (["send", "a", "time"], "Send", [.string("a"), .string("time"), .string("")]),
            (["send", "a", "x-b", "--", "--c"], "Send", [.string("a"), .string("x-b"), .string("--c")]),
        ]
        let daemon = try FakeDaemon()
        for (line, member, arguments) in expected {
            daemon.answer(member, Records.done("active"))
            let program = try RunningProgram(["--runtime", daemon.runtime] + line, environment: [], terminal: false)
            let outcome = try program.finish(in: daemon.loop)
            #expect(outcome.status == 0, "\(line): \(outcome.errors)")
            #expect(outcome.output == "a: active\n")
            #expect(daemon.calls.last?.member == member)
            #expect(daemon.calls.last?.arguments == arguments, "\(line)")
        }
    }

    @Test("an app that ended instead is a failure that says why and names the receipt")
    func endedInstead() throws {
        let daemon = try FakeDaemon()
        daemon.answer("Launch", Records.ended)
        let outcome = try daemon.run("launch", "photos")
        #expect(outcome.status == 1)
        #expect(
            outcome.errors
                == "greenroomctl: photos: ended while launching: did not finish launching within 5 s (receipt 12)\n")
        #expect(outcome.output.isEmpty)
        let json = try daemon.run("launch", "photos", "--json")
        #expect(json.status == 1)
        #expect(try JSONValue.parse(json.output)["receipt"]?["id"]?.integerValue == 12)
    }

    @Test("for terminate the end is what was asked for")
    func terminated() throws {
        let daemon = try FakeDaemon()
        daemon.answer("Terminate", Records.ended)
        let outcome = try daemon.run("terminate", "photos")
        #expect(outcome.status == 0)
        #expect(outcome.output == "photos: did not finish launching within 5 s (receipt 12)\n")
    }

    @Test("a request that a later one overtook fails, and says where the app is now")
    func superseded() throws {
        let daemon = try FakeDaemon()
        daemon.answer(
            "Activate",
            .dictionary([
                ("outcome", .string("superseded")), ("state", .string("background")),
                ("explanation", .string("a later request wanted it in the background")),
            ]))
        let outcome = try daemon.run("activate", "photos")
        #expect(outcome.status == 1)
        #expect(
            outcome.errors
                == "greenroomctl: photos: a later request wanted it in the background; it is background now\n")
    }

    @Test("a notification for a suspended app is told to be waiting for it")
    func notified() throws {
        let daemon = try FakeDaemon()
        daemon.answer("Send", Records.done("suspended"))
        #expect(
            try daemon.run("send", "photos", "battery").output
                == "photos: suspended: it gets the notification when it runs again\n")
    }

    @Test("a refusal is one sentence, without D-Bus's names")
    func refused() throws {
        let daemon = try FakeDaemon()
        daemon.on("Interrupt") { $0.fail(ControlNames.Failure.notRunning.error("photos is not running\u{1B}[0m")) }
        let outcome = try daemon.run("interrupt", "photos")
        #expect(outcome.status == 1)
        #expect(outcome.errors == "greenroomctl: photos is not running\\x1b[0m\n")
    }

    @Test("no permission is told without numbers and interfaces")
    func denied() throws {
        let daemon = try FakeDaemon()
        daemon.on("Launch") { $0.fail(.accessDenied("org.greenroom.Manager1.Launch is only for uid 0 and root.")) }
        let outcome = try daemon.run("launch", "photos")
        #expect(outcome.status == 1)
        #expect(
            outcome.errors == "greenroomctl: only root and the user that greenroomd runs as may ask for that\n")
    }

    @Test("a daemon without the method is told to be older")
    func unknownMethod() throws {
        let daemon = try FakeDaemon()
        let outcome = try daemon.run("reload")
        #expect(outcome.status == 1)
        #expect(
            outcome.errors
                == "greenroomctl: this greenroomd does not know how to do that: it is older than this greenroomctl\n")
    }

    @Test("a daemon that dies meanwhile is told as that")
    func disconnected() throws {
        let daemon = try FakeDaemon()
        daemon.on("Launch") { [unowned daemon] call in
            daemon.kept.append(call)
            daemon.loop.callLater { daemon.hangUp() }
        }
        let outcome = try daemon.run("launch", "photos")
        #expect(outcome.status == 1)
        #expect(outcome.errors.hasPrefix("greenroomctl: "))
        #expect(outcome.errors.split(separator: "\n").count == 1, "\(outcome.errors)")
    }

    @Test("without a daemon there is a sentence, and how to start one")
    func noDaemon() throws {
        let folder = TemporaryFolder()
        let program = try RunningProgram(["--runtime", folder.path, "list"], environment: [], terminal: false)
        let outcome = try program.finish(in: EventLoop())
        #expect(outcome.status == 1)
        #expect(outcome.errors.hasPrefix("greenroomctl: no greenroomd listens at \(folder.path)/bus"))
        #expect(outcome.errors.hasSuffix("\nStart one with: greenroomd --runtime \(folder.path)\n"))
    }

    @Test("an interrupt ends the waiting with 130 and says that the request goes on")
    func interrupted() throws {
        let daemon = try FakeDaemon()
        var pid: pid_t = 0
        daemon.on("Launch") { [unowned daemon] call in
            daemon.kept.append(call)
            kill(pid, SIGINT)
        }
        let program = try RunningProgram(
            ["--runtime", daemon.runtime, "launch", "photos"], environment: [], terminal: false)
        pid = program.pid
        let outcome = try program.finish(in: daemon.loop)
        #expect(outcome.status == 130)
        #expect(outcome.errors == "greenroomctl: no longer waiting; the request for photos goes on\n")
    }

    @Test("wrong usage exits with 2, and a verb that is not there yet with 1")
    func exits() throws {
        let loop = try EventLoop()
        func run(_ line: String...) throws -> Outcome {
            try RunningProgram(line, environment: [], terminal: false).finish(in: loop)
        }
        let wrong = try run("lsit")
        #expect(wrong.status == 2)
        #expect(wrong.errors == "greenroomctl: unknown verb “lsit”; did you mean list?\nTry: greenroomctl help\n")
        #expect(try run("--json", "send", "photos").errors.hasSuffix("\nTry: greenroomctl help send\n"))
        let open = try run("open", "photos", "x:y")
        #expect(open.status == 1)
        #expect(open.errors == "greenroomctl: “open” is not there yet\n")
        #expect(try run("--version").output == "greenroomctl \(ControlNames.version)\n")
    }
}
