import Glibc
import JSON
import Posix
import Systemd
import TestKit
import Testing

@testable import greenroomctl

@Suite("mcp-config")
struct MCPConfigTests {
    private static let claude = """
        {
          "projects": {"/srv": {"mcpServers": {
            "notes": {"type": "stdio", "command": "npx", "args": ["-y", "@notes/mcp"], "env": {"KEY": "\\u0061b"}},
            "bare":   { "command" : "/usr/bin/\\"odd\\" server" },
            "web": {"type": "http", "url": "https://example.org/mcp"},
            "empty": {"command": "uvx", "args": [ ]}
          }}},
          "history": [ {"servers": "none"}, 1.50, null ]
        }

        """
    private static let zed = #"{"context_servers":{"a":{"command":{"path":"node","args":["x.js"]},"settings":{}}}}"#

    private func configuration(_ text: String) throws -> ServerConfiguration {
        try ServerConfiguration(json: Array(text.utf8))
    }

    private func run(_ arguments: String...) throws -> Outcome {
        let path = ["PATH=/usr/bin:/bin"]
        return try RunningProgram(arguments, environment: path, terminal: false).finish(in: EventLoop())
    }

    private func readText(_ path: String) throws -> String { text(try Posix.readFile(at: path, limit: 1 << 20)) }

    private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

