import Control
import Glibc
import JSON
import Systemd
import TestKit
import Testing

@Suite("edit")
struct EditTests {
    private let good = "[App]\nExecStart=/bin/true\n"

    /// A daemon with a manifest in its folder, and a shell script as the editor. `$1` is the file.
    private func stage(_ script: String, _ file: String = "web.app") throws -> (daemon: FakeDaemon, editor: String) {
        let daemon = try FakeDaemon()
        daemon.answer(
            "Reload",
            Records.make(ReloadResult()) {
                $0.apps = 1
                $0.warnings = ["other.app:1:1: warning: unknown key"]
            })
        try daemon.folder.write("config/apps/\(file)", good)
        let path = try daemon.folder.write("editor", "#!/bin/sh\n\(script)\n")
        chmod(path, 0o755)
        return (daemon, "EDITOR=sh \(path)")
    }

    private func text(_ daemon: FakeDaemon, _ name: String = "web.app") -> String {
        guard let file = fopen("\(daemon.runtime)/config/apps/\(name)", "r") else { return "" }
        defer { fclose(file) }
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = fread(&buffer, 1, buffer.count, file)
        return String(decoding: buffer.prefix(count), as: UTF8.self)
    }

    /// The folders of copies below the test's folder.
    private func copies(_ daemon: FakeDaemon) -> Int {
        var found = glob_t()
        defer { globfree(&found) }
        glob("\(daemon.runtime)/greenroomctl-edit.*", 0, nil, &found)
        return Int(found.gl_pathc)
    }

    @Test("a valid change is written with the mode of the file, and the manifests are reloaded; no copy is left")
    func change() throws {
        let (daemon, editor) = try stage("echo Name=Web >> \"$1\"")
        let path = daemon.runtime + "/config/apps/web.app"
        chmod(path, 0o640)
        let environment = [editor, "TMPDIR=\(daemon.runtime)"]
        let outcome = try daemon.run("edit", "web.app", environment: environment)
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(outcome.output == "Wrote \(path).\nLoaded 1 app.\n")
        #expect(text(daemon) == good + "Name=Web\n")
        var about = stat()
        #expect(stat(path, &about) == 0 && about.st_mode & 0o777 == 0o640)
        #expect(copies(daemon) == 0)
        let visual = try daemon.run("edit", "web", "--json", environment: environment + ["VISUAL=true"])
        #expect(try JSONValue.parse(visual.output)["changed"]?.boolValue == false)
        #expect(daemon.count(of: "Reload") == 1, "an unchanged file is not loaded")
    }

    @Test("an error is shown and the question is asked; after another edit the file is written")
    func again() throws {
        let (daemon, editor) = try stage(
            "if grep -q notfy \"$1\"; then sed -i /Type/d \"$1\"; else echo Type=notfy >> \"$1\"; echo Name=W >> \"$1\"; fi"
        )
        var hasTyped = false
        let outcome = try daemon.run(
            "edit", "web", environment: [editor, "TMPDIR=\(daemon.runtime)", "TERM=dumb"], terminal: true
        ) { program in
            if !hasTyped, program.output.contains("[Y/n]") {
                hasTyped = true
                program.type("\n")
            }
        }
        #expect(outcome.status == 0, "\(outcome.output)")
        #expect(outcome.output.contains("web.app:3:6: error: Type=: invalid value 'notfy'"))
        #expect(text(daemon) == good + "Name=W\n")
        #expect(copies(daemon) == 0)
    }

    @Test(
        "without a terminal, and after n, an invalid text is not written, and the message says where it is",
        arguments: [true, false])
    func refused(terminal: Bool) throws {
        let (daemon, editor) = try stage("echo Type=notfy >> \"$1\"")
        let outcome = try daemon.run(
            "edit", "web", environment: [editor, "TMPDIR=\(daemon.runtime)"], terminal: terminal
        ) { program in
            if program.output.hasSuffix("[Y/n] ") { program.type("n\n") }
        }
        #expect(outcome.status == 1)
        let all = outcome.output + outcome.errors
        #expect(all.contains("web.app was not changed."))
        #expect(all.contains("Your text is in \(daemon.runtime)/greenroomctl-edit."))
        #expect(text(daemon) == good)
        #expect(copies(daemon) == 1)
        #expect(daemon.calls.isEmpty)
    }

