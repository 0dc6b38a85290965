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

    @Test("a daemon that dies meanwhile, and is not followed by another, is told as that")
    func gone() throws {
        let daemon = try FakeDaemon()
        daemon.on("Launch") { [unowned daemon] call in
            daemon.kept.append(call)
            daemon.loop.callLater { daemon.goAway() }
        }
        let outcome = try daemon.run("launch", "photos")
        #expect(outcome.status == 1)
        #expect(outcome.errors.hasPrefix("greenroomctl: no greenroomd listens at "), "\(outcome.errors)")
    }

    @Test(
        "a daemon that is replaced meanwhile is asked again",
        arguments: ["launch", "activate", "background", "terminate"])
    func replaced(verb: String) throws {
        let daemon = try FakeDaemon()
        let member = verb.prefix(1).uppercased() + verb.dropFirst()
        daemon.answer("Status", .dictionary(Records.mail))
        daemon.on(member) { [unowned daemon] call in
            if daemon.count(of: member) == 1 { return daemon.die(with: call) }
            call.reply([Records.done("active")])
        }
        let outcome = try daemon.run(verb, "photos")
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(outcome.output == "photos: active\n")
        #expect(daemon.count(of: member) == 2)
        #expect(outcome.errors.isEmpty)
    }

    @Test("one that was launched and has ended meanwhile is not launched once more")
    func endedMeanwhile() throws {
        let daemon = try FakeDaemon()
        daemon.on("Launch") { [unowned daemon] in daemon.die(with: $0) }
        let receipt = Records.receipt.map { $0.0 == "time" ? ("time", .string("2999-01-01T00:00:00.000Z")) : $0 }
        daemon.answer("Status", .dictionary(Records.mail + [("lastReceipt", .dictionary(receipt))]))
        let outcome = try daemon.run("launch", "photos")
        #expect(outcome.status == 1)
        #expect(outcome.errors.contains("photos: ended while launching"))
        #expect(daemon.count(of: "Launch") == 1)
    }

    @Test("an end from before the request is no answer to it")
    func endedBefore() throws {
        let daemon = try FakeDaemon()
        daemon.answer("Status", .dictionary(Records.mail + [("lastReceipt", .dictionary(Records.receipt))]))
        daemon.on("Launch") { [unowned daemon] call in
            if daemon.count(of: "Launch") == 1 { return daemon.die(with: call) }
            call.reply([Records.done("active")])
        }
        #expect(try daemon.run("launch", "photos").output == "photos: active\n")
    }

    @Test("what counts each time it is asked for is not asked for twice", arguments: ["push", "interrupt", "resume"])
    func notTwice(verb: String) throws {
        let daemon = try FakeDaemon()
        let member = verb.prefix(1).uppercased() + verb.dropFirst()
        daemon.on(member) { [unowned daemon] in daemon.die(with: $0) }
        let outcome = try daemon.run(verb, "photos")
        #expect(outcome.status == 1)
        #expect(
            outcome.errors
                == "greenroomctl: photos: greenroomd was replaced before it answered; it may have been done\n")
        #expect(daemon.count(of: member) == 1)
    }

    @Test("who looks while the daemon is replaced sees what the next one says")
    func lookedAgain() throws {
        let daemon = try FakeDaemon()
        daemon.on("List") { [unowned daemon] call in
            if daemon.count(of: "List") == 1 { return daemon.die(with: call) }
            call.reply([.dictionaries([Records.mail])])
        }
        let outcome = try daemon.run("list")
        #expect(outcome.status == 0)
        #expect(outcome.output.hasPrefix("org.example.Mail"))
    }

    @Test("a daemon that dies each time it is asked is not asked for ever")
    func diesAlways() throws {
        let daemon = try FakeDaemon()
        daemon.answer("Status", .dictionary(Records.mail))
        daemon.on("Launch") { [unowned daemon] in daemon.die(with: $0) }
        let outcome = try daemon.run("launch", "photos")
        #expect(outcome.status == 1)
        #expect(outcome.errors.split(separator: "\n").count == 1, "\(outcome.errors)")
        #expect(daemon.count(of: "Launch") == 11)
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
