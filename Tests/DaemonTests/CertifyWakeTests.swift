import Glibc
import JSON
import Linux
import TestKit
import Testing

/// The steps of `greenroomctl certify` that wake an app: at a near time in place of those of its manifest, and with a URL.
@Suite("greenroomctl certify: wakes")
struct CertifyWakeTests {
    /// The outcomes and findings of steps.
    private func certify(_ arguments: [String]) throws -> [(outcome: String?, finding: String)] {
        let root = try TestDaemon.makeFolder()
        defer { removeTree(root) }
        let (status, output) = try TestDaemon.runToEnd(
            ["--json", "certify", "--only=fetch,timer,url"] + arguments, in: root,
            executable: TestDaemon.binaries + "/greenroomctl")
        #expect(status == .exited(0))
        let steps = try JSONValue.parse(output)["steps"]?.arrayValue ?? []
        #expect(steps.compactMap { $0["name"]?.stringValue } == ["fetch", "timer", "url"], "\(output)")
        return steps.map { ($0["outcome"]?.stringValue, $0["finding"]?.stringValue ?? "") }
    }

    @Test(
        "a program that takes no part is woken by a timer and completes nothing; without settings the steps do not apply"
    )
    func outcomes() throws {
        let command = ["--", "/bin/sleep", "1000"]
        let settings = ["OnCalendar=yearly", "URLSchemes=photos", "StartupSec=0"].flatMap { ["-p", $0] }
        let steps = try certify(settings + command)
        #expect(steps.map(\.outcome) == ["not-applicable", "ignored", "ignored"])
        #expect(steps[0].finding == "FetchIntervalSec= or BackgroundModes=fetch is not set")
        #expect(steps[1].finding.hasPrefix("woken; it did not say that it was done"), "\(steps[1].finding)")
        #expect(steps[2].finding.hasPrefix("it takes URLs only at its launch"), "\(steps[2].finding)")
        #expect(try certify(command).map(\.outcome) == ["not-applicable", "not-applicable", "not-applicable"])
    }
}
