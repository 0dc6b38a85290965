import LifecycleCore
import Manifest
import Testing

@Suite("File syntax")
struct SyntaxTests {
    @Test("a manifest with only ExecStart= has the default of every other setting and its ID as name")
    func minimal() throws {
        let reading = try read("[App]\nExecStart=/bin/app\n")
        #expect(reading.diagnostics == [])
        var expected = AppManifest(id: try #require(AppID("a")))
        expected.exec = ["/bin/app"]
        #expect(reading.manifest == expected)
        #expect(expected.name == "a")
    }

    @Test("blanks around sections, keys and values are ignored")
    func blanks() throws {
        let manifest = try #require(try read("  [App]\t\n\t ExecStart \t=  /bin/app\t \n Name= a  b \n").manifest)
        #expect(manifest.exec == ["/bin/app"])
        #expect(manifest.name == "a  b")
    }

    @Test("the key ends at the first equals sign")
    func equalsSigns() throws {
        #expect(try accepted("App", "Name=a=b=").name == "a=b=")
    }

    @Test("a line that starts with # or ; is a comment, and text after a value is not")
    func comments() throws {
        let manifest = try accepted("App", "# Name=x", " ; Name=y", "\t#", "Name=a # b ; c")
        #expect(manifest.name == "a # b ; c")
    }

    @Test("an error about a value that contains # or ; after a blank has a hint about comments")
    func commentAfterValue() throws {
        try expectRefused("App", "Type", "notify ; when ready", "a comment must be on a line of its own")
        try expectRefused("App", "Type", "notify # when ready", "a comment must be on a line of its own")
        #expect(
            try read("[App] ; mine\n").lines == [
                "a.app:1:1: error: invalid section header '[App] ; mine'; expected [Section] "
                    + "(a comment must be on a line of its own)"
            ])
    }

    @Test("a comment that ends with a backslash is not continued")
    func continuedComment() throws {
        #expect(try accepted("App", "# a \\", "Name=b").name == "b")
    }

    @Test("a backslash at the end of a line continues it and is replaced by a space")
    func continuation() throws {
        #expect(try accepted("App", "Name=a\\", "b").name == "a b")
        #expect(try accepted("App", "Name=\\", "  \\", " a").name == "a")
        #expect(try accepted("App", "Name\\", "=a").name == "a")
    }

    @Test("two backslashes at the end of a line are literal")
    func pairsOfBackslashes() throws {
        #expect(try accepted("App", #"Name=a\\"#, "UMask=7").name == #"a\\"#)
        #expect(try accepted("App", #"Name=a\\\"#, "b").name == #"a\\ b"#)
    }

    @Test("comments between continued lines are ignored, and an empty line ends the value")
    func continuationOverComments() throws {
        #expect(try accepted("App", "Name=a\\", " # no \\", "; no", "b\\", "", "UMask=7").name == "a b")
    }

    @Test("the last line of a file may end with a backslash")
    func continuationAtTheEnd() throws {
        #expect(try read("[App]\nExecStart=/bin/app\\").manifest?.exec == ["/bin/app"])
        #expect(try read("[App]\nExecStart=/bin/app\\\n").manifest?.exec == ["/bin/app"])
        #expect(try read("[App]\nExecStart=/bin/app\\\n# end").manifest?.exec == ["/bin/app"])
    }

    @Test("a backslash before trailing blanks does not continue a line")
    func backslashAndBlank() throws {
        #expect(try accepted("App", "Name=a\\ ", "UMask=7").umask == 7)
    }

    @Test("CRLF line endings and a leading byte order mark are ignored")
    func otherSystems() throws {
        let text = "[App]\nExecStart=/bin/app \\\n  b\nName=a\n"
        let other = "\u{feff}" + text.replacing("\n", with: "\r\n")
        let reading = try read(other)
        #expect(reading.diagnostics == [])
        #expect(reading.manifest == (try read(text).manifest))
        #expect(reading.manifest?.exec == ["/bin/app", "b"])
    }

