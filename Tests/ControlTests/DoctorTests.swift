import Control
import Glibc
import JSON
import Systemd
import Testing

@testable import greenroomctl

/// A made-up machine: files below a temporary folder.
private final class MadeUpMachine {
    let folder = TemporaryFolder()

    /// Debian with cgroup v2, zram, and everything that Greenroom uses.
    static let good: [String: String] = [
        "proc/sys/kernel/osrelease": "6.1.0-18-amd64\n",
        "proc/self/cgroup": "0::/user.slice\n",
        "proc/self/mountinfo": "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n",
        "proc/self/limits":
            "Limit                     Soft Limit           Hard Limit           Units\n"
            + "Max open files            1024                 524288               files\n",
        "proc/pressure/memory": "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
        "proc/swaps": "Filename\t\t\tType\t\tSize\t\tUsed\t\tPriority\n/dev/zram0  partition\t4194304\t1048576\t100\n",
        "proc/sys/kernel/pid_max": "4194304\n",
        "proc/sys/kernel/yama/ptrace_scope": "1\n",
        "proc/1/comm": "systemd\n", "proc/77/comm": "systemd-logind\n", "proc/78/comm": "systemd-oomd\n",
        "sys/fs/cgroup/cgroup.controllers": "cpuset cpu io memory pids\n",
        "sys/fs/cgroup/user.slice/cgroup.controllers": "cpu io memory pids\n",
        "sys/fs/cgroup/user.slice/cgroup.procs": "",
        "sys/fs/cgroup/user.slice/pids.max": "max\n",
        "sys/block/zram0/comp_algorithm": "lzo [zstd] lz4\n",
        "sys/block/zram0/mm_stat": "1073741824 268435456 285212672 0 300000000 0 0 0 0\n",
        "sys/kernel/mm/lru_gen/enabled": "0x0007\n", "sys/kernel/mm/lru_gen/min_ttl_ms": "1000\n",
        "run/systemd/system/.keep": "", "run/systemd/journal/socket": "", "run/dbus/system_bus_socket": "",
        "usr/share/dbus-1/system-services/org.freedesktop.PolicyKit1.service": "",
        "usr/share/polkit-1/actions/org.greenroom.policy": "",
        "usr/lib/systemd/logind.conf.d/50-greenroom.conf": "[Login]\nInhibitDelayMaxSec=10s\n",
    ]

    /// - Parameter changes: files with another text; `nil`: without the file.
    init(_ changes: [String: String?] = [:]) throws {
        for (name, text) in Self.good where changes[name] == nil { try folder.write(name, text) }
        for case (let name, let text?) in changes { try folder.write(name, text) }
    }

    func checks(isForRoot: Bool = true) -> [Check] {
        let machine = Machine(root: folder.path, isForRoot: isForRoot)
        return machine.kernelChecks + machine.serviceChecks
    }

    func check(_ name: String, isForRoot: Bool = true) -> Check? {
        checks(isForRoot: isForRoot).first { $0.name == name }
    }
}

