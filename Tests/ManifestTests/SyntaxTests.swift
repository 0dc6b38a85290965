import LifecycleCore
import Manifest
import Testing

@Suite("A file's syntax")
struct SyntaxTests {
    @Test("a manifest with its program alone has the defaults for all else, and its ID as name")
    func least() throws {
        let reading = try read("[App]\nExecStart=/bin/app\n")
        #expect(reading.diagnostics == [])
        var expected = AppManifest(id: try #require(AppID("a")))
        expected.exec = ["/bin/app"]
        #expect(reading.manifest == expected)
        #expect(expected.name == "a")
    }

    @Test("blanks around sections, keys and values do not count")
    func blanks() throws {
        let manifest = try #require(try read("  [App]\t\n\t ExecStart \t=  /bin/app\t \n Name= a  b \n").manifest)
        #expect(manifest.exec == ["/bin/app"])
        #expect(manifest.name == "a  b")
    }

    @Test("the first equals sign ends the key")
    func equalsSigns() throws {
        #expect(try accepted("App", "Name=a=b=").name == "a=b=")
    }

    @Test("lines that begin with # or ; are comments, also after blanks; behind a value they are none")
    func comments() throws {
        let manifest = try accepted("App", "# Name=x", " ; Name=y", "\t#", "Name=a # b ; c")
        #expect(manifest.name == "a # b ; c")
    }

    @Test("a value with a comment behind it is refused, and the sentence says where comments go")
    func commentBehind() throws {
        try expectRefused("App", "Type", "notify ; when ready", "a comment stands on a line of its own")
        try expectRefused("App", "Type", "notify # when ready", "a comment stands on a line of its own")
        #expect(
            try read("[App] ; mine\n").lines == [
                "a.app:1:1: error: “[App] ; mine”: expected “[Section]” "
                    + "(a comment stands on a line of its own)"
            ])
    }

    @Test("a comment that ends in a backslash is not continued")
    func continuedComment() throws {
        #expect(try accepted("App", "# a \\", "Name=b").name == "b")
    }

    @Test("a backslash at the end continues a line; it and the line's end make a blank")
    func continuation() throws {
        #expect(try accepted("App", "Name=a\\", "b").name == "a b")
        #expect(try accepted("App", "Name=\\", "  \\", " a").name == "a")
        #expect(try accepted("App", "Name\\", "=a").name == "a")
    }

    @Test("two backslashes at the end are two backslashes")
    func pairsOfBackslashes() throws {
        #expect(try accepted("App", #"Name=a\\"#, "UMask=7").name == #"a\\"#)
        #expect(try accepted("App", #"Name=a\\\"#, "b").name == #"a\\ b"#)
    }

    @Test("comments within continued lines are passed over, and an empty line ends them")
    func continuationOverComments() throws {
        #expect(try accepted("App", "Name=a\\", " # no \\", "; no", "b\\", "", "UMask=7").name == "a b")
    }

    @Test("a continued line may be the last one")
    func continuationAtTheEnd() throws {
        #expect(try read("[App]\nExecStart=/bin/app\\").manifest?.exec == ["/bin/app"])
        #expect(try read("[App]\nExecStart=/bin/app\\\n").manifest?.exec == ["/bin/app"])
        #expect(try read("[App]\nExecStart=/bin/app\\\n# end").manifest?.exec == ["/bin/app"])
    }

    @Test("a backslash before blanks at the end continues nothing")
    func backslashAndBlank() throws {
        #expect(try accepted("App", "Name=a\\ ", "UMask=7").umask == 7)
    }

    @Test("line ends of other systems, and the byte order mark of their editors, change nothing")
    func otherSystems() throws {
        let text = "[App]\nExecStart=/bin/app \\\n  b\nName=a\n"
        let other = "\u{feff}" + text.replacing("\n", with: "\r\n")
        let reading = try read(other)
        #expect(reading.diagnostics == [])
        #expect(reading.manifest == (try read(text).manifest))
        #expect(reading.manifest?.exec == ["/bin/app", "b"])
    }