    @Test("a byte order mark elsewhere is text")
    func misplacedMark() throws {
        #expect(
            try read("[App]\n\u{feff}ExecStart=/bin/app\n").lines.first?.hasPrefix("a.app:2:1: warning: unknown key")
                == true)
    }

    @Test("sections and keys with the prefix X- are ignored")
    func extensions() throws {
        let reading = try read("[X-Mine]\nA=b\nType=none\n[App]\nX-Key=1\nExecStart=/bin/app\n[X-]\nx\\y=\n")
        #expect(reading.diagnostics == [])
        #expect(reading.manifest?.exec == ["/bin/app"])
        #expect(try read("[App]\nExecStart=/bin/app\nx-key=1\n").diagnostics.count == 1)
    }

    @Test("a section may occur several times")
    func sectionsAgain() throws {
        let manifest = try #require(try read("[App]\nExecStart=/bin/app\n[Wake]\n[App]\nName=b\n").manifest)
        #expect(manifest.name == "b")
    }

    @Test("a key before the first section header of a file is an error")
    func beforeSections() throws {
        let expected = "key 'Name' is not in a section; expected a section header such as [App] before it"
        #expect(try read("Name=b\n[App]\nExecStart=/bin/app\n").lines == ["a.app:1:1: error: \(expected)"])
        #expect(try read("[App]\nExecStart=/bin/app\n", " Name=b\n").lines == ["1.conf:1:2: error: \(expected)"])
    }

    @Test("a line with another syntax is an error at its first character, and later lines are parsed")
    func noAssignment() throws {
        let reading = try read("[App]\n  nonsense\nExecStart=/bin/app\nType=x\n =b\n")
        #expect(
            reading.lines == [
                "a.app:2:3: error: invalid line 'nonsense'; expected Key=value, [Section] or a comment",
                "a.app:4:6: error: Type=: invalid value 'x'; expected simple, exec, notify, forking or listening",
                "a.app:5:2: error: missing key; expected Key=value",
            ])
        #expect(reading.manifest == nil)
    }

    @Test(
        "an invalid section header is one error, and assignments below it are ignored",
        arguments: ["[App", "[]", "[App]]x"])
    func noSection(_ section: String) throws {
        let reading = try read("[App]\nExecStart=/bin/app\n\(section)\nName=b\nWhat=c\n[App]\nType=x\n")
        #expect(
            reading.lines == [
                "a.app:3:1: error: invalid section header '\(section)'; expected [Section]",
                "a.app:7:6: error: Type=: invalid value 'x'; expected simple, exec, notify, forking or listening",
            ])
    }

    @Test("a manifest without ExecStart= in any file is one error")
    func noProgram() throws {
        let missing =
            "missing key 'ExecStart' in section [App]; expected the absolute path of a program and its arguments"
        #expect(try read("", "").lines == ["a.app: error: \(missing)"])
        #expect(
            try read("[App]\nExecStart=/bin/app\n", "[App]\nExecStart=\n").lines == ["1.conf:2:1: error: \(missing)"])
        // It is reported beside unrelated errors, but not after a diagnostic that may be about ExecStart=.
        #expect(try read("[App]\nType=x\n").diagnostics.count == 2)
        #expect(try read("[App]\nExecStart /bin/app\n").diagnostics.count == 1)
        #expect(try read("[App]\nExecStart=app\n").diagnostics.count == 1)
        #expect(try read("[App]\nExecStrat=/bin/app\nType=x\n").diagnostics.map(\.line) == [2, 3])
        #expect(try read("[App]\nExecStrat=/bin/app\n").diagnostics.map(\.severity) == [.warning, .error])
    }
}

@Suite("Invalid bytes and limits")
struct HostileFileTests {
    private let start = Array("[App]\nExecStart=/bin/app\n".utf8)

    @Test("a NUL byte is an error at its location")
    func nul() throws {
        let reading = try read(bytes: start + Array("Name=a\0b\n".utf8))
        #expect(reading.lines == ["a.app:3:7: error: NUL byte; expected UTF-8 text"])
    }

