import Control
import Glibc
import JSON
import Linux
import Posix
import Systemd
import TestKit
import Testing

/// Templates and their instances, with real processes.
@Suite("Templates")
struct TemplateTests {
    private static func template(_ root: String, _ settings: String = "") -> String {
        TestDaemon.manifest(
            "print %i", app: "Name=Worker %i\nEnvironment=INSTANCE=%i\nStateDirectory=worker/%i\n" + settings,
            trace: root + "/trace-%i")
    }

    /// - Parameter settings: of the section `[App]`.
    private static func start(_ settings: String = "") throws -> TestDaemon {
        let root = try TestDaemon.makeFolder()
        return try TestDaemon(["worker@": template(root, settings)], root: root)
    }

    @Test("three instances of a template have their names in arguments, environment and directories (L9)")
    func instances() throws {
        let daemon = try Self.start()
        #expect(try daemon.listed().isEmpty)
        for name in ["1", "b-2", "c.d"] {
            let app = "worker@\(name)"
            #expect(try daemon.launch(app)["state"]?.stringValue == "active")
            #expect(try daemon.status(app)["name"]?.stringValue == "Worker \(name)")
            #expect(try daemon.variable("INSTANCE", of: app) == name)
            #expect(try daemon.variable("GREENROOM_APP", of: app) == app)
            #expect(try daemon.variable("GREENROOM_FIRST_LAUNCH", of: app) == "1")
            let folder = daemon.state + "/apps/worker/" + name
            #expect(try daemon.variable("STATE_DIRECTORY", of: app) == folder)
            #expect(exists(at: folder))
            #expect(daemon.trace("trace-\(name)").contains(name))
            #expect(try !daemon.processes(of: app).isEmpty)
        }
        #expect(try daemon.listed() == ["worker@1", "worker@b-2", "worker@c.d"])
        #expect(try daemon.status("worker@1")["files"]?.arrayValue == [.string(daemon.config + "/apps/worker@.app")])
        #expect(try daemon.ask("Activate", "worker@4")["state"]?.stringValue == "active")
        #expect(try daemon.listed().count == 4)
    }

