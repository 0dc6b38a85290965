import Control
import JSON
import Systemd
import Testing

@Suite("Several apps")
struct SeveralAppsTests {
    private func daemon() throws -> FakeDaemon {
        let daemon = try FakeDaemon()
        daemon.answer(
            "List",
            ["mail", "worker-1", "worker-2"].map { name in
                Records.make(Records.mail) { $0.id = name }
            })
        return daemon
    }

    @Test("all requests are sent before the first answer, and answers are printed as they come")
    func atOnce() throws {
        let daemon = try daemon()
        daemon.on("Background") { [unowned daemon] call in
            daemon.pending.append(call)
            guard daemon.pending.count == 3 else { return }
            for call in daemon.pending.reversed() { call.reply(Records.done("background")) }
        }
        let outcome = try daemon.run("background", "a", "b", "c", "b")
        #expect(outcome.status == 0)
        #expect(outcome.output == "c: background\nb: background\na: background\n")
    }

    @Test("a pattern selects apps by their IDs, each once")
    func patterns() throws {
        let daemon = try daemon()
        daemon.answer("Activate", Records.done("active"))
        let outcome = try daemon.run("activate", "worker-*", "mail", "*-[2]")
        #expect(outcome.status == 0)
        #expect(outcome.output == "worker-1: active\nworker-2: active\nmail: active\n")
        #expect(daemon.calls.first?.member == "List")
    }

    @Test("a pattern that matches no app is no error, as with systemctl, and a note says so")
    func unmatched() throws {
        let daemon = try daemon()
        let outcome = try daemon.run("activate", "x*")
        #expect(outcome.status == 0)
        #expect(outcome.output.isEmpty)
        #expect(outcome.errors == "greenroomctl: no app matches 'x*'.\n")
        #expect(try daemon.run("activate", "x*", "--json").output == "[]\n")
        #expect(try daemon.run("is-active", "x*").status == 3)
    }

    @Test("the exit status is the worst one, and one failure does not end the other requests")
    func worst() throws {
        let daemon = try daemon()
        daemon.on("Launch") { call in
            if call.arguments.first?.stringValue == "b" {
                return call.fail(ControlNames.Failure.unknownApp.error("There is no app 'b'."))
            }
            call.reply(Records.done("active"))
        }
        let outcome = try daemon.run("launch", "a", "b", "c")
        #expect(outcome.status == 1)
        #expect(outcome.output == "a: active\nc: active\n")
        #expect(outcome.errors == "greenroomctl: There is no app 'b'.\n")
        let json = try daemon.run("launch", "a", "b", "--json")
        let documents = try #require(try JSONValue.parse(json.output).arrayValue)
        #expect(documents.map { $0["app"]?.stringValue } == ["a", "b"])
        #expect(documents.last?["error"]?["name"]?.stringValue == "org.greenroom.Error.UnknownApp")
        let error = try JSONValue.parse(json.errors)
        #expect(error["error"]?["message"]?.stringValue == "There is no app 'b'.")
    }

    @Test("restart launches each app when it has ended, and apps that do not run at once")
    func restart() throws {
        let daemon = try daemon()
        daemon.on("Terminate") { call in
            if call.arguments.first?.stringValue == "b" {
                return call.fail(ControlNames.Failure.notRunning.error("Cannot terminate 'b': it is not running."))
            }
            call.reply(Records.ended)
        }
        daemon.answer("Launch", Records.done("active"))
        let outcome = try daemon.run("restart", "a", "b")
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(outcome.output.split(separator: "\n").sorted() == ["a: active", "b: active"])
        #expect(daemon.count(of: "Launch") == 2)
    }

    @Test("restart launches one app after the other into the foreground, and all at once into the background")
    func restartSequence() throws {
        let daemon = try FakeDaemon()
        daemon.answer("Terminate", Records.ended)
        var most = 0
        daemon.on("Launch") { [unowned daemon] call in
            daemon.pending.append(call)
            most = max(most, daemon.pending.count)
            let isBackground = call.arguments.last?["background"] != nil
            guard !isBackground || daemon.pending.count == 3 else { return }
            daemon.loop.callLater {
                let calls = daemon.pending
                daemon.pending.removeAll()
                for call in calls { call.reply(Records.done(isBackground ? "background" : "active")) }
            }
        }
        let outcome = try daemon.run("restart", "a", "b", "c")
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(outcome.output.split(separator: "\n").sorted() == ["a: active", "b: active", "c: active"])
        #expect(most == 1)
        #expect(try daemon.run("restart", "a", "b", "c", "--background").status == 0)
        #expect(most == 3)
    }

    @Test("restart does not launch an app whose end was superseded")
    func restartSuperseded() throws {
        let daemon = try daemon()
        daemon.answer("Terminate", RequestResult(.superseded, state: "active"))
        #expect(try daemon.run("restart", "a").status == 1)
        #expect(daemon.count(of: "Launch") == 0)
    }

    @Test("--no-block does not wait for the result, and reports a refusal")
    func noBlock() throws {
        let daemon = try daemon()
        daemon.answer("Version", ControlNames.version)
        daemon.on("Launch") { [unowned daemon] call in
            if call.arguments.first?.stringValue == "b" {
                return call.fail(ControlNames.Failure.unknownApp.error("There is no app 'b'."))
            }
            daemon.pending.append(call)
        }
        let outcome = try daemon.run("launch", "a", "b", "--no-block")
        #expect(outcome.status == 1)
        #expect(outcome.output == "a: requested\n")
        #expect(outcome.errors == "greenroomctl: There is no app 'b'.\n")
        let json = try daemon.run("launch", "a", "--no-block", "--json")
        #expect(try JSONValue.parse(json.output)["outcome"]?.stringValue == "requested")
    }

    @Test("terminate of an app that is not running succeeds, with and without --remove")
    func terminateTwice() throws {
        let daemon = try daemon()
        daemon.on("Terminate") { call in
            if call.arguments.last?.boolValue == true { return call.reply(Records.done("notRunning")) }
            call.fail(ControlNames.Failure.notRunning.error("Cannot terminate 'a': it is not running."))
        }
        for line in [["terminate", "a"], ["terminate", "a", "--remove"]] {
            let outcome = try RunningProgram(["--runtime", daemon.runtime] + line, environment: [], terminal: false)
                .finish(in: daemon.loop)
            #expect(outcome.status == 0, "\(line)")
            #expect(outcome.output == "a: not running\n")
        }
    }

    @Test("terminate of a disabled app that is not running succeeds; that of an unknown app fails, and --remove")
    func terminateDisabled() throws {
        let daemon = try FakeDaemon()
        daemon.on("Terminate") { $0.fail(ControlNames.Failure.unknownApp.error("App 'broken' is disabled.")) }
        daemon.answer("Status", Records.broken)
        let outcome = try daemon.run("terminate", "broken")
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(outcome.output == "broken: not running\n")
        #expect(try daemon.run("terminate", "broken", "--remove").status == 1)
        daemon.on("Status") { $0.fail(ControlNames.Failure.unknownApp.error("There is no app 'x'.")) }
        #expect(try daemon.run("terminate", "x").status == 1)
    }

    @Test("launch --background of an app in the foreground says that it stays there")
    func staysActive() throws {
        let daemon = try daemon()
        daemon.answer("Launch", Records.done("active"))
        let outcome = try daemon.run("launch", "a", "--background")
        #expect(outcome.status == 0)
        #expect(outcome.output == "a: active; it was running and stays in the foreground\n")
    }
}
