import Control
import Glibc
import JSON
import Posix
import Systemd
import TestKit
import Testing

/// `app` with an interface org.greenroom.Self1 of the test.
@Suite("app")
struct AppCommandTests {
    /// Serves an app's own connection.
    private final class FakeSelf {
        let folder = TemporaryFolder()
        let loop: EventLoop
        private let objects = BusObjects()
        private var server: BusServer?
        private(set) var calls: [(member: String, arguments: [Variant])] = []
        var launch: [(String, Variant)] = [("state", .string("active")), ("serial", .uint64(1))]
        /// What follows an attachment.
        var events: [(kind: String, details: [(String, Variant)])] = []
        private var serial: UInt64 = 1
        /// The answers of methods, and the error of those that have none.
        var answers: [String: [Variant]] = [
            "Attach": [], "Ready": [], "Answer": [], "EndTask": [], "SetTaskProgress": [],
        ]

        private static let methods: [(name: String, input: String, output: String)] = [
            ("Attach", "a{sv}", "a{sv}"), ("Ready", "", ""), ("Answer", "ta{sv}", ""), ("BeginTask", "ss", "t"),
            ("SetTaskProgress", "stts", ""),
            ("EndTask", "s", ""), ("RemainingTime", "", "t"), ("SetStatus", "s", ""), ("SetStateSummary", "s", ""),
        ]

        init() throws {
            loop = try EventLoop()
            let methods = Self.methods.map { method in
                BusMethod(method.name, in: method.input, out: method.output, access: .anyone) { [unowned self] call in
                    self.handle(call)
                }
            }
            objects.add(
                at: ControlNames.selfPath,
                [
                    BusInterface(
                        ControlNames.selfInterface, methods: methods,
                        signals: [
                            BusSignalDeclaration("Event", "tsa{sv}", arguments: ["serial", "kind", "details"])
                        ])
                ])
            server = try BusServer(
                loop: loop, path: folder.path + "/bus", names: [ControlNames.busName], objects: objects)
        }

        private func handle(_ call: MethodCall) {
            calls.append((call.member, call.arguments))
            guard let answer = answers[call.member] else {
                return call.fail(ControlNames.Failure.backgroundTimeUsedUp.error("There is no time."))
            }
            call.reply(call.member == "Attach" ? [.dictionary(launch)] : answer)
            guard call.member == "Attach" else { return }
            for event in events {
                serial += 1
                try? call.peer.emitSignal(
                    path: ControlNames.selfPath, interface: ControlNames.selfInterface, member: "Event",
                    [.uint64(serial), .string(event.kind), .dictionary(event.details)])
            }
            events = []
        }

        func run(
            _ arguments: String..., environment: [String] = [], during: ((RunningProgram) -> Void)? = nil
        ) throws -> Outcome {
            let address = "GREENROOM_BUS_ADDRESS=" + BusAddress.unix(path: folder.path + "/bus")
            return try RunningProgram(["app"] + arguments, environment: [address] + environment, terminal: false)
                .finish(in: loop, during: during)
        }

        func call(_ member: String) -> [Variant]? { calls.last { $0.member == member }?.arguments }
    }

    private func run(_ arguments: String..., environment: [String] = []) throws -> Outcome {
        try RunningProgram(["app"] + arguments, environment: environment, terminal: false).finish(in: EventLoop())
    }

