import Glibc
import JSON
import Systemd
import Testing

@testable import greenroomctl

@Suite("certify")
struct CertifyTests {
    /// A report with each outcome.
    private static let report: CertifyReport = {
        var report = CertifyReport(app: "photos")
        func add(_ name: String, _ rules: String, _ outcome: CertifyOutcome) {
            report.points.append(.init(name: name, title: name, rules: rules, outcome: outcome))
        }
        add("launch", "L6 L7", .handled("said that it is ready", .milliseconds(41)))
        add("interruption", "L13", .ignored("it is not notified"))
        add("suspend", "L18", .broken("killed: \"a\" < b & \u{1B}[0m"))
        add("scenes", "", .notApplicable("it has the scene main alone"))
        return report
    }()

    @Test("the exit status is 1 if something broke, and the summary counts the outcomes")
    func summary() {
        var report = Self.report
        #expect(report.status == 1)
        #expect(
            report.summary == "photos broke: of 4 steps 1 handled, 1 ignored, 1 broken, 1 not applicable.")
        report.points.remove(at: 2)
        #expect(report.status == 0)
        #expect(report.summary == "Nothing broke: of 3 steps 1 handled, 1 ignored, 1 not applicable.")
        report.points.removeLast(2)
        #expect(report.summary == "Nothing broke: of 1 step 1 handled.")
    }

    @Test("a line has the outcome, the time and the finding, without control characters")
    func lines() {
        let screen = Screen(Environment(isRoot: false) { _ in nil })
        let lines = Self.report.points.map { CertifyReport.line($0, screen) }
        #expect(lines[0] == "✓ launch             handled  41ms     said that it is ready\n")
        #expect(lines[1] == "· interruption       ignored           it is not notified\n")
        #expect(lines[2] == "✗ suspend            broken            killed: \"a\" < b & \\x1b[0m\n")
        #expect(lines[3] == "· scenes             n/a               it has the scene main alone\n")
    }

    @Test("JSON has each step with its rules")
    func json() {
        let steps = Self.report.json["steps"]?.arrayValue ?? []
        #expect(steps.compactMap { $0["outcome"]?.stringValue } == ["handled", "ignored", "broken", "not-applicable"])
        #expect((steps[0]["rules"]?.arrayValue ?? []).compactMap(\.stringValue) == ["L6", "L7"])
        #expect(steps[0]["tookSeconds"]?.numberValue == 0.041)
        #expect(steps[1]["tookSeconds"] == nil)
        #expect(Self.report.json["status"]?.numberValue == 1)
    }

    @Test("JUnit: what broke is a failure, what does not apply was skipped, and text of the app is escaped")
    func junit() {
        let text = Self.report.junit
        #expect(
            text.hasPrefix(
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"greenroomctl certify photos\" "))
        #expect(text.contains("tests=\"4\" failures=\"1\" errors=\"0\" skipped=\"1\" time=\"0.041\">\n"))
        #expect(text.contains("<failure message=\"killed: &quot;a&quot; &lt; b &amp; \\x1b[0m\"/>"))
        #expect(
            text.contains(
                "name=\"launch\" time=\"0.041\">\n    <system-out>handled: said that it is ready</system-out>"))
        #expect(text.contains("<skipped message=\"it has the scene main alone\"/>"))
        #expect(text.hasSuffix("</testcase>\n</testsuite>\n"))
    }

    @Test("an app or a command: what comes after -- is a command, and settings are for it alone")
    func arguments() {
        func problem(_ line: String...) -> String? {
            guard case .wrong(let sentence) = Invocation.parse(["certify"] + line) else { return nil }
            return sentence
        }
        #expect(problem() == "certify: missing argument APP")
        #expect(problem("photos") == nil)
        #expect(problem("--", "sleep", "1") == nil)
        #expect(problem("sleep", "1") == "certify: unexpected argument '1'; a command comes after --")
        #expect(
            problem("-p", "Type=notify", "photos") == "certify: --property is for a command; an app has its manifest")
        #expect(problem("-p", "Type", "--", "a") == "--property: invalid setting 'Type'; expected KEY=VALUE")
        #expect(problem("a b")?.hasPrefix("certify: invalid app ID 'a b'") == true)
        guard case .run(let command) = Invocation.parse(["certify", "--", "photos.app"]) else {
            Issue.record("not parsed")
            return
        }
        #expect(command.isCommand && command.operands == ["photos.app"] && command.apps.isEmpty)
    }

    @Test("options of the rounds: unknown steps, numbers and times are refused with what is expected")
    func roundOptions() {
        func problem(_ line: String...) -> String? {
            guard case .wrong(let sentence) = Invocation.parse(["certify"] + line + ["photos"]) else { return nil }
            return sentence
        }
        let steps = CertifyStep.all.map(\.name).joined(separator: ", ")
        #expect(problem("--only=lod") == "--only: unknown step 'lod'; did you mean 'load'?; expected \(steps)")
        #expect(problem("--only=launch,,load")?.hasPrefix("--only: unknown step ''") == true)
        #expect(problem("--only=load", "--only=kill") == nil)
        for number in ["0", "-1", "x", "100001", "99999999999999999999"] {
            #expect(problem("--rounds=\(number)") == "--rounds: invalid number '\(number)'; expected 1 to 100000")
        }
        #expect(problem("--rounds=100000") == nil)
        #expect(problem("--client=a", "--only=launch") == "--client is for the step load, which --only does not name")
        #expect(problem("--rounds=1", "--only=kill") == "--rounds is for the step load, which --only does not name")
        for time in ["0", "infinity", "x"] {
            #expect(
                problem("--client=a", "--timeout=\(time)")
                    == "--timeout: invalid time '\(time)'; expected a time span such as 30s or 1min")
        }
        #expect(problem("--timeout=3s") == "certify: --timeout is for the answers of --client")
        #expect(problem("--client=a", "--timeout=3s") == nil)
        guard
            case .run(let given) = Invocation.parse(
                [
                    "certify", "--client=a b", "--only=terminate,load", "--only=launch", "--rounds=7", "--timeout=3s",
                    "photos",
                ])
        else {
            Issue.record("not parsed")
            return
        }
        let options = CertifyOptions(given)
        #expect(options.client == "a b" && options.rounds == 7 && options.timeout == .seconds(3))
        #expect(options.steps.map(\.name) == ["launch", "load", "terminate"])
        #expect(CertifyOptions().steps.count == CertifyStep.all.count)
    }

    @Test("lines of a client are bounded, and end with a line feed")
    func clientLines() {
        var lines = ClientLines()
        lines.add(Array("ok\r\nwrong: \u{E4}\nrest".utf8)[...])
        #expect(lines.next() == "ok" && lines.next() == "wrong: \u{E4}" && lines.next() == nil)
        #expect(lines.hasText && lines.rest == "rest" && !lines.isTooLong)
        lines = ClientLines()
        lines.add(ArraySlice(repeating: 0x61, count: ClientLines.longest))
        #expect(!lines.isTooLong && lines.next() == nil)
        lines.add([0x0A])
        #expect(!lines.isTooLong && lines.next()?.utf8.count == ClientLines.longest)
        lines.add(ArraySlice(repeating: 0x61, count: ClientLines.longest + 1))
        lines.add([0x0A])
        #expect(lines.isTooLong && lines.next() == nil && lines.rest.utf8.count == ClientLines.longest)
    }

    @Test("of an HTTP answer the header, which has the date, is not compared")
    func comparable() {
        let answer = Array("HTTP/1.1 200 OK\r\nDate: today\r\n\r\nbody".utf8)
        #expect(CertifyRequest.http.comparable(answer) == Array("HTTP/1.1 200 OK\r\nbody".utf8))
        #expect(CertifyRequest.http.comparable(Array("-ERR\r\n\r\n".utf8)).isEmpty)
        #expect(CertifyRequest.ping.comparable(Array("+PONG\r\n".utf8)) == Array("+PONG\r\n".utf8))
    }
}
