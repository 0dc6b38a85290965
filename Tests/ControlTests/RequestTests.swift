import Control
import Glibc
import JSON
import Systemd
import Testing

@Suite("Control verbs")
struct RequestTests {
    @Test("each verb calls its method with the arguments of the command line")
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
            (["open", "a", "x:y"], "Open", [.string("a"), .string("x:y"), .dictionary([])]),
        ]
        let daemon = try FakeDaemon()
        for (line, member, arguments) in expected {
            daemon.answer(member, Records.done("active"))
            let program = try RunningProgram(["--runtime", daemon.runtime] + line, environment: [], terminal: false)
            let outcome = try program.finish(in: daemon.loop)
            #expect(outcome.status == 0, "\(line): \(outcome.errors)")
            // A launch into the background has not moved the app from the foreground, and says so.
            let remark = line.contains("--background") ? "; it was running and stays in the foreground" : ""
            #expect(outcome.output == "a: active\(remark)\n")
            #expect(daemon.calls.last?.member == member)
            #expect(daemon.calls.last?.arguments == arguments, "\(line)")
        }
    }

    @Test("a URL without an app is for the app that the daemon finds, which is named (L8)")
    func opensWithHandler() throws {
        let daemon = try FakeDaemon()
        var result = RequestResult(.done, state: "active")
        result.app = "mail"
        daemon.answer("Open", result)
        let program = try RunningProgram(
            ["--runtime", daemon.runtime, "open", "mailto:me"], environment: [], terminal: false)
        let outcome = try program.finish(in: daemon.loop)
        #expect(outcome.output == "mail: active\n" && outcome.status == 0, "\(outcome)")
        #expect(daemon.calls.last?.arguments == [.string(""), .string("mailto:me"), .dictionary([])])
    }

    @Test("if the app ends instead, the command fails with the cause and names the receipt")
    func endedInstead() throws {
        let daemon = try FakeDaemon()
        daemon.answer("Launch", Records.ended)
        let outcome = try daemon.run("launch", "photos")
        #expect(outcome.status == 1)
        #expect(
            outcome.errors
                == "greenroomctl: photos: ended while launching: Killed: exceeded its launch deadline (5s).\n"
                + "See: greenroomctl --runtime \(daemon.runtime) receipt 12\n")
        #expect(outcome.output.isEmpty)
        let json = try daemon.run("launch", "photos", "--json")
        #expect(json.status == 1)
        #expect(try JSONValue.parse(json.output)["lastReceipt"]?["id"]?.integerValue == 12)
    }

    @Test("terminate succeeds when the app ends")
    func terminated() throws {
        let daemon = try FakeDaemon()
        daemon.answer("Terminate", Records.ended)
        let outcome = try daemon.run("terminate", "photos")
        #expect(outcome.status == 0)
        #expect(outcome.output == "photos: Killed: exceeded its launch deadline (5s). (receipt 12)\n")
    }

    @Test("a request that a later one superseded fails, and the message has the state")
    func superseded() throws {
        let daemon = try FakeDaemon()
        daemon.answer(
            "Activate",
            Records.make(RequestResult(.superseded, state: "background")) {
                $0.explanation = "A later request asked for the background."
            })
        let outcome = try daemon.run("activate", "photos")
        #expect(outcome.status == 1)
        #expect(
            outcome.errors
                == "greenroomctl: photos: A later request asked for the background. It is background now.\n")
    }

    @Test("a notification to a suspended app is reported as pending")
    func notified() throws {
        let daemon = try FakeDaemon()
        daemon.answer("Send", Records.done("suspended"))
        #expect(
            try daemon.run("send", "photos", "battery").output
                == "photos: suspended; the notification is delivered when the app runs again\n")
    }

    @Test("a refusal is one escaped sentence, without D-Bus names")
    func refused() throws {
        let daemon = try FakeDaemon()
        daemon.on("Interrupt") {
            $0.fail(ControlNames.Failure.notRunning.error("Cannot interrupt 'photos': it is not running.\u{1B}[0m"))
        }
        let outcome = try daemon.run("interrupt", "photos")
        #expect(outcome.status == 1)
        #expect(outcome.errors == "greenroomctl: Cannot interrupt 'photos': it is not running.\\x1b[0m\n")
    }

    @Test("a refusal of libsystemd is reported without user IDs and interfaces")
    func denied() throws {
        let daemon = try FakeDaemon()
        daemon.on("Launch") { $0.fail(.accessDenied("org.greenroom.Manager1.Launch is only for uid 0 and root.")) }
        let outcome = try daemon.run("launch", "photos")
        #expect(outcome.status == 1)
        #expect(
            outcome.errors == "greenroomctl: Access denied: only root and the user of greenroomd may do this.\n")
    }

    @Test("a daemon without the method is reported as older")
    func unknownMethod() throws {
        let daemon = try FakeDaemon()
        let outcome = try daemon.run("reexec")
        #expect(outcome.status == 1)
        #expect(
            outcome.errors
                == "greenroomctl: greenroomd does not support this request: it is older than greenroomctl.\n")
    }

    @Test("reload prints errors and warnings within the width of the output, and fails if there is an error")
    func reload() throws {
        let daemon = try FakeDaemon()
        let result = Records.make(ReloadResult()) {
            $0.apps = 2
            $0.errors = ["/etc/a.app:2:6: error: Type=: invalid value 'x'; expected simple or notify"]
            $0.warnings = ["/etc/b.app:3:1: warning: unknown section [Lif]"]
        }
        daemon.answer("Reload", result)
        let outcome = try daemon.run("reload", environment: ["COLUMNS=60"])
        #expect(outcome.status == 1)
        #expect(
            outcome.output == """
                /etc/a.app:2:6: error: Type=: invalid value 'x'; expected
                simple or notify
                /etc/b.app:3:1: warning: unknown section [Lif]
                Loaded 2 apps.

                """)
        #expect(outcome.errors == "greenroomctl: 1 error in 1 file; all other manifests were\nloaded.\n")
        // A file can have several errors, and an error can be about no file.
        let more = Records.make(result) {
            $0.errors += ["/etc/a.app:3:1: error: unknown key", "/etc/b:1:1.app: error: missing key"]
        }
        daemon.answer("Reload", more)
        #expect(
            try daemon.run("reload").errors
                == "greenroomctl: 3 errors in 2 files; all other manifests were loaded.\n")
        daemon.answer("Reload", Records.make(result) { $0.errors = ["error: the manifests were not read again"] })
        #expect(try daemon.run("reload").errors == "greenroomctl: 1 error; all other manifests were loaded.\n")
    }

    @Test("a daemon that dies during the call and is not replaced is reported")
    func gone() throws {
        let daemon = try FakeDaemon()
        daemon.on("Launch") { [unowned daemon] call in
            daemon.pending.append(call)
            daemon.loop.callLater { daemon.stopListening() }
        }
        let outcome = try daemon.run("launch", "photos")
        #expect(outcome.status == 1)
        #expect(outcome.errors.hasPrefix("greenroomctl: no greenroomd listens at "), "\(outcome.errors)")
    }

    @Test(
        "a request is repeated if the daemon is replaced during the call",
        arguments: ["launch", "activate", "background", "terminate"])
    func replaced(verb: String) throws {
        let daemon = try FakeDaemon()
        let member = verb.prefix(1).uppercased() + verb.dropFirst()
        daemon.answer("Status", Records.mail)
        daemon.on(member) { [unowned daemon] call in
            if daemon.count(of: member) == 1 { return daemon.die(with: call) }
            call.reply(Records.done("active"))
        }
        let outcome = try daemon.run(verb, "photos")
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(outcome.output == "photos: active\n")
        #expect(daemon.count(of: member) == 2)
        #expect(outcome.errors.isEmpty)
    }

    @Test("an app that was launched and ended during the replacement is not launched again")
    func endedMeanwhile() throws {
        let daemon = try FakeDaemon()
        daemon.on("Launch") { [unowned daemon] in daemon.die(with: $0) }
        let later = Records.make(Records.receipt) { $0.time = Timestamp(microseconds: 32_472_144_000_000_000) }
        daemon.answer("Status", Records.make(Records.mail) { $0.lastReceipt = later })
        let outcome = try daemon.run("launch", "photos")
        #expect(outcome.status == 1)
        #expect(outcome.errors.contains("photos: ended while launching"))
        #expect(daemon.count(of: "Launch") == 1)
    }

    @Test("an end before the request does not answer the request")
    func endedBefore() throws {
        let daemon = try FakeDaemon()
        daemon.answer("Status", Records.make(Records.mail) { $0.lastReceipt = Records.receipt })
        daemon.on("Launch") { [unowned daemon] call in
            if daemon.count(of: "Launch") == 1 { return daemon.die(with: call) }
            call.reply(Records.done("active"))
        }
        #expect(try daemon.run("launch", "photos").output == "photos: active\n")
    }

    @Test("a request that is not idempotent is not repeated", arguments: ["push", "interrupt", "resume"])
    func notTwice(verb: String) throws {
        let daemon = try FakeDaemon()
        let member = verb.prefix(1).uppercased() + verb.dropFirst()
        daemon.on(member) { [unowned daemon] in daemon.die(with: $0) }
        let outcome = try daemon.run(verb, "photos")
        #expect(outcome.status == 1)
        #expect(
            outcome.errors
                == "greenroomctl: photos: greenroomd was replaced before it answered; the request may have been carried "
                + "out.\n")
        #expect(daemon.count(of: member) == 1)
    }

    @Test("a query is repeated if the daemon is replaced during the call")
    func queryRepeated() throws {
        let daemon = try FakeDaemon()
        daemon.on("List") { [unowned daemon] call in
            if daemon.count(of: "List") == 1 { return daemon.die(with: call) }
            call.reply([Records.mail])
        }
        let outcome = try daemon.run("list")
        #expect(outcome.status == 0)
        #expect(outcome.output.hasPrefix("org.example.Mail"))
    }

    @Test("after ten lost connections a request fails")
    func diesAlways() throws {
        let daemon = try FakeDaemon()
        daemon.answer("Status", Records.mail)
        daemon.on("Launch") { [unowned daemon] in daemon.die(with: $0) }
        let outcome = try daemon.run("launch", "photos")
        #expect(outcome.status == 1)
        #expect(outcome.errors.split(separator: "\n").count == 1, "\(outcome.errors)")
        #expect(daemon.count(of: "Launch") == 11)
    }

    @Test("without a daemon the error says how to start one")
    func noDaemon() throws {
        let folder = TemporaryFolder()
        let program = try RunningProgram(["--runtime", folder.path, "list"], environment: [], terminal: false)
        let outcome = try program.finish(in: EventLoop())
        #expect(outcome.status == 1)
        #expect(outcome.errors.hasPrefix("greenroomctl: no greenroomd listens at \(folder.path)/bus"))
        #expect(outcome.errors.hasSuffix("\nTo start it: greenroomd --runtime \(folder.path)\n"))
    }

    @Test("SIGINT ends the wait with status 130; the message says that the request is still carried out")
    func interrupted() throws {
        let daemon = try FakeDaemon()
        var pid: pid_t = 0
        daemon.on("Launch") { [unowned daemon] call in
            daemon.pending.append(call)
            kill(pid, SIGINT)
        }
        let program = try RunningProgram(
            ["--runtime", daemon.runtime, "launch", "photos"], environment: [], terminal: false)
        pid = program.pid
        let outcome = try program.finish(in: daemon.loop)
        #expect(outcome.status == 130)
        #expect(
            outcome.errors == "greenroomctl: Stopped waiting; greenroomd still carries out the request for 'photos'.\n")
    }

    @Test("with --json an error is one object on standard error, with a name of D-Bus")
    func jsonErrors() throws {
        let daemon = try FakeDaemon()
        let usage = try daemon.run("lsit", "--json")
        #expect(usage.status == 2)
        #expect(usage.output.isEmpty)
        let error = try JSONValue.parse(usage.errors)["error"]
        #expect(error?["name"]?.stringValue == "org.greenroom.Error.InvalidArgument")
        #expect(error?["message"]?.stringValue == "unknown verb 'lsit'; did you mean 'list'?")
        #expect(error?["hint"]?.stringValue == "Try 'greenroomctl help' for more information.")
        daemon.on("Activate") { $0.fail(ControlNames.Failure.ending.error("Cannot activate 'a': it is terminating.")) }
        let refused = try daemon.run("activate", "a", "--json")
        #expect(refused.status == 1)
        #expect(refused.output.isEmpty)
        #expect(try JSONValue.parse(refused.errors)["error"]?["name"]?.stringValue == "org.greenroom.Error.Ending")
    }

    @Test("a usage error exits with 2")
    func exits() throws {
        let loop = try EventLoop()
        func run(_ line: String...) throws -> Outcome {
            try RunningProgram(line, environment: [], terminal: false).finish(in: loop)
        }
        let wrong = try run("lsit")
        #expect(wrong.status == 2)
        #expect(
            wrong.errors == "greenroomctl: unknown verb 'lsit'; did you mean 'list'?\n"
                + "Try 'greenroomctl help' for more information.\n")
        let json = try JSONValue.parse(run("--json", "send", "photos").errors)["error"]
        #expect(json?["hint"]?.stringValue == "Try 'greenroomctl help send' for more information.")
        // The hint names the verb, not the value of an option before it.
        let runtime = try run("--runtime", "status", "launch", "--background")
        #expect(runtime.errors.hasSuffix("'greenroomctl help launch' for more information.\n"))
        let config = try run("--confg", "status.d", "launch", "a")
        #expect(config.errors.hasSuffix("'greenroomctl help launch' for more information.\n"))
        #expect(try run("--version").output == "greenroomctl \(ControlNames.version)\n")
    }
}
