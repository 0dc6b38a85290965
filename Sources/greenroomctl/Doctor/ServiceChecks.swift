import Control
import LifecycleCore
import Manifest

/// What other programs of the machine do for Greenroom.
extension Machine {
    var serviceChecks: [Check] {
        [oomd, journal, messageBus, polkit, sleep].compactMap { $0 }
    }

    private var oomd: Check {
        let name = "systemd-oomd"
        guard runs("systemd-oomd") else { return Check(name, .fine, "does not run: jetsam alone ends apps for memory") }
        if isForRoot {
            return Check(name, .fine, "runs, and leaves the apps of the service alone (ManagedOOMPreference=omit)")
        }
        return Check(
            name, .costs, "runs, and leaves a user's apps alone under memory pressure, but not when swap is full",
            cost: "then it may end an app without a warning",
            remedy: "SwapUsedLimit=100% in /etc/systemd/oomd.conf")
    }

    private var journal: Check {
        guard exists("/run/systemd/journal/socket") else {
            return Check(
                "journal", .costs, "none",
                cost: "the log goes to standard error, and the output of apps to files with a bound",
                remedy: hasSystemd
                    ? "systemctl start systemd-journald"
                    : "append standard error to a file (greenroomd 2>>FILE); greenroomctl log APP prints the output of an app"
            )
        }
        return Check("journal", .fine, "journald runs")
    }

    private var messageBus: Check? {
        guard isForRoot else { return nil }
        guard exists("/run/dbus/system_bus_socket") else {
            return Check(
                "message bus", .costs, "none",
                cost: "only root reaches the daemon, and apps are not notified when the machine goes to sleep",
                remedy: "apt-get install dbus")
        }
        return Check("message bus", .fine, "the system bus runs")
    }

    /// polkit decides which other users may manage the apps of the system's daemon. It is started when it is asked.
    private var polkit: Check? {
        guard isForRoot else { return nil }
        let service = "org.freedesktop.PolicyKit1.service"
        let isInstalled = ["/usr/share/dbus-1/system-services/", "/usr/lib/systemd/system/"].contains {
            exists($0 + service)
        }
        guard isInstalled || runs("polkitd") else {
            return Check(
                "polkit", .costs, "not installed", cost: "only root may manage apps", remedy: "apt-get install polkitd")
        }
        guard exists("/usr/share/polkit-1/actions/org.greenroom.policy") else {
            return Check(
                "polkit", .costs, "installed, without the actions of Greenroom", cost: "only root may manage apps",
                remedy: "make install, or the package greenroom")
        }
        return Check("polkit", .fine, "installed")
    }

    // MARK: logind

    /// The file that the package installs as /usr/lib/systemd/logind.conf.d/50-greenroom.conf.
    private static let wantedDelay = Duration.seconds(10)

    private var sleep: Check {
        let name = "sleep"
        guard runs("systemd-logind") else {
            return Check(name, .note, "logind does not run", cost: "apps are not notified before the machine sleeps")
        }
        let delay = inhibitDelay
        let finding = "logind waits for \(delay.timeSpan) (InhibitDelayMaxSec=)"
        guard delay < Self.wantedDelay else { return Check(name, .fine, finding) }
        return Check(
            name, .costs, finding, cost: "the machine sleeps while an app still has time to enter the background",
            remedy: "InhibitDelayMaxSec=10s below [Login] in /etc/systemd/logind.conf.d/50-greenroom.conf, "
                + "then systemctl reload systemd-logind")
    }

    /// The last value in the files of logind.conf(5), in the order in which systemd reads them: the main file, then the drop-ins by
    /// name. Of two drop-ins with one name, that in /etc counts.
    private var inhibitDelay: Duration {
        let folders = ["/usr/lib/systemd/logind.conf.d", "/run/systemd/logind.conf.d", "/etc/systemd/logind.conf.d"]
        var dropIns: [String: String] = [:]
        for folder in folders {
            for name in entries(folder) where name.hasSuffix(".conf") { dropIns[name] = "\(folder)/\(name)" }
        }
        let main = ["/etc/systemd/logind.conf", "/usr/lib/systemd/logind.conf"].first { exists($0) }
        var delay = Duration.seconds(5)
        for path in [main].compactMap({ $0 }) + dropIns.sorted(by: { $0.key < $1.key }).map(\.value) {
            for line in lines(path) {
                let parts = line.split(separator: "=", maxSplits: 1).map { $0.filter { $0 != " " && $0 != "\t" } }
                guard parts.count == 2, parts[0] == "InhibitDelayMaxSec", let found = parseTimeSpan(parts[1]) else {
                    continue
                }
                // infinity
                delay = found ?? .seconds(1_000_000_000)
            }
        }
        return delay
    }
}
