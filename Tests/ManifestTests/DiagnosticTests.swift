import LifecycleCore
import Manifest
import Testing

@Suite("What is said of a file")
struct DiagnosticTests {
    @Test("file, line and column, or the file as a whole")
    func descriptions() {
        #expect(Diagnostic(.error, "a", line: 3, column: 7, "is bad").description == "a:3:7: error: is bad")
        #expect(Diagnostic(.warning, "a", line: 0, column: 0, "is odd").description == "a: warning: is odd")
    }

    @Test("an unknown key is a warning with the nearest known one, and the app runs")
    func unknownKey() throws {
        let reading = try read(manifest("App", "  UMaks=7", "Nothing=1", "Deadline=2"))
        #expect(
            reading.lines == [
                "a.app:4:3: warning: unknown key UMaks= in [App]; did you mean UMask=?",
                "a.app:5:1: warning: unknown key Nothing= in [App]",
                "a.app:6:1: warning: unknown key Deadline= in [App]",
            ])
        #expect(reading.manifest?.umask == 0o022)
    }

    @Test("a key that another section has is a warning that names it")
    func otherSection() throws {
        #expect(
            try read(manifest("Lifecycle", "MemoryMax=1G", "Typ=simple")).lines == [
                "a.app:4:1: warning: MemoryMax= belongs into [Memory]; in [Lifecycle] it is ignored",
                "a.app:5:1: warning: unknown key Typ= in [Lifecycle]; did you mean Type= in [App]?",
            ])
    }

    @Test("the nearest key of the own section comes before one of another that is as near")
    func ownSectionFirst() throws {
        #expect(
            try read(manifest("Memory", "MemoryMix=1")).lines == [
                "a.app:4:1: warning: unknown key MemoryMix= in [Memory]; did you mean MemoryMax=?"
            ])
    }

    @Test("an unknown section is one warning, with the nearest known one, and its keys are passed over")
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

    @Test("keys and sections are spelled as they are, in their case and without blanks")
    func spelling() throws {
        #expect(
            try read(manifest("App", "umask=7", "U Mask=7") + "[ App ]\n").lines == [
                "a.app:4:1: warning: unknown key umask= in [App]; did you mean UMask=?",
                "a.app:5:1: warning: unknown key U Mask= in [App]; did you mean UMask=?",
                "a.app:6:1: warning: unknown section [ App ]",
            ])
    }

    @Test("a value's place is right on continuation lines, after text of several bytes, and after a byte order mark")
    func places() throws {
        let reading = try read(
            "\u{feff}[App]\nExecStart=/bin/app \\\n  ä \\\n# no\n  $x\n\tType \t=  \tx\nEnvironment=\\\n\\\n A=1 \\\n \"B\"\n"
        )
        #expect(
            reading.lines == [
                "a.app:5:3: error: ExecStart=: “$x”: variables are not expanded, and a $ itself is $$; expected the "
                    + "absolute path of a program, and its arguments",
                "a.app:6:12: error: Type=: “x”: expected simple or notify",
                "a.app:10:2: error: Environment=: “B”; expected words such as NAME=value",
            ])
        #expect(
            try read(manifest("App", "Environment=ä=1")).lines == [
                "a.app:4:13: error: Environment=: “ä=1”; expected words such as NAME=value"
            ])
        #expect(try read(manifest("App", "Environment=A=ä B")).diagnostics.map(\.column) == [18])
    }

    @Test("errors of all files come in their order, each with its file")
    func files() throws {
        let reading = try read("[App]\nExecStart=/bin/app\nType=x\n", "[App]\nUMask=9\n", "[App]\nTyp=1\n")
        #expect(reading.diagnostics.map(\.file) == ["a.app", "1.conf", "2.conf"])
        #expect(reading.diagnostics.map(\.severity) == [.error, .error, .warning])
    }

    @Test("a value that a later file mends is an error all the same")
    func mendedLater() throws {
        #expect(try read("[App]\nExecStart=/bin/app\nType=x\n", "[App]\nType=notify\n").manifest == nil)
    }

    @Test("a hundred are shown, and how many there are beside")
    func bounded() throws {
        let reading = try read(manifest("App") + String(repeating: "Wrong=1\n", count: 150))
        #expect(reading.diagnostics.count == 101)
        #expect(reading.lines.last == "a.app: warning: and 50 more")
        #expect(reading.manifest != nil)
    }

    @Test("warnings, however many, hide no error")
    func errorsFirst() throws {
        let warnings = String(repeating: "Wrong=1\n", count: 150)
        let reading = try read(manifest("App") + warnings + "Type=x\nUMask=9\n")
        #expect(reading.manifest == nil)
        #expect(reading.diagnostics.count == 101)
        #expect(reading.diagnostics.filter { $0.severity == .error }.map(\.line) == [154, 155])
        #expect(reading.lines.last == "a.app: warning: and 52 more")
        let errors = try read(manifest("App") + String(repeating: "Type=x\n", count: 150))
        #expect(errors.diagnostics.filter { $0.severity == .error }.count == 100)
        #expect(errors.lines.last == "a.app: warning: and 50 more")
    }

    @Test("what somebody else wrote is shown on one line, cut, and can do a terminal no harm")
    func harmless() throws {
        let reading = try read(manifest("App", "Type=\u{1b}[2J\u{9b}\u{202e}\u{2028}x"))
        #expect(reading.lines == ["a.app:4:6: error: Type=: “�[2J���x”: expected simple or notify"])
        let long = try read(manifest("App", "Type=" + String(repeating: "ä", count: 61)))
        #expect(
            long.lines == [
                "a.app:4:6: error: Type=: “\(String(repeating: "ä", count: 60))…”: expected simple or notify"
            ])
        let key = try read(manifest("App", "\u{1b}]0;x\u{7}=1"))
        #expect(key.lines == ["a.app:4:1: warning: unknown key �]0;x�= in [App]"])
        #expect(try read("[\u{1b}a]\n[App]\nExecStart=/a\n").lines == ["a.app:1:1: warning: unknown section [�a]"])
    }
}