@Suite("doctor")
struct DoctorTests {
    @Test("a machine that has everything: one line for each check, and the exit status is 0")
    func good() throws {
        let checks = try MadeUpMachine().checks()
        let screen = Screen(Environment(isRoot: true) { $0 == "COLUMNS" ? "80" : nil })
        #expect(
            Session.text(checks, screen) == """
                ✓ kernel         Linux 6.1.0-18-amd64
                ✓ cgroups        cgroup v2 at /sys/fs/cgroup
                ✓ controllers    cpu cpuset io memory pids
                ✓ memory stalls  reported (PSI)
                ✓ swap           1.0G of 4.0G used (25%)
                ✓ zram           zram0 (zstd): 1.0G take 272.0M of memory
                ✓ multi-gen LRU  on, min_ttl_ms is 1000
                ✓ ptrace         restricted by Yama (ptrace_scope 1), not for this daemon
                ✓ open files     at most 524288
                ✓ processes      at most 4194304 (kernel.pid_max)
                ✓ systemd-oomd   runs, and leaves the apps of the service alone
                                 (ManagedOOMPreference=omit)
                ✓ journal        journald runs
                ✓ message bus    the system bus runs
                ✓ polkit         installed
                ✓ sleep          logind waits for 10s (InhibitDelayMaxSec=)

                Nothing is missing.

                """)
        #expect(checks.status == 0)
    }

    @Test("whether a daemon of root may mount is known while it runs (L10)")
    func mounting() throws {
        for (capabilities, outcome) in [("000001ffffffffff", Check.Outcome.fine), ("00000000a88c75fb", .note)] {
            let files = try MadeUpMachine(["proc/500/status": "Name:\tgreenroomd\nCapEff:\t\(capabilities)\n"])
            var machine = Machine(root: files.folder.path, isForRoot: true)
            machine.process = "500"
            let check = try #require(machine.kernelChecks.first { $0.name == "mounts" })
            #expect(check.outcome == outcome)
            #expect((check.cost == nil) == (outcome == .fine))
        }
    }

    @Test(
        "what is missing has its cost and its remedy, and decides the exit status",
        arguments: [
            ("kernel", "proc/sys/kernel/osrelease", "5.4.0", Check.Outcome.prevents, "upgrade the kernel"),
            ("kernel", "proc/sys/kernel/osrelease", "5.10.0-28", .costs, "upgrade to Linux 5.14 or later"),
            ("kernel", "proc/sys/kernel/osrelease", nil, .prevents, "mount -t proc proc /proc"),
            (
                "cgroups", "proc/self/mountinfo", "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n", .costs,
                "boot with systemd.unified_cgroup_hierarchy=1"
            ),
            ("cgroups", "proc/self/mountinfo", "", .costs, "boot with systemd.unified_cgroup_hierarchy=1"),
            (
                "cgroups", "proc/self/mountinfo", "30 23 0:26 / /cannot/be/written rw - cgroup2 cgroup2 rw\n", .costs,
                "mount it writable, with a group that is delegated to the container"
            ),
            (
                "controllers", "sys/fs/cgroup/cgroup.controllers", "cpu io pids\n", .costs,
                "boot with cgroup_enable=memory"
            ),
            ("memory stalls", "proc/pressure/memory", nil, .costs, "boot with psi=1"),
            ("swap", "proc/swaps", nil, .costs, "apt-get install systemd-zram-generator, or swapon"),
            ("swap", "proc/swaps", "Filename\n/swap file 1000 950 -2\n", .costs, "add swap with swapon"),
            ("zram", "proc/swaps", "Filename\n/swap file 1000 100 -2\n", .note, nil),
            (
                "multi-gen LRU", "sys/kernel/mm/lru_gen/min_ttl_ms", "0\n", .note,
                "echo 1000 > /sys/kernel/mm/lru_gen/min_ttl_ms"
            ),
            (
                "multi-gen LRU", "sys/kernel/mm/lru_gen/enabled", "0x0000\n", .note,
                "echo y > /sys/kernel/mm/lru_gen/enabled"
            ),
            (
                "ptrace", "proc/sys/kernel/yama/ptrace_scope", "3\n", .costs,
                "kernel.yama.ptrace_scope=2 in /etc/sysctl.d, and a restart of the machine"
            ),
            (
                "open files", "proc/self/limits", "Max open files  64  64  files\n", .prevents,
                "systemctl edit greenroomd, with LimitNOFILE=524288 in [Service]"
            ),
            (
                "open files", "proc/self/limits", "Max open files  1024  4096  files\n", .costs,
                "systemctl edit greenroomd, with LimitNOFILE=524288 in [Service]"
            ),
            ("processes", "sys/fs/cgroup/user.slice/pids.max", "100\n", .costs, "raise pids.max of this group"),
            ("journal", "run/systemd/journal/socket", nil, .costs, "systemctl start systemd-journald"),
            ("message bus", "run/dbus/system_bus_socket", nil, .costs, "apt-get install dbus"),
            (
                "polkit", "usr/share/dbus-1/system-services/org.freedesktop.PolicyKit1.service", nil, .costs,
                "apt-get install polkitd"
            ),
            ("sleep", "proc/77/comm", "other\n", .note, nil),
        ] as [(String, String, String?, Check.Outcome, String?)])
    func missing(name: String, file: String, text: String?, outcome: Check.Outcome, remedy: String?) throws {
        let machine = try MadeUpMachine([file: text])
        let check = try #require(machine.check(name))
        #expect(check.outcome == outcome && check.remedy == remedy, "\(check)")
        #expect(check.cost != nil || outcome == .note)
        let status: Int32 = outcome == .prevents ? 2 : outcome == .costs ? 1 : 0
        #expect(machine.checks().status == status)
    }

    @Test("without systemd a missing journal has a remedy, too")
    func journalWithoutSystemd() throws {
        let machine = try MadeUpMachine(["run/systemd/system/.keep": nil, "run/systemd/journal/socket": nil])
        rmdir(machine.folder.path + "/run/systemd/system")
        #expect(
            machine.check("journal")?.remedy
                == "append standard error to a file (greenroomd 2>>FILE); greenroomctl log APP prints the output of an app"
        )
    }

    @Test("the delay of logind is the last value of its files; a drop-in in /etc hides one of the same name")
    func inhibitDelay() throws {
        func delay(_ files: [String: String?]) throws -> String? { try MadeUpMachine(files).check("sleep")?.finding }
        let package = "usr/lib/systemd/logind.conf.d/50-greenroom.conf"
        #expect(try delay([package: nil]) == "logind waits for 5s (InhibitDelayMaxSec=)")
        #expect(
            try delay([
                package: nil, "etc/systemd/logind.conf": "[Login]\n#InhibitDelayMaxSec=9\nInhibitDelayMaxSec = 7\n",
            ])
                == "logind waits for 7s (InhibitDelayMaxSec=)")
        #expect(
            try delay([
                "etc/systemd/logind.conf.d/50-greenroom.conf": "", "etc/systemd/logind.conf": "InhibitDelayMaxSec=1min",
            ])
                == "logind waits for 1min (InhibitDelayMaxSec=)")
        #expect(
            try delay(["run/systemd/logind.conf.d/60-a.conf": "InhibitDelayMaxSec=2s\nInhibitDelayMaxSec=nonsense"])
                == "logind waits for 2s (InhibitDelayMaxSec=)")
    }

    @Test(
        "a user's daemon needs a delegated group and its controllers, is not asked about polkit, and Yama restricts it")
    func user() throws {
        let machine = try MadeUpMachine()
        #expect(machine.check("cgroups", isForRoot: false)?.outcome == .fine)
        #expect(machine.check("controllers", isForRoot: false)?.finding == "cpu io memory pids")
        #expect(
            machine.check("polkit", isForRoot: false) == nil && machine.check("message bus", isForRoot: false) == nil)
        #expect(machine.check("ptrace", isForRoot: false)?.remedy == "sysctl kernel.yama.ptrace_scope=0")
        #expect(machine.check("systemd-oomd", isForRoot: false)?.outcome == .costs)
        let alone = try MadeUpMachine(["sys/fs/cgroup/user.slice/cgroup.procs": nil])
        let check = try #require(alone.check("cgroups", isForRoot: false))
        #expect(check.finding == "cgroup v2, but no group is delegated to this user")
        #expect(check.remedy == "systemctl --user start greenroomd")
    }

    @Test("files that are too large, damaged, endless, or folders count as missing, and text from them is escaped")
    func hostile() throws {
        // Valid, but for its size.
        let large = "some avg10=0.00\n0::/user.slice\n" + String(repeating: "x", count: 2 << 20)
        let swaps = String(
            repeating: "/dev/zram0 partition 18446744073709551615 99999999999999999999 1\n", count: 500)
        let machine = try MadeUpMachine([
            "proc/sys/kernel/osrelease": "99999999999999999999.\u{1B}[2J\u{202E}", "proc/swaps": swaps,
            "proc/self/limits": "Max open files\nMax open files a b c d\n", "proc/pressure/memory": large,
            "sys/kernel/mm/lru_gen/enabled": "0xzz", "sys/kernel/mm/lru_gen/min_ttl_ms/folder": "",
            "sys/kernel/mm/lru_gen/min_ttl_ms": nil, "proc/sys/kernel/pid_max": "-1\n", "proc/self/cgroup": large,
            "sys/block/zram0/mm_stat": "1 2", "etc/systemd/logind.conf": "=\n==InhibitDelayMaxSec\n\u{0}",
        ])
        mkfifo(machine.folder.path + "/proc/79", 0o600)
        let checks = machine.checks()
        #expect(checks.first?.finding == "Linux 99999999999999999999.\\x1b[2J\\u202e")
        #expect(machine.check("memory stalls")?.outcome == .costs)
        #expect(machine.check("swap")?.finding == "none")
        #expect(machine.check("cgroups")?.outcome == .costs)
        #expect(machine.check("open files")?.finding == "the limit cannot be read")
        let screen = Screen(Environment(isRoot: true) { _ in nil })
        #expect(Session.text(checks, screen).unicodeScalars.allSatisfy { $0.value >= 0x20 || $0 == "\n" })
        let nothing = Machine(root: machine.folder.path + "/none", isForRoot: true)
        #expect((nothing.kernelChecks + nothing.serviceChecks).status == 2)
    }

    @Test("doctor says whether a daemon answers, and its exit status is that of the document")
    func program() throws {
        let daemon = try FakeDaemon()
        daemon.answer("Version", ControlNames.version)
        let outcome = try daemon.run("doctor", "--json")
        let document = try JSONValue.parse(outcome.output)
        #expect(document["status"]?.integerValue == Int64(outcome.status))
        let checks = try #require(document["checks"]?.arrayValue)
        #expect(checks.first?["name"]?.stringValue == "kernel")
        #expect(
            checks.last?["finding"]?.stringValue?.hasPrefix("\(ControlNames.version) answers; containing apps") == true)
        let alone = try RunningProgram(["doctor", "--runtime", "/none"], environment: [], terminal: false).finish(
            in: daemon.loop)
        #expect(alone.output.contains("· greenroomd     does not run: no greenroomd listens at /none/bus"))
        #expect(alone.output.contains("Remedy: To start it: greenroomd --runtime /none"))
    }
}