    @Test("a carriage return inside a line is an error at its location")
    func carriageReturn() throws {
        let reading = try read(bytes: start + Array("Name=a\rUser=root\r\n".utf8))
        #expect(
            reading.lines == [
                "a.app:3:7: error: carriage return inside a line; expected it only at the end of a line"
            ])
    }

    @Test(
        "invalid UTF-8 is an error at its first byte",
        arguments: [[0xff], [0xc3], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0x80]] as [[UInt8]])
    func noText(_ bytes: [UInt8]) throws {
        let reading = try read(bytes: start + Array("Name=ä".utf8) + bytes + Array("b\n".utf8))
        #expect(reading.lines == ["a.app:3:8: error: invalid UTF-8; expected UTF-8 text"])
    }

    @Test("comments may contain any bytes")
    func comments() throws {
        #expect(try read(bytes: start + [UInt8(ascii: "#"), 0xff, 0, 13, 10]).diagnostics == [])
    }

    @Test("an invalid byte on a continuation line is reported with that line's number")
    func continued() throws {
        let reading = try read(bytes: start + Array("Name=a\\\n\\\n b\0\n".utf8))
        #expect(reading.lines == ["a.app:5:3: error: NUL byte; expected UTF-8 text"])
    }

    @Test("a file of 1 MiB is parsed and a larger one is an error")
    func size() throws {
        let line = Array("# comment\n".utf8)
        var bytes = start
        while bytes.count + line.count <= SourceFile.maximumSize { bytes += line }
        bytes += Array(repeating: UInt8(ascii: "\n"), count: SourceFile.maximumSize - bytes.count)
        #expect(try read(bytes: bytes).diagnostics == [])
        #expect(
            try read(bytes: bytes + [UInt8(ascii: "\n")]).lines == [
                "a.app: error: file too large: 1048577 bytes; expected at most 1048576"
            ])
    }

    @Test("10000 assignments are parsed and one more is an error")
    func assignments() throws {
        let many = String(repeating: "UMask=7\n", count: 9_999)
        #expect(try read("[App]\nExecStart=/bin/app\n" + many).diagnostics == [])
        #expect(
            try read("[App]\nExecStart=/bin/app\n" + many + "UMask=7\nUMask=7\n").lines == [
                "a.app:10002:1: error: too many assignments; expected at most 10000"
            ])
    }

    @Test("100 drop-ins are parsed and one more is an error")
    func dropIns() throws {
        let id = try #require(AppID("a"))
        let files = (0...101).map { SourceFile(path: "\($0)", bytes: start) }
        // Each file resets ExecStart=, as a second one would be an error.
        let reset = files.map {
            SourceFile(path: $0.path, bytes: Array("[App]\nExecStart=\nExecStart=/bin/app\n".utf8))
        }
        #expect(parseManifest(id: id, sources: reset.dropLast(), memory: nil, specifiers: machineValues).1 == [])
        let (manifest, diagnostics) = parseManifest(
            id: id, sources: reset, memory: nil, specifiers: machineValues)
        #expect(manifest == nil)
        #expect(diagnostics.map(\.description) == ["0: error: too many drop-ins: 101; expected at most 100"])
    }

    @Test(
        "a large invalid file has at most 101 diagnostics of less than 1000 bytes",
        arguments: [
            "\\\n", "[", "a=\n", "a", "=\n", "[App]\nEnvironment=", "[App]\nExecStart=/a ", "\"", "[a]\n", "\n", "\r",
            "a=\\\n#\n",
            "[App]\nLimitNOFILE=1:", "[App]\nName=\\\n", "[App]\nExecStart=\nExecStart=/a\n",
            "[Lifecycle]\nWatchdogSec=1 1\n",
            "[App]\nEnvironment=A=1\n", "[Lifecycle]\nBackgroundModes=push push\n", "[App]\nA%=", "é",
        ])
    func invalidFile(_ piece: String) throws {
        let bytes = Array(String(repeating: piece, count: SourceFile.maximumSize / 8 / piece.utf8.count).utf8)
        let reading = try read(bytes: bytes)
        #expect(reading.diagnostics.count <= 101)
        #expect(reading.diagnostics.allSatisfy { $0.message.utf8.count < 1000 })
    }

    @Test("offsets in long values are correct")
    func longValue() throws {
        let value = String(repeating: "A=1 ", count: 1000) + "B"
        try expectRefused("App", "Environment", value, at: 4000)
        try expectRefused("App", "Name", String(repeating: "a", count: 500_000), "…")
    }
}
