import LifecycleCore
import Manifest
import Testing

@Suite("Settings of section [App]")
struct AppSettingTests {
    @Test("Name= accepts 1 to 256 bytes without control characters")
    func name() throws {
        #expect(try accepted("App", "Name=Fotos & Cö “x”").name == "Fotos & Cö “x”")
        #expect(try accepted("App", "Name=\u{0645}\u{06cc}\u{200c}\u{062e}").name == "\u{0645}\u{06cc}\u{200c}\u{062e}")
        #expect(try accepted("App", "Name=" + String(repeating: "a", count: 256)).name.utf8.count == 256)
        #expect(try accepted("App", "Name=%o, 5% $A \\x").name == "%o, 5% $A \\x")
        try expectRefused("App", "Name", String(repeating: "a", count: 257))
        for character in ["\u{1b}", "\u{7f}", "\u{85}", "\u{202e}", "\u{2028}", "\u{2066}"] {
            try expectRefused("App", "Name", "a\(character)b")
        }
    }

    @Test("NotifyAccess= accepts systemd's words, and the default is all")
    func notifyAccess() throws {
        #expect(try accepted("App").effectiveNotifyAccess == .all)
        for (word, effect) in [("none", NotifyAccess.none), ("main", .main), ("exec", .main), ("all", .all)] {
            #expect(try accepted("App", "NotifyAccess=\(word)").effectiveNotifyAccess == effect)
        }
        let forced = try read("[App]\nExecStart=/bin/app\nType=notify\nNotifyAccess=none\n")
        #expect(forced.manifest?.effectiveNotifyAccess == .main)
        #expect(
            forced.lines == [
                "a.app:4:1: warning: NotifyAccess=none has the effect of NotifyAccess=main, because Type=notify needs READY=1"
            ])
        for word in ["", "yes", "Main", "cgroup"] where !word.isEmpty {
            try expectRefused("App", "NotifyAccess", word, "none, main, exec or all")
        }
    }

    @Test("ExecStart= accepts a program's absolute path and arguments")
    func command() throws {
        func command(_ text: String) throws -> [String]? { try read("[App]\nExecStart=\(text)\n").manifest?.exec }
        #expect(try command("/bin/app") == ["/bin/app"])
        #expect(try command(#"/bin/app -x "a b" 'c' d\x20e"#) == ["/bin/app", "-x", "a b", "c", "d e"])
        #expect(try command(#""/bin/my app" """#) == ["/bin/my app", ""])
        #expect(try command("/bin/app 100%% $$5 $$$$") == ["/bin/app", "100%", "$5", "$$"])
        #expect(try command(#"/bin/app \; ";" a; ;b"#) == ["/bin/app", ";", ";", "a;", ";b"])
        #expect(try command("/bin/app # none") == ["/bin/app", "#", "none"])
        #expect(try command("/bin/app \(String(repeating: "a", count: 131_071))")?.last?.utf8.count == 131_071)
    }

    @Test("prefixes, several commands, unknown specifiers and variables in ExecStart= are errors")
    func refusedCommands() throws {
        func refuse(_ text: String, at offset: Int = 0, _ words: String) throws {
            let reading = try read("[App]\nExecStart=\(text)\n")
            #expect(reading.manifest == nil)
            #expect(reading.diagnostics.map(\.column) == [11 + offset], "\(text): \(reading.lines)")
            #expect(reading.lines.first?.contains(words) == true, "\(reading.lines)")
        }
        try refuse("app", "'app' is not an absolute path")
        try refuse("./app", "'./app' is not an absolute path")
        try refuse("\"\"", "'' is not an absolute path")
        try refuse("/bin/", "'/bin/' is a directory")
        try refuse("/" + String(repeating: "a", count: 4095), "is not an absolute path")
        for prefix in ["-", "@", ":", "+", "!", "!!", "|"] {
            try refuse("\(prefix)/bin/app", "prefix '\(prefix.prefix(1))' is not supported")
        }
        try refuse("/bin/a ; /bin/b", at: 7, "several commands are not supported")
        try refuse("/bin/a b ;", at: 9, "several commands are not supported")
        try refuse("/bin/a %d", at: 7, "%d is no specifier that is supported")
        try refuse("/bin/%", "incomplete specifier")
        for word in ["x$B", "$B.", "${", "${B", "${}", "${1}", "${B:-c}", "$", "$1"] {
            try refuse("/bin/a  \(word)", at: 8, "a variable is ${NAME}, or $NAME as a word of its own")
        }
        try refuse("/bin/${B}", "the program has no variables")
        try refuse("/bin/a \"b", at: 7, "missing closing quote")
        try refuse("/bin/a b\\q", at: 8, "invalid escape '\\q'")
        try refuse("/bin/a \(String(repeating: "a", count: 131_072))", at: 7, "argument of 131072 bytes")
    }

    @Test("${NAME} is replaced within a word, and $NAME by any number of words")
    func variables() throws {
        let manifest = try #require(
            try read("[App]\nExecStart=/bin/a ${A} x${B}y$$${A}%p '$L' $E \"${E}\" $$A\n").manifest)
        let environment = ["A=1 2", "B= b=c ", "L=one 'two three'", "X=9"]
        #expect(
            manifest.command(environment) == ["/bin/a", "1 2", "x b=c y$1 2a", "one", "two three", "", "$A"])
        #expect(manifest.exec.prefix(3) == ["/bin/a", "${A}", "x${B}y$$${A}a"])
        #expect(manifest.command(["L=it's"]).dropFirst(3) == ["it's", "", "$A"])
    }

    @Test("EnvironmentFile= accepts paths, and reads assignments as systemd does")
    func environmentFiles() throws {
        let manifest = try accepted("App", "EnvironmentFile=/etc/default/%p", "EnvironmentFile=-/a")
        #expect(
            manifest.environmentFiles == [
                EnvironmentFile(path: "/etc/default/a", isOptional: false),
                EnvironmentFile(path: "/a", isOptional: true),
            ])
        #expect(try accepted("App", "EnvironmentFile=/a", "EnvironmentFile=").environmentFiles.isEmpty)
        for value in ["a", "-", "--/a", "/a/../b"] { try expectRefused("App", "EnvironmentFile", value) }
        let text = """
            # A=comment
              ; B=comment
            A=1
             B =  two  words \r
            C="a \\"b\\" \\x $D" 'c\\d'
            D=a"b
            E=a\\ \\
            b
            F=
            no assignment
            1G=x
            H='two
            lines'
            I=last
            """
        #expect(
            EnvironmentFile.entries(Array(text.utf8)) == [
                "A=1", "B=two  words", "C=a \"b\" \\x $Dc\\d", "D=a\"b", "E=a b", "F=", "H=two\nlines", "I=last",
            ])
    }

    @Test("a second ExecStart= is an error unless an empty one resets the first")
    func secondCommand() throws {
        #expect(
            try read("[App]\nExecStart=/a\nExecStart=/b\n").lines == [
                "a.app:3:11: error: ExecStart=: assigned more than once; an empty 'ExecStart=' resets it; "
                    + "expected the absolute path of a program and its arguments"
            ])
        #expect(try read("[App]\nExecStart=/a\nExecStart=\nExecStart=/b\n").manifest?.exec == ["/b"])
    }

    @Test("hooks are commands as ExecStart= is; several of one kind run in their order (L57)")
    func hooks() throws {
        let manifest = try accepted(
            "Lifecycle", "ExecBeforeSuspend=/bin/a ${A} $$x", "ExecBeforeSuspend=/bin/b 'c d'",
            "ExecAfterResume=/bin/e",
            "ExecEnterBackground=/bin/f", "ExecEnterBackground=")
        let commands = manifest.hooks[.beforeSuspend] ?? []
        #expect(commands.map { $0.words(in: ["A=1 2"]) } == [["/bin/a", "1 2", "$x"], ["/bin/b", "c d"]])
        #expect(manifest.hooks.keys.sorted { $0.rawValue < $1.rawValue } == [.afterResume, .beforeSuspend])
        #expect(manifest.policy.hooks == [HookKinds(.beforeSuspend), HookKinds(.afterResume)])
        for (value, offset) in [("a", 0), ("-/bin/a", 0), ("/bin/a ; /bin/b", 7)] {
            try expectRefused(
                "Lifecycle", "ExecAfterResume", value, at: offset, "the absolute path of a program and its arguments")
        }
        let lines = Array(repeating: "ExecAfterResume=/a\n", count: 17).joined()
        #expect(
            try read("[App]\nExecStart=/a\n[Lifecycle]\n" + lines).lines.first?.contains("more than 16 commands")
                == true)
    }

    @Test("KillMode= accepts systemd's keywords but none")
    func killMode() throws {
        #expect(try accepted("App", "").policy.killMode == .controlGroup)
        #expect(try accepted("App", "KillMode=control-group").policy.killMode == .controlGroup)
        #expect(try accepted("App", "KillMode=mixed").policy.killMode == .mixed)
        #expect(try accepted("App", "KillMode=process").policy.killMode == .process)
        for value in ["none", "Mixed"] { try expectRefused("App", "KillMode", value) }
    }

    @Test("Role= accepts app, home and worker (L49)")
    func role() throws {
        #expect(try accepted("App", "").policy.role == .app)
        #expect(try accepted("App", "Role=app").policy.role == .app)
        #expect(try accepted("App", "Role=home").policy.role == .home)
        #expect(try accepted("App", "Role=worker").policy.role == .worker)
        for value in ["Home", "workers"] { try expectRefused("App", "Role", value, "app, home or worker") }
    }

    @Test("TerminateSuspended= accepts its keywords only")
    func terminateSuspended() throws {
        #expect(try accepted("App", "").policy.terminateSuspended == .auto)
        #expect(try accepted("Lifecycle", "TerminateSuspended=auto").policy.terminateSuspended == .auto)
        #expect(try accepted("Lifecycle", "TerminateSuspended=notify").policy.terminateSuspended == .notify)
        #expect(try accepted("Lifecycle", "TerminateSuspended=kill").policy.terminateSuspended == .kill)
        for value in ["yes", "Notify"] { try expectRefused("Lifecycle", "TerminateSuspended", value) }
    }

    @Test("Type=forking requires PIDFile=, which is absolute or below /run")
    func forking() throws {
        let manifest = try accepted("App", "Type=forking\nPIDFile=nginx.pid")
        #expect(manifest.policy.readiness == .forked)
        #expect(manifest.pidFile == "/run/nginx.pid")
        #expect(try accepted("App", "PIDFile=/srv/web/pid").pidFile == "/srv/web/pid")
        for value in ["../pid", "/srv/../pid", "/run/%.pid"] { try expectRefused("App", "PIDFile", value) }
        let lines = try read("[App]\nExecStart=/a\nType=forking\n").lines
        #expect(
            lines == [
                "a.app:3:1: error: Type=forking requires PIDFile=, the path of a file with the pid of the main process"
            ])
    }

    @Test("Type=, Relaunch= and LaunchAtStart= accept their keywords only")
    func words() throws {
        #expect(try accepted("App", "Type=simple").policy.readiness == .executed)
        #expect(try accepted("App", "Type=notify").policy.readiness == .notified)
        #expect(try accepted("App", "Type=exec").policy.readiness == .executed)
        #expect(try accepted("App", "Type=listening").policy.readiness == .listening)
        #expect(try accepted("App", "StartupSec=").policy.startUpTime == .seconds(30))
        #expect(try accepted("App", "StartupSec=0").policy.startUpTime == .zero)
        #expect(try accepted("App", "StartupSec=infinity").policy.startUpTime == nil)
        for value in ["idle", "Simple", "notify-reload"] {
            try expectRefused("App", "Type", value, "simple, exec, notify, forking or listening")
        }
        try expectRefused("App", "Type", "oneshot", "an app has a main process as long as it runs")
        try expectRefused("App", "Type", "oneshot", "simple, exec, notify, forking or listening")
        #expect(try accepted("App", "Relaunch=no").policy.relaunch == .no)
        #expect(try accepted("App", "Relaunch=on-failure").policy.relaunch == .onFailure)
        #expect(try accepted("App", "Relaunch=always").policy.relaunch == .always)
        for value in ["yes", "on-abort"] { try expectRefused("App", "Relaunch", value) }
        #expect(try accepted("App", "LaunchAtStart=foreground").policy.launchAtStart == .foreground)
        #expect(try accepted("App", "LaunchAtStart=background").policy.launchAtStart == .background)
        #expect(try accepted("App", "LaunchAtStart=off").policy.launchAtStart == nil)
        for value in ["yes", "Foreground"] { try expectRefused("App", "LaunchAtStart", value) }
    }

    @Test("User= and Group= accept names and numbers except those that setresuid(2) treats as unchanged")
    func accounts() throws {
        for name in ["root", "1000", "0", "_a.b-C9", "a$", "a@b", "65534"] {
            #expect(try accepted("App", "User=\(name)").user == name)
            #expect(try accepted("App", "Group=\(name)").group == name)
            #expect(try accepted("App", "SupplementaryGroups=\(name)").supplementaryGroups == [name])
        }
        for name in [
            "-a", "a b", "a:b", "a/b", "ä", ".", "..", "65535", "4294967295", "4294967296", "99999999999999999999",
            "a\u{7f}", String(repeating: "a", count: 257),
        ] {
            try expectRefused("App", "User", name)
            try expectRefused("App", "Group", name)
        }
        try expectRefused("App", "User", "%o", "%o is no specifier that is supported")
        try expectRefused("App", "SupplementaryGroups", "audio 65535", at: 6, "invalid value '65535'")
        #expect(
            try accepted("App", "SupplementaryGroups=a \"b\"", "SupplementaryGroups=c").supplementaryGroups == [
                "a", "b", "c",
            ])
        let many = (0..<64).map { "g\($0)" }.joined(separator: " ")
        #expect(try accepted("App", "SupplementaryGroups=\(many)").supplementaryGroups.count == 64)
        try expectRefused("App", "SupplementaryGroups", many + " g", at: many.utf8.count + 1, "more than 64 entries")
    }

    @Test("WorkingDirectory= accepts a normalized absolute path or ~")
    func workingDirectory() throws {
        for path in ["/", "/srv/my photos", "~", "/a..b", "/.a"] {
            #expect(try accepted("App", "WorkingDirectory=\(path)").workingDirectory == path)
        }
        #expect(try accepted("App", "WorkingDirectory=/a%%b").workingDirectory == "/a%b")
        for path in ["srv", "~/a", "-/a", "/a/../b", "/a/.", "%d", "/" + String(repeating: "a", count: 4095)] {
            try expectRefused("App", "WorkingDirectory", path)
        }
    }

    @Test("Environment= accepts assignments, and each Environment= adds to the list")
    func environment() throws {
        #expect(
            try accepted(
                "App", #"Environment=LANG=C.UTF-8 "GREETING=hello world""#, "Environment=A= 'B=\\t=' C=100%% D=$E"
            )
            .environment == ["LANG=C.UTF-8", "GREETING=hello world", "A=", "B=\t=", "C=100%", "D=$E"])
        for (text, offset) in [
            ("A", 0), ("A=1 B", 4), ("=1", 0), ("1A=2", 0), ("A-B=1", 0), ("Ä=1", 0), ("A =1", 0), ("\"A=1", 0),
            ("A=%o", 0),
            ("A=\\q", 2), ("A=1 B\u{301}=2", 4), ("", 0),
        ] where !text.isEmpty { try expectRefused("App", "Environment", text, at: offset) }
        try expectRefused("App", "Environment", "A=" + String(repeating: "a", count: 131_070))
        let many = Array(repeating: "A=1", count: 1024).joined(separator: " ")
        #expect(try accepted("App", "Environment=\(many)").environment.count == 1024)
        try expectRefused("App", "Environment", many + " A=1", at: 4096, "more than 1024 entries")
    }

    @Test("the environment of all files together is limited to 1 MiB")
    func largeEnvironment() throws {
        let entry = "[App]\nEnvironment=A=" + String(repeating: "a", count: 131_069) + "\n"
        let start = "[App]\nExecStart=/bin/app\n"
        #expect(try read(start, entry, entry, entry, entry, entry, entry, entry, entry).diagnostics == [])
        let reading = try read(
            start, entry, entry, entry, entry, entry, entry, entry, entry, "[App]\nEnvironment=A=1234567\n")
        #expect(reading.lines.count == 1)
        #expect(reading.lines.first?.hasPrefix("9.conf:2:13: error: Environment=: more than") == true)
    }

    @Test("StateDirectory=, CacheDirectory= and RuntimeDirectory= accept relative paths below their base directory")
    func directories() throws {
        let manifest = try accepted(
            "App", #"StateDirectory=a a/b "c d""#, "CacheDirectory=./a//b/", "RuntimeDirectory=a%%",
            "RuntimeDirectory=..a")
        #expect(manifest.stateDirectory == ["a", "a/b", "c d"])
        #expect(manifest.cacheDirectory == ["a/b"])
        #expect(manifest.runtimeDirectory == ["a%", "..a"])
        for key in ["StateDirectory", "CacheDirectory", "RuntimeDirectory"] {
            for name in [
                "/a", "..", "../a", "a/..", "a/../b", ".", "./", "a:b", "\"\"", "a\\nb", "%i",
                String(repeating: "a", count: 256),
            ] { try expectRefused("App", key, name) }
            try expectRefused("App", key, "a b /c", at: 4, "invalid value '/c'")
            try expectRefused("App", key, Array(repeating: "a", count: 33).joined(separator: " "), at: 64)
        }
    }

    @Test(
        "StandardOutput= and StandardError= accept the journal, /dev/null and files with normalized absolute paths (L56)"
    )
    func output() throws {
        let none = try accepted("App", "UMask=0")
        #expect(none.standardOutput == .journal && none.standardError == .inherit)
        let manifest = try accepted("App", "StandardOutput=append:/var/log/%p", "StandardError=file:/tmp/a b")
        #expect(manifest.standardOutput == .append("/var/log/a"))
        #expect(manifest.standardError == .file("/tmp/a b"))
        for (text, target) in [("journal", OutputTarget.journal), ("inherit", .inherit), ("null", .null)] {
            #expect(try accepted("App", "StandardOutput=\(text)").standardOutput == target)
        }
        for value in ["tty", "file:", "file:a", "append:/a/../b", "truncate:/a", "file:/", "Journal", "fd:1"] {
            try expectRefused("App", "StandardError", value, "journal, inherit, null, file:PATH or append:PATH")
        }
    }

    @Test("UMask=, OOMScoreAdjust= and NoNewPrivileges= accept values in their range only")
    func numbers() throws {
        #expect(try accepted("App", "UMask=0077").umask == 0o077)
        #expect(try accepted("App", "UMask=0").umask == 0)
        for value in ["8", "1000", "+7", "0o7", "rwx"] { try expectRefused("App", "UMask", value) }
        #expect(try accepted("App", "OOMScoreAdjust=-1000").oomScoreAdjust == -1000)
        #expect(try accepted("App", "OOMScoreAdjust=1000").oomScoreAdjust == 1000)
        for value in ["1001", "-1001", "5.5", "none", "--5", "+5"] { try expectRefused("App", "OOMScoreAdjust", value) }
        #expect(try accepted("App", "NoNewPrivileges=on").noNewPrivileges)
        #expect(try !accepted("App", "NoNewPrivileges=yes", "NoNewPrivileges=n").noNewPrivileges)
        try expectRefused("App", "NoNewPrivileges", "maybe", "yes or no")
        #expect(try accepted("App", "UMask=0").ignoresSIGPIPE)
        #expect(try !accepted("App", "IgnoreSIGPIPE=no").ignoresSIGPIPE)
    }

    @Test("ProgramDigest= takes a digest with its algorithm, ReadOnlyProgram= a program that is not in / (L10)")
    func programFile() throws {
        let digits = String(repeating: "0aF", count: 21) + "9"
        #expect(try accepted("App", "ProgramDigest=sha256:\(digits)").programDigest == "sha256:" + digits.lowercased())
        let verity = "fsverity-sha256:" + digits.lowercased()
        #expect(try accepted("App", "ProgramDigest=\(verity)").programDigest == verity)
        #expect(try accepted("App", "ProgramDigest=\(verity)", "ProgramDigest=").programDigest == nil)
        for value in [
            digits, "sha256:", "sha256:\(digits.dropLast())", "sha256:\(digits)0", "sha512:\(digits)",
            "SHA256:\(digits)",
            "sha256:\(digits.dropLast())g", "sha256:x:\(digits)",
        ] {
            try expectRefused("App", "ProgramDigest", value, "sha256: or fsverity-sha256: and 64 hexadecimal digits")
        }
        #expect(try accepted("Lifecycle", "ReadOnlyProgram=yes").readOnlyProgram)
        try expectRefused("Lifecycle", "ReadOnlyProgram", "perhaps", "yes or no")
        let reading = try read("[App]\nExecStart=/init\n[Lifecycle]\nReadOnlyProgram=yes\n")
        #expect(reading.manifest == nil)
        #expect(
            reading.lines == [
                "a.app:4:1: error: ReadOnlyProgram=yes would make the whole machine read-only for the app, because the folder of "
                    + "'/init' is /; expected a program in a folder of its own"
            ])
    }

    @Test("Limit…= accepts one value or soft:hard and stores the resource number of setrlimit(2)")
    func limits() throws {
        func limit(_ setting: String) throws -> [UInt64] {
            let limits = try accepted("App", setting).limits
            #expect(limits.count == 1)
            return limits.flatMap { [UInt64($0.resource), $0.soft, $0.hard] }
        }
        #expect(try limit("LimitNOFILE=1024:4096") == [7, 1024, 4096])
        #expect(try limit("LimitNOFILE=infinity") == [7, .max, .max])
        #expect(try limit("LimitNPROC=8") == [6, 8, 8])
        #expect(try limit("LimitAS=1G:infinity") == [9, 1 << 30, .max])
        #expect(try limit("LimitFSIZE=1.5K") == [1, 1536, 1536])
        #expect(try limit("LimitDATA=1K") == [2, 1024, 1024])
        #expect(try limit("LimitSTACK=8M") == [3, 8 << 20, 8 << 20])
        #expect(try limit("LimitCORE=0") == [4, 0, 0])
        #expect(try limit("LimitMEMLOCK=64K:64K") == [8, 65_536, 65_536])
        // Fractions of a second are rounded up, as in systemd.
        #expect(try limit("LimitCPU=1min 500ms") == [0, 61, 61])
        #expect(try limit("LimitCPU=30:2min") == [0, 30, 120])
        for (key, value) in [
            ("NOFILE", "1K"), ("NPROC", "1.5"), ("NOFILE", "2:1"), ("NOFILE", "infinity:1"), ("NOFILE", "1:2:3"),
            ("NOFILE", ":1"), ("NOFILE", "1:"), ("NOFILE", "-1"), ("AS", "1X"), ("AS", "2G:1G"), ("CPU", "1X"),
            ("CPU", "2s:1s"), ("NOFILE", "18446744073709551616"), ("AS", "10%"),
        ] { try expectRefused("App", "Limit\(key)", value) }
    }

    @Test("a later limit of a resource replaces an earlier one")
    func limitsAgain() throws {
        let limits = try accepted("App", "LimitNOFILE=1", "LimitAS=1G", "LimitNOFILE=2").limits
        #expect(limits.map(\.resource) == [9, 7])
        #expect(limits.map(\.soft) == [1 << 30, 2])
    }

    @Test("Group= without User= is a warning at its location")
    func groupAlone() throws {
        #expect(
            try read(manifest("App", "Group=audio")).lines == [
                "a.app:4:1: warning: Group= is set without User=; only the group is changed"
            ])
        #expect(try read(manifest("App", "Group=audio", "User=a")).lines == [])
    }
}