    @Test("a byte order mark anywhere else is text")
    func misplacedMark() throws {
        #expect(
            try read("[App]\n\u{feff}ExecStart=/bin/app\n").lines.first?.hasPrefix("a.app:2:1: warning: unknown key")
                == true)
    }

    @Test("what stands in sections and keys of others, X-…, is passed over")
    func extensions() throws {
        let reading = try read("[X-Mine]\nA=b\nType=none\n[App]\nX-Key=1\nExecStart=/bin/app\n[X-]\nx\\y=\n")
        #expect(reading.diagnostics == [])
        #expect(reading.manifest?.exec == ["/bin/app"])
        #expect(try read("[App]\nExecStart=/bin/app\nx-key=1\n").diagnostics.count == 1)
    }

    @Test("a section may come again")
    func sectionsAgain() throws {
        let manifest = try #require(try read("[App]\nExecStart=/bin/app\n[Wake]\n[App]\nName=b\n").manifest)
        #expect(manifest.name == "b")
    }

    @Test("a key or value before the first section is an error; each file begins without one")
    func beforeSections() throws {
        let expected = "Name= stands before the first section; expected [App] or another above it"
        #expect(try read("Name=b\n[App]\nExecStart=/bin/app\n").lines == ["a.app:1:1: error: \(expected)"])
        #expect(try read("[App]\nExecStart=/bin/app\n", " Name=b\n").lines == ["1.conf:1:2: error: \(expected)"])
    }

    @Test("a line that is none of the three is an error, at its first character, and the next lines are read")
    func noAssignment() throws {
        let reading = try read("[App]\n  nonsense\nExecStart=/bin/app\nType=x\n =b\n")
        #expect(
            reading.lines == [
                "a.app:2:3: error: “nonsense”: expected “Key=value”, “[Section]” or a comment",
                "a.app:4:6: error: Type=: “x”: expected simple or notify",
                "a.app:5:2: error: there is no key before “=”",
            ])
        #expect(reading.manifest == nil)
    }

    @Test(
        "a section that is none is one error; what stands below it is passed over",
        arguments: ["[App", "[]", "[App]]x"])
    func noSection(_ section: String) throws {
        let reading = try read("[App]\nExecStart=/bin/app\n\(section)\nName=b\nWhat=c\n[App]\nType=x\n")
        #expect(
            reading.lines == [
                "a.app:3:1: error: “\(section)”: expected “[Section]”",
                "a.app:7:6: error: Type=: “x”: expected simple or notify",
            ])
    }

    @Test("a manifest without a program is refused, once for all files")
    func noProgram() throws {
        let missing = "has no ExecStart= in [App]; expected the program and its arguments"
        #expect(try read("", "").lines == ["a.app: error: \(missing)"])
        #expect(
            try read("[App]\nExecStart=/bin/app\n", "[App]\nExecStart=\n").lines == ["1.conf:2:1: error: \(missing)"])
        // Another error beside does not hide it, but where what was said may be about it, it is not said again.
        #expect(try read("[App]\nType=x\n").diagnostics.count == 2)
        #expect(try read("[App]\nExecStart /bin/app\n").diagnostics.count == 1)
        #expect(try read("[App]\nExecStart=app\n").diagnostics.count == 1)
        #expect(try read("[App]\nExecStrat=/bin/app\nType=x\n").diagnostics.map(\.line) == [2, 3])
        #expect(try read("[App]\nExecStrat=/bin/app\n").diagnostics.map(\.severity) == [.warning, .error])
    }
}

@Suite("Bytes that are no text, and too many")
struct HostileFileTests {
    private let start = Array("[App]\nExecStart=/bin/app\n".utf8)

    @Test("NUL is refused where it stands")
    func nul() throws {
        let reading = try read(bytes: start + Array("Name=a\0b\n".utf8))
        #expect(reading.lines == ["a.app:3:7: error: has a NUL byte; expected text"])
    }

