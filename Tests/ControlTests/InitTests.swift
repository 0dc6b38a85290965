import Glibc
import JSON
import Systemd
import Testing

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
            text(path).hasSuffix(
                "/true --port 80 \"a b\" \"100%%\" \"$$HOME\" \"say \\\"hi\\\"\"\n"), "\(text(path))")
        let verified = try RunningProgram(["verify", "--user", path], environment: [], terminal: false)
            .finish(in: EventLoop())
        #expect(verified.output == "\(path): OK\n")
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
}
