import Control
import JSON
import LifecycleCore
import Linux
import Systemd
import Testing

@testable import Daemon

@Suite("Variables of one launch")
struct LaunchVariableTests {
    private static func options(_ variables: [String]) -> [(String, Variant)] { [("environment", .strings(variables))] }

    @discardableResult
    private static func launch(_ daemon: TestDaemon, _ app: String, _ variables: [String]) throws -> JSONValue {
        try daemon.ask("Launch", app, [.dictionary(options(variables))])
    }

    @Test("the variables of a request are passed to that launch alone, and override those of the manifest")
    func passed() throws {
        let daemon = try TestDaemon([
            "photos": TestDaemon.manifest("", app: "Environment=A=manifest B=manifest"),
            "worker@": TestDaemon.manifest("", app: "Environment=A=%i"),
        ])
        try Self.launch(daemon, "photos", ["A=request", "EMPTY=", "TEXT=a b=c\n\u{e9}", "TWICE=1", "TWICE=2"])
        func value(_ name: String) throws -> String? { try daemon.variable(name, of: "photos") }
        #expect(try value("A") == "request" && value("B") == "manifest" && value("EMPTY") == "")
        #expect(try value("TEXT") == "a b=c\n\u{e9}" && value("TWICE") == "2")
        // A process that runs cannot get variables.
        let refusal = daemon.launchRefusal("photos", Self.options(["A=late"]))
        #expect(refusal?.contains("variables are passed at launch only") == true, "\(refusal ?? "")")
        try daemon.terminate("photos")
        try daemon.launch("photos")
        #expect(try value("A") == "manifest" && value("EMPTY") == nil)
        try Self.launch(daemon, "worker@1", ["C=%i"])
        #expect(try daemon.variable("A", of: "worker@1") == "1")
        #expect(try daemon.variable("C", of: "worker@1") == "%i")
    }

    @Test("an app that launches another one does not pass it its own variables")
    func notInherited() throws {
        let control = TestDaemon.binaries + "/greenroomctl"
        let daemon = try TestDaemon(["photos": TestDaemon.manifest("")])
        try daemon.write(
            "launcher.app",
            """
            [App]
            ExecStart=\(control) --runtime \(daemon.runtime) launch --background photos
            Environment=SECRET=manifest

            """)
        #expect(try daemon.reload() == [])
        try Self.launch(daemon, "launcher", ["TOKEN=request"])
        // Before it executes its program, a process has another environment.
        try daemon.eventually("the app is launched") {
            ["background", "suspended"].contains(try daemon.state("photos"))
        }
        #expect(try daemon.variable("GREENROOM_APP", of: "photos") == "photos")
        #expect(try daemon.variable("SECRET", of: "photos") == nil && daemon.variable("TOKEN", of: "photos") == nil)
    }

    @Test("a daemon that dies between the request and the launch passes the variables nevertheless")
    func recovered() throws {
        let daemon = try TestDaemon(["photos": TestDaemon.manifest("")])
        try Self.launch(daemon, "photos", ["TOKEN=request"])
        daemon.crash()
        let next = try daemon.successor()
        #expect(try next.variable("TOKEN", of: "photos") == "request")
    }

    @Test("variables that are no assignments, too many, too long or greenroomd's own are refused, without a launch")
    func refused() throws {
        let daemon = try TestDaemon(["worker@": TestDaemon.manifest("")])
        func refusal(_ variables: [String]) -> String? { daemon.launchRefusal("worker@1", Self.options(variables)) }
        for variable in ["", "A", "=a", "1A=", "A B=c", "A-B=c", "\u{e9}=1", "A.B=c"] {
            let sentence = refusal(["OK=1", variable])
            #expect(sentence?.hasPrefix("Invalid variable 2; expected NAME=value") == true, "\(variable)")
        }
        let own = ["GREENROOM_APP", "GREENROOM_X", "NOTIFY_SOCKET", "LISTEN_FDS", "WATCHDOG_USEC", "STATE_DIRECTORY"]
        for name in own {
            #expect(refusal(["\(name)=1"]) == "The variable \(name) cannot be passed: greenroomd sets it.")
        }
        let many = (0...Launch.maximumVariables).map { "A\($0)=1" }
        #expect(refusal(many) == "Too many variables: 65; expected at most 64.")
        let long = "A=" + String(repeating: "x", count: Launch.maximumVariableBytes - 2)
        #expect(refusal([long]) == "Variables of 16385 bytes are too long; expected at most 16384.")
        // A value may be a password.
        #expect(refusal(["A B=secret"])?.contains("secret") == false)
        let noList: [(String, Variant)] = [("environment", .string("A=1"))]
        #expect(daemon.failure("Launch", [.string("worker@1"), .dictionary(noList)]) == "InvalidArgument")
        #expect(try daemon.listed().isEmpty)
        #expect(refusal(Array(many.dropLast())) == nil)
    }

    @Test("a variable has a name of letters, digits and underscores; only greenroomd's own names are refused")
    func rules() {
        #expect(LaunchVariables.problem(of: []) == nil)
        #expect(LaunchVariables.problem(of: ["_a1=x"]) == nil)
        #expect(!LaunchEnvironment.isOwn("GREENROOM") && !LaunchEnvironment.isOwn("LISTEN"))
    }
}
