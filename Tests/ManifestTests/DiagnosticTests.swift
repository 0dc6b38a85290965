import LifecycleCore
import Manifest
import Testing

@Suite("Diagnostics")
struct DiagnosticTests {
    @Test("a diagnostic shows file, line and column, or only the file")
    func descriptions() {
        #expect(Diagnostic(.error, "a", line: 3, column: 7, "is bad").description == "a:3:7: error: is bad")
        #expect(Diagnostic(.warning, "a", line: 0, column: 0, "is odd").description == "a: warning: is odd")
    }

    @Test("a file that may not be quoted: diagnostics name the position, known keys and what is expected")
    func notQuoted() throws {
        let text = """
            secret=1
            [secret
            [App]
            secret
            ExecStart=secret
            UMask=secret # secret
            Environment="secret
            secret=1
            [secret]

            """
        var source = SourceFile(path: "a.app", bytes: Array(text.utf8))
        source.mayBeQuoted = false
        let (manifest, diagnostics) = parseManifest(
            id: try #require(AppID("a")), sources: [source], memory: memory, specifiers: machineValues)
        #expect(manifest == nil)
        #expect(
            diagnostics.map(\.description) == [
                "a.app:1:1: error: key is not in a section; expected a section header such as [App] before it",
                "a.app:2:1: error: invalid section header; expected [Section]",
                "a.app:4:1: error: invalid line; expected Key=value, [Section] or a comment",
                "a.app:5:11: error: ExecStart=: invalid value; expected the absolute path of a program and its arguments",
                "a.app:6:7: error: UMask=: invalid value; expected an octal number up to 0777",
                "a.app:7:13: error: Environment=: missing closing quote \"; expected assignments such as NAME=value",
                "a.app:8:1: warning: unknown key in section [App]", "a.app:9:1: warning: unknown section",
            ])
    }