    @Test("a carriage return inside a line is refused where it stands")
    func carriageReturn() throws {
        let reading = try read(bytes: start + Array("Name=a\rUser=root\r\n".utf8))
        #expect(
            reading.lines == [
                "a.app:3:7: error: has a carriage return inside the line; expected it at the end, if at all"
            ])
    }

    @Test(
        "what is no UTF-8 is refused where it begins",
        arguments: [[0xff], [0xc3], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0x80]] as [[UInt8]])
    func noText(_ bytes: [UInt8]) throws {
        let reading = try read(bytes: start + Array("Name=ä".utf8) + bytes + Array("b\n".utf8))
        #expect(reading.lines == ["a.app:3:8: error: is no UTF-8 text"])
    }

    @Test("comments may be any bytes")
    func comments() throws {
        #expect(try read(bytes: start + [UInt8(ascii: "#"), 0xff, 0, 13, 10]).diagnostics == [])
    }

    @Test("a flaw on a continuation line has that line's number")
    func continued() throws {
        let reading = try read(bytes: start + Array("Name=a\\\n\\\n b\0\n".utf8))
        #expect(reading.lines == ["a.app:5:3: error: has a NUL byte; expected text"])
    }

    @Test("a file over a mebibyte is not read; one of a mebibyte is")
    func size() throws {
        let line = Array("# comment\n".utf8)
        var bytes = start
        while bytes.count + line.count <= SourceFile.maximumSize { bytes += line }
        bytes += Array(repeating: UInt8(ascii: "\n"), count: SourceFile.maximumSize - bytes.count)
        #expect(try read(bytes: bytes).diagnostics == [])
        #expect(
            try read(bytes: bytes + [UInt8(ascii: "\n")]).lines == [
                "a.app: error: has 1048577 bytes; at most 1048576 are read"
            ])
    }

    @Test("ten thousand assignments are read, no more")
    func assignments() throws {
        let many = String(repeating: "UMask=7\n", count: 9_999)
        #expect(try read("[App]\nExecStart=/bin/app\n" + many).diagnostics == [])
        #expect(
            try read("[App]\nExecStart=/bin/app\n" + many + "UMask=7\nUMask=7\n").lines == [
                "a.app:10002:1: error: too many assignments: 10000 are read"
            ])
    }

    @Test("a hundred drop-ins are read, no more")
    func dropIns() throws {
        let id = try #require(AppID("a"))
        let files = (0...101).map { SourceFile(path: "\($0)", bytes: start) }
        // Each begins the program anew, or it would be there already.
        let reset = files.map {
            SourceFile(path: $0.path, bytes: Array("[App]\nExecStart=\nExecStart=/bin/app\n".utf8))
        }
        #expect(parseManifest(id: id, sources: reset.dropLast(), memory: nil).1 == [])
        let (manifest, diagnostics) = parseManifest(id: id, sources: reset, memory: nil)
        #expect(manifest == nil)
        #expect(diagnostics.map(\.description) == ["0: error: has 101 drop-ins; at most 100 are read"])
    }

    @Test(
        "a file full of rubbish, of any kind, is read to its end and said little of",
        arguments: [
            "\\\n", "[", "a=\n", "a", "=\n", "[App]\nEnvironment=", "[App]\nExecStart=/a ", "\"", "[a]\n", "\n", "\r",
            "a=\\\n#\n",
            "[App]\nLimitNOFILE=1:", "[App]\nName=\\\n", "[App]\nExecStart=\nExecStart=/a\n",
            "[Lifecycle]\nWatchdogSec=1 1\n",
            "[App]\nEnvironment=A=1\n", "[Lifecycle]\nBackgroundModes=push push\n", "[App]\nA%=", "é",
        ])
    func rubbish(_ piece: String) throws {
        let bytes = Array(String(repeating: piece, count: SourceFile.maximumSize / 8 / piece.utf8.count).utf8)
        let reading = try read(bytes: bytes)
        #expect(reading.diagnostics.count <= 101)
        #expect(reading.diagnostics.allSatisfy { $0.message.utf8.count < 1000 })
    }

    @Test("one key's value may be as long as a file, and positions in it are right")
    func longValue() throws {
        let value = String(repeating: "A=1 ", count: 1000) + "B"
        try expectRefused("App", "Environment", value, at: 4000)
        try expectRefused("App", "Name", String(repeating: "a", count: 500_000), "…")
    }
}
