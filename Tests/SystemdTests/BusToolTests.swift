import Glibc
import Posix
import Systemd
import TestKit
import Testing

/// Common D-Bus programs, on the private socket.
@Suite("busctl and gdbus", .serialized)
struct BusToolTests {
    @Test("busctl calls a method", .enabled(if: isInstalled("busctl"), "busctl is not installed"))
    func busctlCall() throws {
        let stage = try Stage()
        let (status, text) = try stage.busctl(
            "call", Exhibit.name, Exhibit.path, Exhibit.manager, "Launch", "sa{sv}", "mail", "1", "reason", "s", "url")
        #expect(status == 0)
        #expect(text == "a{sv} 2 \"id\" s \"mail\" \"options\" v a{sv} 1 \"reason\" s \"url\"\n")
        let failure = try stage.busctl("call", Exhibit.name, Exhibit.path, Exhibit.manager, "Fail")
        #expect(failure.status == 1)
        #expect(failure.text == "Call failed: It is sad.\n")
    }

    @Test(
        "busctl shows the interfaces with their properties and signals",
        .enabled(if: isInstalled("busctl"), "busctl is not installed"))
    func busctlIntrospect() throws {
        let stage = try Stage()
        let (status, text) = try stage.busctl("introspect", Exhibit.name, Exhibit.appPrefix + "/mail")
        #expect(status == 0)
        let lines = text.split(separator: "\n").map { $0.split(separator: " ").prefix(4).joined(separator: " ") }
        #expect(lines.contains("org.example.App1 interface - -"))
        #expect(lines.contains(".Name method - s"))
        #expect(lines.contains(".State property s \"notRunning\""))
        let manager = try stage.busctl("introspect", "--xml-interface", Exhibit.name, Exhibit.path)
        #expect(manager.text.contains("<arg type=\"a{sv}\" name=\"options\" direction=\"in\"/>"))
        #expect(manager.text.contains("<arg type=\"a{sv}\" name=\"app\" direction=\"out\"/>"))
        #expect(manager.text.contains("<arg type=\"u\" name=\"number\"/>"))
    }

    @Test("busctl reads a property and shows the tree", .enabled(if: isInstalled("busctl"), "busctl is not installed"))
    func busctlTree() throws {
        let stage = try Stage()
        stage.exhibit.states["org.example.Photos"] = "suspended"
        let path = ObjectPath.encode("org.example.Photos", below: Exhibit.appPrefix)
        #expect(path == "/org/example/app/org_2eexample_2ePhotos")
        let property = try stage.busctl("get-property", Exhibit.name, path, Exhibit.app, "State")
        #expect(property.text == "s \"suspended\"\n")
        let tree = try stage.busctl("tree", "--list", Exhibit.name)
        let paths = tree.text.split(separator: "\n").map(String.init)
        #expect(tree.status == 0)
        for expected in [Exhibit.path, Exhibit.appPrefix, path, Exhibit.appPrefix + "/mail"] {
            #expect(paths.contains(expected), "\(expected)")
        }
    }

    @Test(
        "gdbus introspects, calls a method and receives an error by name",
        .enabled(if: isInstalled("gdbus"), "gdbus is not installed"))
    func gdbus() throws {
        let stage = try Stage()
        func gdbus(_ words: String...) throws -> (status: Int32, text: String) {
            try stage.loop.run(["gdbus", words[0], "--address", "unix:path=\(stage.path)"] + words.dropFirst())
        }
        let call = try gdbus(
            "call", "--dest", Exhibit.name, "--object-path", Exhibit.path, "--method", Exhibit.manager + ".Launch",
            "mail", "{'reason': <'url'>}")
        #expect(call.status == 0)
        #expect(call.text == "({'id': <'mail'>, 'options': <<{'reason': <'url'>}>>},)\n")
        let failure = try gdbus(
            "call", "--dest", Exhibit.name, "--object-path", Exhibit.path, "--method", Exhibit.manager + ".Fail")
        #expect(failure.status != 0)
        #expect(failure.text.contains("org.example.Error.Sad: It is sad."))
        let shown = try gdbus("introspect", "--dest", Exhibit.name, "--object-path", Exhibit.path)
        #expect(shown.status == 0)
        #expect(shown.text.contains("interface org.example.Manager1"))
        #expect(shown.text.contains("readonly s Version = '1';"))
    }

    @Test(
        "gdbus receives the signals of an object, as they come from the owner of the name",
        .enabled(if: isInstalled("gdbus"), "gdbus is not installed"))
    func gdbusMonitor() throws {
        let stage = try Stage()
        let pipe = try TestPipe()
        let words = ["gdbus", "monitor", "--address", "unix:path=\(stage.path)", "--dest", Exhibit.name]
        let pid = try spawn(words + ["--object-path", Exhibit.path], output: pipe.writing)
        pipe.closeWriting()
        defer {
            kill(pid, SIGKILL)
            waitpid(pid, nil, 0)
        }
        var text = ""
        let source = try stage.loop.addDescriptor(pipe.reading, events: .readable) { _ in
            text += String(decoding: pipe.read(), as: UTF8.self)
        }
        defer { source.cancel() }
        #expect(try stage.loop.serve { text.contains("is owned by :1.0") })
        let isPrinted = try stage.loop.serve {
            // gdbus prints this before it listens.
            try? stage.server.emitSignal(
                path: Exhibit.path, interface: Exhibit.manager, member: "Changed", [.string("mail"), .uint32(7)])
            return text.contains("org.example.Manager1.Changed ('mail', uint32 7)")
        }
        #expect(isPrinted, "\(text)")
    }

    @Test("dbus-send calls a method", .enabled(if: isInstalled("dbus-send"), "dbus-send is not installed"))
    func dbusSend() throws {
        let stage = try Stage()
        let (status, text) = try stage.loop.run([
            "dbus-send", "--peer=unix:path=\(stage.path)", "--print-reply=literal", "--dest=\(Exhibit.name)",
            Exhibit.path, "org.freedesktop.DBus.Properties.Get", "string:\(Exhibit.manager)", "string:Version",
        ])
        #expect(status == 0)
        #expect(text == "   variant       1")
    }
}