    @Test("an unknown key is a warning that suggests the most similar key, and the manifest stays valid")
    func unknownKey() throws {
        let reading = try read(manifest("App", "  UMaks=7", "Nothing=1", "Deadline=2"))
        #expect(
            reading.lines == [
                "a.app:4:3: warning: unknown key 'UMaks' in section [App]; did you mean 'UMask'?",
                "a.app:5:1: warning: unknown key 'Nothing' in section [App]",
                "a.app:6:1: warning: unknown key 'Deadline' in section [App]",
            ])
        #expect(reading.manifest?.umask == 0o022)
    }

    @Test("a key of a service of systemd is a warning that names the key for its purpose")
    func serviceKey() throws {
        let lines = try read(manifest("App", "Restart=always", "ExecStartPre=/bin/a", "TimeoutStopSec=3")).lines
        #expect(
            lines == [
                "a.app:4:1: warning: unknown key 'Restart' in section [App]; use 'Relaunch' in section [App]",
                "a.app:5:1: warning: unknown key 'ExecStartPre' in section [App]; let 'ExecStart' in section [App] be a script "
                    + "that ends with exec",
                "a.app:6:1: warning: unknown key 'TimeoutStopSec' in section [App]; use 'TerminateDeadlineSec' in section "
                    + "[Lifecycle]",
            ])
    }

    @Test(
        "a background mode is no warning: an app that sends no messages begins it over its connection, and sources show it"
    )
    func modes() throws {
        #expect(
            try read(manifest("Lifecycle", "BackgroundModes=push audio", "[App]", "NotifyAccess=none")).lines.isEmpty)
    }

    @Test("a key of another section is a warning that names the section")
    func otherSection() throws {
        #expect(
            try read(manifest("Lifecycle", "MemoryMax=1G", "Typ=simple")).lines == [
                "a.app:4:1: warning: key 'MemoryMax' belongs in section [Memory]; it is ignored in section [Lifecycle]",
                "a.app:5:1: warning: unknown key 'Typ' in section [Lifecycle]; did you mean 'Type' in section [App]?",
            ])
    }

    @Test("of equally similar keys the one of the same section is suggested")
    func ownSectionFirst() throws {
        let start = "a.app:4:1: warning: unknown key 'Memoryning' in section"
        #expect(
            try read(manifest("Memory", "Memoryning=1")).lines == ["\(start) [Memory]; did you mean 'MemoryHigh'?"])
        #expect(
            try read(manifest("Signals", "Memoryning=1")).lines == [
                "\(start) [Signals]; did you mean 'MemoryWarning'?"
            ])
    }

    @Test("an unknown section is one warning that suggests the most similar section, and its keys are ignored")
    func unknownSection() throws {
        let reading = try read(
            "[App]\nExecStart=/bin/app\n [Lifecicle]\nWatchdogSec=x\nA=b\n[Service]\nA=b\n[App]\nName=n\n")
        #expect(
            reading.lines == [
                "a.app:3:2: warning: unknown section [Lifecicle]; did you mean [Lifecycle]?",
                "a.app:6:1: warning: unknown section [Service]",
            ])
        #expect(reading.manifest?.name == "n")
    }

    @Test("keys and sections are case-sensitive and contain no blanks")
    func spelling() throws {
        #expect(
            try read(manifest("App", "umask=7", "U Mask=7") + "[ App ]\n").lines == [
                "a.app:4:1: warning: unknown key 'umask' in section [App]; did you mean 'UMask'?",
                "a.app:5:1: warning: unknown key 'U Mask' in section [App]; did you mean 'UMask'?",
                "a.app:6:1: warning: unknown section [ App ]",
            ])
    }

    @Test("locations are correct on continuation lines, after multibyte characters and after a byte order mark")
    func locations() throws {
        let reading = try read(
            "\u{feff}[App]\nExecStart=/bin/app \\\n  ä \\\n# no\n  x$x\n\tType \t=  \tx\nEnvironment=\\\n\\\n A=1 \\\n \"B\"\n"
        )
        #expect(
            reading.lines == [
                "a.app:5:3: error: ExecStart=: invalid value 'x$x': a variable is ${NAME}, or $NAME as a word of its own, and a "
                    + "literal $ is $$; "
                    + "expected the absolute path of a program and its arguments",
                "a.app:6:12: error: Type=: invalid value 'x'; expected simple, exec, notify, forking or listening",
                "a.app:10:2: error: Environment=: invalid value 'B'; expected assignments such as NAME=value",
            ])
        #expect(
            try read(manifest("App", "Environment=ä=1")).lines == [
                "a.app:4:13: error: Environment=: invalid value 'ä=1'; expected assignments such as NAME=value"
            ])
        #expect(try read(manifest("App", "Environment=A=ä B")).diagnostics.map(\.column) == [18])
    }

    @Test("diagnostics of several files come in the order of the files and name them")
    func files() throws {
        let reading = try read("[App]\nExecStart=/bin/app\nType=x\n", "[App]\nUMask=9\n", "[App]\nTyp=1\n")
        #expect(reading.diagnostics.map(\.file) == ["a.app", "1.conf", "2.conf"])
        #expect(reading.diagnostics.map(\.severity) == [.error, .error, .warning])
    }

    @Test("an invalid value is an error even if a later file overrides it")
    func overriddenLater() throws {
        #expect(try read("[App]\nExecStart=/bin/app\nType=x\n", "[App]\nType=notify\n").manifest == nil)
    }

    @Test("100 diagnostics are shown and the rest are counted")
    func bounded() throws {
        let reading = try read(manifest("App") + String(repeating: "Wrong=1\n", count: 150))
        #expect(reading.diagnostics.count == 101)
        #expect(reading.lines.last == "a.app: warning: 50 more diagnostics are not shown")
        #expect(reading.manifest != nil)
    }

    @Test("errors replace warnings when there are more than 100 diagnostics")
    func errorsFirst() throws {
        let warnings = String(repeating: "Wrong=1\n", count: 150)
        let reading = try read(manifest("App") + warnings + "Type=x\nUMask=9\n")
        #expect(reading.manifest == nil)
        #expect(reading.diagnostics.count == 101)
        #expect(reading.diagnostics.filter { $0.severity == .error }.map(\.line) == [154, 155])
        #expect(reading.lines.last == "a.app: warning: 52 more diagnostics are not shown")
        let errors = try read(manifest("App") + String(repeating: "Type=x\n", count: 150))
        #expect(errors.diagnostics.filter { $0.severity == .error }.count == 100)
        #expect(errors.lines.last == "a.app: warning: 50 more diagnostics are not shown")
    }

    @Test("quoted text of a file is cut to 60 characters and has no control characters")
    func harmless() throws {
        let reading = try read(manifest("App", "Type=\u{1b}[2J\u{9b}\u{202e}\u{2028}x"))
        #expect(
            reading.lines == [
                "a.app:4:6: error: Type=: invalid value '�[2J���x'; expected simple, exec, notify, forking or listening"
            ])
        let long = try read(manifest("App", "Type=" + String(repeating: "ä", count: 61)))
        #expect(
            long.lines == [
                "a.app:4:6: error: Type=: invalid value '\(String(repeating: "ä", count: 60))…'; expected simple, exec, notify, forking or listening"
            ])
        let key = try read(manifest("App", "\u{1b}]0;x\u{7}=1"))
        #expect(key.lines == ["a.app:4:1: warning: unknown key '�]0;x�' in section [App]"])
        #expect(try read("[\u{1b}a]\n[App]\nExecStart=/a\n").lines == ["a.app:1:1: warning: unknown section [�a]"])
    }
}