    @Test("outside of an app each command is refused with a sentence")
    func outside() throws {
        let outcome = try run("remaining")
        #expect(outcome.status == 1)
        #expect(
            outcome.errors.hasPrefix(
                "greenroomctl: app: GREENROOM_BUS_ADDRESS is not set: this is no process of an app.\n"))
        let task = try run("task", "a", "--", "true")
        #expect(task.status == 125 && task.errors == outcome.errors)
        let wrong = try run("events", environment: ["GREENROOM_BUS_ADDRESS=tcp:host=a"])
        #expect(wrong.status == 1)
        #expect(wrong.errors.contains("invalid address 'tcp:host=a'; expected unix:path=PATH"))
    }

    @Test("wrong usage names what was expected")
    func usage() throws {
        for (words, sentence) in [
            (["app"], "app: missing argument COMMAND"),
            (["app", "evnts"], "app: unknown command 'evnts'; did you mean 'events'?; expected events, wait, "),
            (["app", "events", "puhs"], "app events: unknown kind 'puhs'; did you mean 'push'?; expected openURL, "),
            (["app", "events", "--timeout", "1s"], "app events: unexpected option '--timeout'"),
            (["app", "wait", "--timeout", "soon"], "--timeout: invalid time 'soon'; expected a time span"),
            (["app", "wait", "--after", "x"], "--after: invalid serial 'x'; expected a number"),
            (["app", "answer"], "app answer: missing argument SERIAL"),
            (["app", "answer", "first"], "app answer: invalid serial 'first'; expected a number"),
            (["app", "answer", "1", "--result", "new"], "--result: invalid value 'new'"),
            (["app", "task", "copy"], "app task: missing argument NAME -- COMMAND…"),
            (["app", "progress", "copy", "1"], "app progress: missing argument NAME, DONE or TOTAL"),
            (
                ["app", "progress", "copy", "2", "1"],
                "app progress: invalid progress '2 1'; expected DONE and TOTAL from 0 to 9007199254740992, DONE not above "
            ),
            (["cancel-task", "mail"], "cancel-task: missing argument TASK"),
            (["app", "remaining", "now"], "app remaining: unexpected argument 'now'"),
            (["app", "snapshot", "-", "a b"], "app snapshot: invalid type 'a b'; expected a media type such as"),
            (["app", "idle", "maybe"], "app idle: invalid value 'maybe'; expected yes or no"),
            (["app", "launch", "why"], "app launch: unknown key 'why'"),
            (["list", "--after", "1"], "list: unexpected option '--after'; it is for app"),
            (["close", "mail"], "close: missing option; expected --scene ID"),
        ] {
            let outcome = try RunningProgram(words, environment: [], terminal: false).finish(in: EventLoop())
            #expect(outcome.status == 2)
            #expect(outcome.errors.hasPrefix("greenroomctl: " + sentence), "\(outcome.errors)")
        }
    }

    @Test("events prints a line of words for each kind, and one object with --json")
    func lines() throws {
        let details: [(String, [(String, Variant)], String)] = [
            ("openURL", [("url", .string("a:b"))], " a:b"),
            ("didBecomeActive", [("cause", .string("launch"))], " launch"),
            ("willEnterForeground", [], ""), ("didEnterBackground", [("remainingSeconds", .double(4.9))], " 4"),
            (
                "willTerminate", [("deadlineSeconds", .double(.infinity)), ("reason", .string("requested"))],
                " infinity requested"
            ),
            ("tasksExpiring", [("names", .strings(["a b", "c"])), ("remainingSeconds", .double(5))], " 5 a_b c"),
            ("push", [("id", .uint64(7)), ("payload", .string("{\n \"a\": 1}"))], " 7 {  \"a\": 1}"),
            ("wake", [("id", .uint64(8)), ("reason", .string("fetch"))], " 8 fetch"),
            ("notification", [("kind", .string("locale")), ("payload", .string("de DE"))], " locale de DE"),
            ("didResume", [("suspendedSeconds", .double(60)), ("changed", .strings(["time"]))], " 60 time"),
            ("scene", [("scene", .string("a")), ("notice", .string("sceneWillConnect"))], " a sceneWillConnect"),
            ("didDiscardScenes", [("scenes", .strings(["a", "b"]))], " a b"),
            ("later", [("x", .bool(true))], ""),
        ]
        for isJSON in [false, true] {
            let fake = try FakeSelf()
            fake.events = details.map { ($0.0, $0.1) }
            // The loop of a script ends after the last of them.
            let outcome = try fake.run("events", isJSON ? "--json" : "--") { program in
                if program.output.split(separator: "\n").count == details.count { kill(program.pid, SIGTERM) }
            }
            #expect(outcome.status == -SIGTERM)
            let lines = outcome.output.split(separator: "\n").map(String.init)
            #expect(fake.call("Attach")?[0]["handles"] == .strings(Self.kinds))
            guard isJSON else {
                #expect(lines == details.enumerated().map { "\($0.offset + 2) \($0.element.0)\($0.element.2)" })
                continue
            }
            #expect(lines[6] == #"{"serial":8,"kind":"push","details":{"id":7,"payload":"{\n \"a\": 1}"}}"#)
            #expect(lines[4].contains(#""deadlineSeconds":null"#))
        }
    }

    private static let kinds = [
        "openURL", "didBecomeActive", "willResignActive", "willEnterForeground", "didEnterBackground", "willTerminate",
        "memoryWarning", "tasksExpiring", "push", "wake", "notification", "willSuspend", "didResume",
        "scene",
        "takeSnapshot", "takeSceneSnapshot", "didDiscardScenes", "withdraw",
    ]

    @Test("wait takes one event, says that a launching app is ready, and exits with 124 when its time is over")
    func wait() throws {
        let fake = try FakeSelf()
        fake.launch = [("state", .string("launching")), ("serial", .uint64(1))]
        fake.events = [("push", [("id", .uint64(1)), ("payload", .string("hello"))])]
        let outcome = try fake.run("wait", "push", "openURL", "--after", "5")
        #expect(outcome.status == 0 && outcome.output == "2 push 1 hello\n")
        let options = fake.call("Attach")?[0]
        #expect(options?["once"] == .bool(true) && options?["serial"] == .uint64(5))
        #expect(options?["handles"] == .strings(["push", "openURL"]))
        #expect(fake.call("Ready") != nil)
        let late = try fake.run("wait", "--timeout", "20ms")
        #expect(late.status == 124 && late.output.isEmpty && late.errors.isEmpty)
    }

    @Test("remaining prints whole seconds or infinity; launch prints why the app was launched")
    func queries() throws {
        let fake = try FakeSelf()
        fake.answers["RemainingTime"] = [.uint64(27_900_000)]
        #expect(try fake.run("remaining").output == "27\n")
        #expect(try fake.run("remaining", "--json").output == "{\"remainingSeconds\":27.9}\n")
        fake.answers["RemainingTime"] = [.uint64(.max)]
        #expect(try fake.run("remaining").output == "infinity\n")
        #expect(try fake.run("remaining", "--json").output == "{\"remainingSeconds\":null}\n")
        fake.launch = [
            ("app", .string("mail")), ("launchState", .string("background")), ("launchReason", .string("push")),
            ("firstLaunch", .bool(true)), ("stateSummary", .string("two\nlines")),
        ]
        #expect(
            try fake.run("launch").output
                == "app=mail\nstate=background\nreason=push\nurl=\nfirst=yes\nsummary=two\\nlines\nend=\nendCode=\n")
        #expect(try fake.run("launch", "reason").output == "push\n")
        #expect(
            try fake.run("launch", "--json").output
                == #"{"app":"mail","state":"background","reason":"push","url":null,"first":true,"summary":"two\nlines","end":null}"#
                + "\n")
    }

    @Test("answer, status, summary and idle say what they are given; an error of the daemon is its sentence")
    func reports() throws {
        let fake = try FakeSelf()
        #expect(try fake.run("answer", "7", "--result", "no-data").status == 0)
        #expect(fake.call("Answer") == [.uint64(7), .dictionary([("result", .string("no-data"))])])
        let refused = try fake.run("status", "busy")
        #expect(refused.status == 1 && refused.errors == "greenroomctl: There is no time.\n")
        #expect(fake.call("SetStatus") == [.string("busy")])
        #expect(try fake.run("progress", "copy", "1", "3", "Copying").status == 0)
        #expect(
            fake.call("SetTaskProgress") == [.string("copy"), .uint64(1), .uint64(3), .string("Copying")])
        #expect(try fake.run("progress", "copy", "2", "0").status == 0)
        #expect(fake.call("SetTaskProgress") == [.string("copy"), .uint64(2), .uint64(0), .string("")])
        let path = fake.folder.path + "/notify"
        let socket = try DatagramSocket(at: path)
        #expect(try fake.run("idle", "yes", environment: ["NOTIFY_SOCKET=\(path)"]).status == 0)
        let message = try socket.receive()?.bytes ?? []
        #expect(String(decoding: message, as: UTF8.self) == "X_GREENROOM_IDLE=1")
        #expect(try fake.run("idle", "yes").errors == "greenroomctl: app idle: NOTIFY_SOCKET is not set\n")
    }

    @Test("task runs nothing without background time; otherwise it begins and ends the task around the command")
    func task() throws {
        let fake = try FakeSelf()
        let refused = try fake.run("task", "copy", "--answer", "7", "--", "touch", fake.folder.path + "/made")
        #expect(refused.status == 125 && refused.errors == "greenroomctl: There is no time.\n")
        #expect(access(fake.folder.path + "/made", F_OK) != 0)
        #expect(fake.call("Answer") == [.uint64(7), .dictionary([])])
        fake.answers["BeginTask"] = [.uint64(1)]
        #expect(try fake.run("task", "copy", "--", "sh", "-c", "exit 9").status == 9)
        let (began, ended) = (fake.call("BeginTask"), fake.call("EndTask"))
        #expect(began?[0] == .string("copy") && began?[1] == ended?[0])
    }
}
