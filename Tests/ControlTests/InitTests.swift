import Glibc
import JSON
import Systemd
import Testing

@testable import greenroomctl

@Suite("init")
struct InitTests {
    private let folder = TemporaryFolder()

    private func run(_ arguments: String...) throws -> Outcome {
        try RunningProgram(["init", "--user", "--config", folder.path] + arguments, environment: [], terminal: false)
            .finish(in: EventLoop())
    }

    private func text(_ path: String) -> String {
        guard let file = fopen(path, "r") else { return "" }
        defer { fclose(file) }
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = fread(&buffer, 1, buffer.count, file)
        return String(decoding: buffer.prefix(count), as: UTF8.self)
    }

    @Test("writes a manifest that verify accepts, and says what to do next")
    func manifest() throws {
        let outcome = try run("web", "--", "true", "--port", "80", "a b", "100%", "$HOME", "say \"hi\"")
        #expect(outcome.status == 0, "\(outcome.errors)")
        let path = folder.path + "/apps/web.app"
        #expect(outcome.output.hasPrefix("Created \(path).\nNext: check it with 'greenroomctl verify \(path)'"))
        #expect(
            text(path).contains(
                "/true --port 80 \"a b\" \"100%%\" \"$$HOME\" \"say \\\"hi\\\"\"\n"), "\(text(path))")
        // No Type= is right for a program of which nothing is known.
        #expect(text(path).contains("sends READY=1 (notify) or listens (listening).\n#Type=simple\n# A server"))
        #expect(text(path).hasSuffix(" (LISTEN_FDS=).\n#Type=listening\n#Role=worker\n"), "\(text(path))")
        let settings = text(path).split(separator: "\n").filter { !$0.hasPrefix("#") }
        #expect(settings.map { $0.prefix { $0 != "=" } } == ["[App]", "Name", "ExecStart"])
        let verified = try RunningProgram(["verify", "--user", path], environment: [], terminal: false)
            .finish(in: EventLoop())
        #expect(verified.output == "\(path): OK\n")
    }

    @Test("the daemon is asked for its folder, and the next commands are for the same daemon")
    func folderOfDaemon() throws {
        let daemon = try FakeDaemon()
        let plain = try daemon.run("init", "site", "--", "/bin/true")
        #expect(plain.status == 0, "\(plain.errors)")
        let path = daemon.runtime + "/config/apps/site.app"
        #expect(text(path).contains("ExecStart=/bin/true\n"))
        let option = "--runtime \(daemon.runtime)"
        #expect(plain.output.hasPrefix("Created \(path).\n"))
        #expect(plain.output.contains("run 'greenroomctl \(option) reload' and 'greenroomctl \(option) launch site'."))
        #expect(plain.errors.isEmpty)
    }

    @Test(
        "without a daemon the default folder is used and a sentence says so; that of a daemon named by --runtime is not known"
    )
    func withoutDaemon() throws {
        func run(_ arguments: String...) throws -> Outcome {
            let environment = ["HOME=\(folder.path)", "XDG_RUNTIME_DIR=\(folder.path)"]
            return try RunningProgram(
                arguments + ["init", "web", "--", "/bin/true"], environment: environment, terminal: false
            ).finish(in: EventLoop())
        }
        let outcome = try run("--user")
        let apps = folder.path + "/.config/greenroom/apps"
        #expect(outcome.status == 0)
        #expect(outcome.errors == "No greenroomd answers, so the default folder is used: \(apps)\n")
        #expect(outcome.output.contains("run 'greenroomctl --user reload'"))
        #expect(access(apps + "/web.app", F_OK) == 0)
        let unknown = try run("--runtime", folder.path + "/none")
        #expect(unknown.status == 1)
        #expect(
            unknown.errors.contains("so the folder of its manifests is not known; use --config DIR\n"),
            "\(unknown.errors)")
    }

    @Test("hints repeat the options that select the daemon, quoted for a shell")
    func hints() {
        func options(_ line: String...) -> String? {
            guard case .run(let invocation) = Invocation.parse(line) else { return nil }
            return invocation.daemonOptions
        }
        #expect(options("list") == "")
        #expect(options("--user", "list") == " --user")
        #expect(options("list", "--runtime", "/run/my apps/it's") == " --runtime '/run/my apps/it'\\''s'")
        #expect(options("list", "--runtime=/a\u{1B}b") == " --runtime '/a\\x1bb'")
    }

    @Test("never changes a file that exists")
    func existing() throws {
        let path = try folder.write("apps/web.app", "mine\n")
        let outcome = try run("web.app", "--", "/bin/true")
        #expect(outcome.status == 1)
        #expect(outcome.errors.hasPrefix("greenroomctl: \(path) already exists.\n"))
        #expect(text(path) == "mine\n")
    }

    @Test("refuses a program that does not exist")
    func missing() throws {
        #expect(try run("web", "--", "no-such-program").errors.hasPrefix("greenroomctl: init: there is no program"))
        #expect(try run("web", "--", "/no/such").errors == "greenroomctl: init: '/no/such' is not an executable file\n")
        #expect(access(folder.path + "/apps/web.app", F_OK) != 0)
    }

    @Test("--url-scheme writes URLSchemes= and a desktop entry, which is shown; an entry that exists is not changed")
    func schemes() throws {
        func initialize(_ name: String, _ schemes: String...) throws -> Outcome {
            try RunningProgram(
                ["init", "--user", "--config", folder.path, name] + schemes.flatMap { ["--url-scheme", $0] }
                    + ["--", "/bin/true"],
                environment: ["XDG_DATA_HOME=\(folder.path)/data"], terminal: false
            ).finish(in: EventLoop())
        }
        let outcome = try initialize("mail", "mailto", "X-Mail,sip")
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(text(folder.path + "/apps/mail.app").contains("\nURLSchemes=mailto x-mail sip\n"))
        let path = folder.path + "/data/applications/greenroom-mail.desktop"
        let call = geteuid() == 0 ? "greenroomctl --user" : "greenroomctl"
        let entry = """
            [Desktop Entry]
            Type=Application
            Name=mail
            Exec=\(call) open mail %u
            MimeType=x-scheme-handler/mailto;x-scheme-handler/x-mail;x-scheme-handler/sip;
            NoDisplay=true

            """
        #expect(text(path) == entry)
        #expect(outcome.output.contains("Created \(path):\n\(entry)"))
        #expect(outcome.output.contains("update-desktop-database \(folder.path)/data/applications"))
        let ofDaemon = try RunningProgram(
            ["init", "--user", "--config", folder.path, "--runtime", folder.path + "/run", "--url-scheme", "sip", "--"]
                + ["phone", "/bin/true"],
            environment: ["XDG_DATA_HOME=\(folder.path)/data"], terminal: false
        ).finish(in: EventLoop())
        #expect(ofDaemon.output.contains("\nExec=greenroomctl --runtime \(folder.path)/run open phone %u\n"))
        unlink(folder.path + "/apps/mail.app")
        let again = try initialize("mail", "mailto")
        #expect(again.status == 1 && again.errors.hasPrefix("greenroomctl: \(path) already exists."))
        #expect(access(folder.path + "/apps/mail.app", F_OK) != 0)
        let wrong = try initialize("other", "mail to")
        #expect(wrong.status == 2)
        #expect(wrong.errors.contains("--url-scheme: invalid scheme 'mail to'; expected a scheme such as mailto"))
        #expect(try initialize("worker@", "work").errors.contains("worker@ is a template"))
        let escaped = try initialize("worker@a\\x2db", "work")
        #expect(escaped.status == 2 && escaped.errors.contains("cannot name an app with a backslash"))
    }
}