    @Test("a file that another program changes meanwhile, an empty text, and an editor that fails change nothing")
    func untouched() throws {
        let (daemon, editor) = try stage(
            "echo Name=A >> \"$1\"; echo '# other' >> \(#"$(dirname "$0")/config/apps/web.app"#)")
        let raced = try daemon.run("edit", "web", environment: [editor, "TMPDIR=\(daemon.runtime)"])
        #expect(raced.status == 1 && raced.errors.contains("was changed by another program meanwhile"))
        #expect(text(daemon) == good + "# other\n")
        let empty = try daemon.run("edit", "web", environment: ["EDITOR=truncate -s 0", "TMPDIR=\(daemon.runtime)"])
        #expect(empty.status == 1 && empty.errors.contains("The file is empty, which would mask the app"))
        let failed = try daemon.run("edit", "web", environment: ["EDITOR=no-such-editor", "TMPDIR=\(daemon.runtime)"])
        #expect(failed.status == 1)
        #expect(failed.errors.contains("The editor 'no-such-editor' exited with status 127; nothing was changed.\n"))
        #expect(text(daemon) == good + "# other\n")
    }

    @Test("a folder of TMPDIR= that cannot be written is named with its variable, before the editor runs")
    func temporaryFolder() throws {
        let (daemon, editor) = try stage("echo Name=A >> \"$1\"")
        let outcome = try daemon.run("edit", "web", environment: [editor, "TMPDIR=\(daemon.runtime)/none"])
        #expect(
            outcome.status == 1
                && outcome.errors == """
                    greenroomctl: Cannot create a folder in \(daemon.runtime)/none, which TMPDIR= names: No such file or directory
                    Set TMPDIR= to a folder that you may write, or unset it for /tmp.

                    """
        )
        #expect(text(daemon) == good)
    }

    @Test(
        "a template is edited for all instances, which have no manifest of their own; a link stays a link; an unknown app has none"
    )
    func names() throws {
        let (daemon, editor) = try stage("echo Name=All >> \"$1\"", "worker@.app")
        let apps = daemon.runtime + "/config/apps"
        #expect(try daemon.run("edit", "worker@", environment: [editor]).status == 0)
        #expect(text(daemon, "worker@.app") == good + "Name=All\n")
        symlink("worker@.app", apps + "/worker@1.app")
        for instance in ["worker@1", "worker@2"] {
            let outcome = try daemon.run("edit", instance, environment: [editor])
            #expect(
                outcome.errors.hasPrefix("greenroomctl: edit: the instance '\(instance)' has no manifest of its own.\n")
            )
            #expect(outcome.errors.contains("--runtime \(daemon.runtime) edit 'worker@'\n"))
        }
        let real = try daemon.folder.write("real.app", good)
        symlink(real, apps + "/linked.app")
        #expect(try daemon.run("edit", "linked", environment: [editor]).output.hasPrefix("Wrote \(real).\n"))
        var about = stat()
        #expect(lstat(apps + "/linked.app", &about) == 0 && about.st_mode & S_IFMT == S_IFLNK)
        let unknown = try daemon.run("edit", "none", environment: [editor])
        #expect(
            unknown.status == 1
                && unknown.errors.contains("there is no manifest of 'none': neither \(apps)/none.app nor"))
    }

    @Test(
        "without write permission a sentence says so before the editor runs",
        .enabled(if: geteuid() == 0, "another user is needed"))
    func permission() throws {
        let (daemon, _) = try stage("exit 1")
        // Other users may not be able to read the build folder.
        let copy = daemon.runtime + "/greenroomctl"
        #expect(
            Glibc.system(
                "cp \(programFolder())/greenroomctl \(copy) && chmod 755 \(copy) && chmod -R o+rX \(daemon.runtime)")
                == 0)
        let program = try RunningProgram(
            ["edit", "web", "--config", daemon.runtime + "/config"], environment: ["EDITOR=false", "HOME=/"],
            terminal: false,
            wrapper: ["/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"], program: copy)
        let outcome = try program.finish(in: daemon.loop)
        #expect(outcome.status == 1)
        #expect(
            outcome.errors
                == "greenroomctl: Cannot change \(daemon.runtime)/config/apps/web.app: Permission denied\nTry as root.\n"
        )
    }
}
