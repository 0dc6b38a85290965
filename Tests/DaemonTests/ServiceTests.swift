import Glibc
import Testing

@testable import Linux

@Suite("As a service")
struct ServiceTests {
    @Test(
        "the daemon's own protection from the OOM killer is not its apps'",
        .enabled(if: mayLowerOOMScore, "lowering oom_score_adj needs CAP_SYS_RESOURCE"))
    func protection() throws {
        let daemon = try TestDaemon([
            "plain": TestDaemon.manifest(""), "chosen": TestDaemon.manifest("", app: "OOMScoreAdjust=300"),
        ])
        try writeControlFile("/proc/\(daemon.process.pid)/oom_score_adj", "-500")
        try daemon.launch("plain")
        #expect(TestDaemon.text(of: "/proc/\(try daemon.pid("plain"))/oom_score_adj") == "0\n")
        try daemon.launch("chosen")
        #expect(TestDaemon.text(of: "/proc/\(try daemon.pid("chosen"))/oom_score_adj") == "300\n")
    }
}

/// CAP_SYS_RESOURCE is number 24; a container's root has it rarely.
private let mayLowerOOMScore = (try? ProcFS().status(of: getpid()))?.hasCapability(24) ?? false