    @Test("the prefix is put before the command of each server, everything else stays, and it is taken out again (L54)")
    func both() throws {
        let (bytes, names) = try configuration(Self.claude).adding("/usr/bin/greenroomctl")
        #expect(names == ["notes", "bare", "empty"])
        let expected = Self.claude
            .replacing(
                #""npx", "args": ["#,
                with: #""/usr/bin/greenroomctl", "args": ["run", "--name", "notes", "--", "npx", "#
            )
            .replacing(
                #""/usr/bin/\"odd\" server" }"#,
                with: #""/usr/bin/greenroomctl", "args": ["run", "--name", "bare", "--", "/usr/bin/\"odd\" server"] }"#
            )
            .replacing(
                #""uvx", "args": [ ]"#,
                with: #""/usr/bin/greenroomctl", "args": ["run", "--name", "empty", "--", "uvx" ]"#)
        #expect(text(bytes) == expected)
        _ = try JSONValue.parse(bytes)
        #expect(try ServerConfiguration(json: bytes).adding("/usr/bin/greenroomctl").names == [])
        let (without, back) = try ServerConfiguration(json: bytes).removing()
        #expect(back == names)
        // A list of arguments that was not there is empty afterwards.
        #expect(
            text(without)
                == Self.claude.replacing(#"odd\" server" }"#, with: #"odd\" server", "args": [] }"#))
        #expect(try configuration(Self.claude).removing().names == [])
    }

    @Test("Zed keeps the command and its arguments in an object (L54)")
    func nested() throws {
        let (bytes, names) = try configuration(Self.zed).adding("/g/greenroomctl")
        #expect(names == ["a"])
        #expect(
            text(bytes)
                == #"{"context_servers":{"a":{"command":{"path":"/g/greenroomctl","args":["run", "--name", "a", "--", "node", "x.js"]},"settings":{}}}}"#
        )
        #expect(try text(ServerConfiguration(json: bytes).removing().bytes) == Self.zed)
    }

    @Test("comments and commas behind the last value stay, as VS Code and Zed write them (L54)")
    func comments() throws {
        let code = """
            {
              // Servers, see https://code.visualstudio.com/docs
              "servers": {
                "files": { "type": "stdio", "command": "npx", /* "args" */ "args": ["-y", "files", ], }, // ends here
              },
            }
            """
        let (bytes, names) = try configuration(code).adding("/g/greenroomctl")
        #expect(names == ["files"])
        #expect(
            text(bytes)
                == code.replacing(
                    #""npx", /* "args" */ "args": ["#,
                    with: #""/g/greenroomctl", /* "args" */ "args": ["run", "--name", "files", "--", "npx", "#))
        #expect(try text(ServerConfiguration(json: bytes).removing().bytes) == code)
    }

    @Test("Codex keeps its servers in tables of TOML, in lines or inline (L54)")
    func tables() throws {
        let codex = """
            model = "o3" # a comment with [brackets] = "x"
            notes = \"\"\"
            [mcp_servers.no]
            command = "no"
            \"\"\"
            [mcp_servers.docs]
            command = "npx"
            args = [
              "-y", # yes
              'docs "mcp"',
            ]
            env = { "KEY" = "v", N = 1 }
            [mcp_servers."my server"]
            url = 1979-05-27T07:32:00Z
            command='uvx'
            [[profiles]]
            mcp_servers.x.command = "not in an array of tables"
            [mcp_servers]
            inline = { command = "node", startup_timeout_ms = 20_000 }

            """
        let (bytes, names) = try ServerConfiguration(toml: Array(codex.utf8)).adding("/g/greenroomctl")
        #expect(names == ["docs", "my server", "inline"])
        let expected =
            codex
            .replacing(
                "command = \"npx\"\nargs = [",
                with: "command = \"/g/greenroomctl\"\nargs = [\"run\", \"--name\", \"docs\", \"--\", \"npx\", "
            )
            .replacing(
                "command='uvx'",
                with: "command=\"/g/greenroomctl\"\nargs = [\"run\", \"--name\", \"my server\", \"--\", \"uvx\"]"
            )
            .replacing(
                "command = \"node\"",
                with: "command = \"/g/greenroomctl\", args = [\"run\", \"--name\", \"inline\", \"--\", \"node\"]")
        #expect(text(bytes) == expected)
        let back = try ServerConfiguration(toml: bytes).removing()
        #expect(back.names == names)
        #expect(try ServerConfiguration(toml: back.bytes).servers.map(\.command.text) == ["npx", "uvx", "node"])
        #expect(try ServerConfiguration(toml: back.bytes).servers[0].arguments?.map(\.text) == ["-y", "docs \"mcp\""])
    }

    @Test(
        "what is no TOML is refused, with the line and the column (L54)",
        arguments: [
            ("x", "line 1, column 2: expected '='"), ("a = 1\n[b", "line 2, column 3: expected ']'"),
            ("a = \"x\ny\"", "line 1, column 7: expected the end of a string"),
            ("a = [\"x\" \"y\"]", "line 1, column 10: expected ','"),
            ("a = \"\"\"", "expected the end of a string"), ("= 1", "line 1, column 1: expected a key"),
            ("a = \"x\" y", "line 1, column 9: expected the end of the line"), ("a = [", "expected a value"),
            ("a = " + String(repeating: "[", count: 100), "more than 64 levels"),
            ("a = \"\\q\"", "expected a string with the escapes"),
        ])
    func noTOML(text: String, problem: String) {
        let error = #expect(throws: TOMLError.self) { try ServerConfiguration(toml: Array(text.utf8)) }
        #expect(error?.description.contains(problem) == true, "\(error?.description ?? "")")
    }

    @Test("what is no configuration is refused or left alone (L54)")
    func others() throws {
        for text in ["", "{", "/* {}", "{,}", "[1,,]", "{\"a\": 1,, }", "{\"a\" // \n}"] {
            #expect(throws: JSONError.self) { try configuration(text) }
        }
        for text in [
            "[]", "1", #"{"mcpServers": 1}"#, #"{"mcpServers": {"a": {"command": 1}}}"#,
            #"{"mcpServers": {"a": {"command": "x", "args": "y"}, "b": {"command": "x", "args": [1]}}}"#,
            #"{"command": "x", "args": []}"#, #"{"mcpServers": {"a": {"command": "greenroomctl", "args": ["run"]}}}"#,
        ] {
            let found = try configuration(text)
            #expect(found.removing().names == [] && found.adding("g").names == [])
        }
    }

    @Test("the program shows the difference, keeps the old file, and keeps owner and mode (L54)")
    func program() throws {
        let folder = TemporaryFolder()
        let file = try folder.write("mcp.json", Self.zed + "\n")
        chmod(file, 0o600)
        let added = try run("mcp-config", file)
        #expect(
            added.status == 0 && added.output.contains("+{\"context_servers\"")
                && added.output.contains("1 server starts with"))
        #expect(try readText(file).contains("\"run\", \"--name\", \"a\""))
        #expect(try readText(file + ".before-greenroom") == Self.zed + "\n")
        var about = stat()
        #expect(stat(file, &about) == 0 && about.st_mode & 0o777 == 0o600)
        #expect(try run("mcp-config", file).output == "\(file): nothing to change.\n")
        #expect(try run("mcp-config", file, "--remove").status == 0)
        #expect(try readText(file) == Self.zed + "\n")
        #expect(try readText(file + ".before-greenroom") == Self.zed + "\n")
        #expect(try readText(file + ".with-greenroom").contains("\"run\", \"--name\", \"a\""))
        let wrong = try run("mcp-config", "/dev/null")
        #expect(wrong.status == 1 && wrong.errors.contains("expected a regular file"))
    }
}