    @Test("drop-ins of a template apply to all instances; one of an instance to it alone, in place of the template's")
    func dropIns() throws {
        let daemon = try Self.start()
        try daemon.write("worker@.app.d/a.conf", "[App]\nEnvironment=A=template-%i\n")
        try daemon.write("worker@.app.d/b.conf", "[App]\nEnvironment=B=template\n")
        try daemon.write("worker@2.app.d/a.conf", "[App]\nEnvironment=A=own\n")
        #expect(try daemon.reload() == [])
        for app in ["worker@1", "worker@2"] { try daemon.launch(app) }
        #expect(try daemon.variable("A", of: "worker@1") == "template-1")
        #expect(try daemon.variable("A", of: "worker@2") == "own")
        #expect(try daemon.variable("B", of: "worker@2") == "template")
        let apps = daemon.config + "/apps"
        #expect(
            try daemon.status("worker@2")["files"]?.arrayValue
                == ["worker@.app", "worker@2.app.d/a.conf", "worker@.app.d/b.conf"].map { .string("\(apps)/\($0)") })
    }

    @Test("an instance is no longer an app once it has ended; its directories and receipts stay")
    func ends() throws {
        let daemon = try Self.start()
        let (app, launches) = ("worker@1", daemon.state + "/launches/worker@1")
        try daemon.launch(app)
        #expect(exists(at: launches) && exists(at: daemon.runtime + "/inbox/" + app))
        let summaries = daemon.state + "/summaries"
        try createDirectories(at: summaries)
        for name in [app, app + "~next"] { try replaceFile(at: summaries + "/" + name, with: Array("page 1".utf8)) }
        #expect(try daemon.terminate(app)["outcome"]?.stringValue == "ended")
        #expect(try daemon.listed().isEmpty)
        #expect(daemon.failure("Status", [.string(app)]) == "UnknownApp")
        try daemon.eventually("its files are removed") {
            !exists(at: launches) && entries(of: summaries).isEmpty && entries(of: daemon.runtime + "/inbox").isEmpty
        }
        #expect(try daemon.receipts(app).count == 1)
        #expect(exists(at: daemon.state + "/apps/worker/1"))
        // The next one is a new one.
        try daemon.launch(app)
        #expect(try daemon.status(app)["launches"]?.integerValue == 1)
        #expect(try daemon.variable("GREENROOM_FIRST_LAUNCH", of: app) == "1")
        let receipt = try #require(try daemon.variable("GREENROOM_LAST_RECEIPT", of: app))
        try daemon.terminate(app, remove: true)
        // The answer is sent before the instance is removed.
        try daemon.eventually("the instance is removed") { try daemon.listed().isEmpty && !exists(at: receipt) }
    }

    @Test("an instance that is to be launched again is an app until then")
    func relaunch() throws {
        let daemon = try Self.start("Relaunch=always")
        try daemon.launch("worker@1")
        let first = try daemon.pid("worker@1")
        kill(first, SIGKILL)
        try daemon.wait("worker@1", "ended")
        try daemon.wait("worker@1", "relaunchScheduled")
        #expect(try daemon.listed() == ["worker@1"])
        try daemon.launch("worker@1")
        #expect(try daemon.pid("worker@1") != first)
        try daemon.terminate("worker@1")
        #expect(try daemon.listed().isEmpty)
    }

    @Test("a launch that fails leaves no instance")
    func failedLaunch() throws {
        let daemon = try TestDaemon(["worker@": "[App]\nExecStart=/no/such/%i\n"])
        #expect(try daemon.launch("worker@1")["outcome"]?.stringValue == "ended")
        #expect(try daemon.listed().isEmpty)
        #expect(try daemon.receipts("worker@1").count == 1)
    }

    @Test("an instance with a link to the template, or a file of its own, is an app that does not end to be one")
    func files() throws {
        let daemon = try Self.start()
        #expect(symlink("worker@.app", daemon.config + "/apps/worker@1.app") == 0)
        try daemon.write("worker@2.app", TestDaemon.manifest("", app: "Environment=OWN=%i"))
        #expect(daemon.launchRefusal("worker@1")?.contains("was created after the manifests were read") == true)
        #expect(try daemon.reload() == [])
        #expect(try daemon.listed() == ["worker@1", "worker@2"])
        for app in ["worker@1", "worker@2"] { try daemon.launch(app) }
        #expect(try daemon.variable("INSTANCE", of: "worker@1") == "1")
        #expect(try daemon.variable("INSTANCE", of: "worker@2") == nil)
        #expect(try daemon.variable("OWN", of: "worker@2") == "2")
        try daemon.terminate("worker@1")
        #expect(try daemon.state("worker@1") == "notRunning")
        // Without its link the one that runs is an app until it ends, and the other one is none.
        unlink(daemon.config + "/apps/worker@1.app")
        unlink(daemon.config + "/apps/worker@2.app")
        try daemon.reload()
        #expect(try daemon.listed() == ["worker@2"])
        #expect(try daemon.state("worker@2") == "active")
        try daemon.terminate("worker@2")
        #expect(try daemon.listed().isEmpty)
    }

    @Test("an instance that exists when it gets a file is one with a file from then on")
    func enabled() throws {
        let daemon = try Self.start()
        try daemon.launch("worker@1")
        #expect(symlink("worker@.app", daemon.config + "/apps/worker@1.app") == 0)
        #expect(try daemon.status("worker@1")["needsReload"]?.boolValue == true)
        try daemon.reload()
        try daemon.terminate("worker@1")
        #expect(try daemon.state("worker@1") == "notRunning")
    }

    @Test("a template that has changed applies to its instances once it is read again")
    func changed() throws {
        let daemon = try Self.start()
        for app in ["worker@1", "worker@2"] { try daemon.launch(app) }
        let text = TestDaemon.manifest("", app: "Name=Changed %i")
        try daemon.write("worker@.app", text)
        #expect(try daemon.status("worker@1")["needsReload"]?.boolValue == true)
        // It is created from what was read.
        try daemon.launch("worker@3")
        #expect(try daemon.status("worker@3")["name"]?.stringValue == "Worker 3")
        #expect(try daemon.status("worker@3")["needsReload"]?.boolValue == true)
        #expect(try daemon.reload() == [])
        for number in 1...3 {
            let status = try daemon.status("worker@\(number)")
            #expect(status["name"]?.stringValue == "Changed \(number)")
            #expect(status["needsReload"] == nil && status["state"]?.stringValue != "notRunning")
        }
        try daemon.write("worker@.app.d/a.conf", "[App]\nName=Again\n")
        #expect(try daemon.status("worker@2")["needsReload"]?.boolValue == true)
    }

    @Test("an instance whose template was removed runs on, and is no app once it has ended")
    func removed() throws {
        let daemon = try Self.start("Relaunch=always")
        for app in ["worker@1", "worker@2"] { try daemon.launch(app) }
        unlink(daemon.config + "/apps/worker@.app")
        try daemon.reload()
        #expect(try daemon.state("worker@1") != "notRunning")
        let folders = "\(daemon.config)/apps or /usr/lib/greenroom\(geteuid() == 0 ? "" : "/user")/apps"
        #expect(
            daemon.launchRefusal("worker@3") == "There is no app 'worker@3' and no template 'worker@' in \(folders).")
        try daemon.terminate("worker@1")
        #expect(try daemon.listed() == ["worker@2"])
        #expect(!exists(at: daemon.state + "/launches/worker@1"))
        #expect(!exists(at: daemon.state + "/output/worker@1"))
        // It may come back before the end.
        try daemon.write("worker@.app", TestDaemon.manifest("", app: "Name=Back"))
        #expect(daemon.launchRefusal("worker@3")?.contains("worker@.app was created after") == true)
        try daemon.reload()
        #expect(try daemon.status("worker@2")["name"]?.stringValue == "Back")
        try daemon.launch("worker@3")
        #expect(try daemon.listed() == ["worker@2", "worker@3"])
    }

    @Test(
        "an error in a template disables its instances, is reported once, and is in their status until it is corrected")
    func broken() throws {
        let daemon = try Self.start()
        for number in 1...3 { try daemon.launch("worker@\(number)") }
        #expect(symlink("worker@.app", daemon.config + "/apps/worker@4.app") == 0)
        try daemon.write("worker@.app", "[App]\nType=notfy\nExecStart=/bin/true\n")
        let errors = try daemon.reload()
        #expect(errors.count == 1 && errors.first?.contains("worker@.app:2:") == true, "\(errors)")
        for number in 1...4 {
            let status = try daemon.status("worker@\(number)")
            #expect(status["error"]?.stringValue?.contains("worker@.app:2:") == true)
            #expect(status["state"]?.stringValue == (number == 4 ? "notRunning" : status["state"]?.stringValue))
        }
        #expect(daemon.launchRefusal("worker@4")?.contains("is disabled by an error in its manifest") == true)
        let refusal = daemon.launchRefusal("worker@5")
        #expect(refusal?.hasPrefix("Cannot launch 'worker@5': an error in its template: ") == true)
        #expect(refusal?.contains("worker@.app:2:") == true)
        // Without a process nothing is left of it.
        try daemon.terminate("worker@1")
        #expect(try daemon.listed() == ["worker@2", "worker@3", "worker@4"])
        try daemon.write("worker@.app", Self.template(daemon.root))
        #expect(try daemon.reload() == [])
        #expect(try daemon.status("worker@2")["error"] == nil)
        #expect(try daemon.listed() == ["worker@2", "worker@3", "worker@4"])
        try daemon.terminate("worker@2")
        #expect(try daemon.listed() == ["worker@3", "worker@4"])
    }

    @Test("an instance that cannot be is refused with a sentence that says why")
    func refusals() throws {
        let root = try TestDaemon.makeFolder()
        let daemon = try TestDaemon(["worker@": Self.template(root), "photos": TestDaemon.manifest("")], root: root)
        #expect(
            daemon.launchRefusal("worker@") == "'worker@' is a template; name an instance of it, such as 'worker@1'.")
        #expect(
            daemon.launchRefusal("worker") == "'worker@' is a template; name an instance of it, such as 'worker@1'.")
        let folders = "\(daemon.config)/apps or /usr/lib/greenroom\(geteuid() == 0 ? "" : "/user")/apps"
        #expect(daemon.launchRefusal("other@") == "There is no template 'other@' in \(folders).")
        #expect(daemon.launchRefusal("other@1") == "There is no app 'other@1' and no template 'other@' in \(folders).")
        #expect(
            daemon.launchRefusal("photos@1")
                == "There is no app 'photos@1' and no template 'photos@'. Did you mean 'photos'?")
        for name in ["a/b", "../x", "a b", "a@b", "ä", "\u{1}"] {
            let sentence = daemon.launchRefusal("worker@" + name)
            #expect(sentence?.contains("the name of an instance has letters, digits") == true, "\(sentence ?? "")")
        }
        let long = daemon.launchRefusal("worker@" + String(repeating: "x", count: 293))
        #expect(
            long?.hasSuffix("…' is not a valid app ID: it has 300 bytes; the limit is 128.") == true, "\(long ?? "")")
        #expect(daemon.launchRefusal("worker@" + String(repeating: "x", count: 121)) == nil)
        // Only what launches an app creates an instance.
        for member in ["Background", "Interrupt"] {
            #expect(
                daemon.refusal(member, [.string("worker@1")])
                    == "There is no instance 'worker@1' now. 'greenroomctl launch worker@1' creates it from the template "
                    + "'worker@'.")
        }
        #expect(daemon.failure("Terminate", [.string("worker@1"), .bool(true)]) == "UnknownApp")
        #expect(daemon.failure("Push", [.string("worker@1"), .string("")]) == "UnknownApp")
        // A mask.
        #expect(symlink("/dev/null", daemon.config + "/apps/worker@7.app") == 0)
        try daemon.reload()
        #expect(
            daemon.launchRefusal("worker@7")
                == "App 'worker@7' is masked by an empty manifest or a link to /dev/null.")
        #expect(try daemon.listed().count == 2)
    }

    @Test("clients get signals when an instance becomes an object, and when it is none any more")
    func objects() throws {
        let daemon = try Self.start()
        let path = ObjectPath.encode("worker@1", below: ControlNames.appPrefix)
        try daemon.launch("worker@1")
        let id = try daemon.bus.property(path: path, interface: ControlNames.appInterface, "Id")
        #expect(id.stringValue == "worker@1")
        try daemon.terminate("worker@1")
        var seen: [String] = []
        while seen.last != "InterfacesRemoved" {
            let signal = try #require(try daemon.bus.nextSignal(until: EventLoop.now() + .seconds(60)))
            if signal.arguments.first == .objectPath(path) { seen.append(signal.member) }
        }
        #expect(seen == ["InterfacesAdded", "InterfacesRemoved"])
        #expect(throws: BusError.self) {
            try daemon.bus.property(path: path, interface: ControlNames.appInterface, "Id")
        }
    }
}
