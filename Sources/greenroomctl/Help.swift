/// The texts of `help`.
enum Help {
    static var general: String {
        let width = 24
        func lines(_ verbs: [Verb]) -> String {
            verbs.map { verb in
                let call = "\(verb.rawValue) \(shortUsage(verb))"
                return "  " + call.padded(to: width) + verb.summary + "\n"
            }.joined()
        }
        return """
            Usage: greenroomctl [--json] [--user|--system] [--runtime DIR] VERB …

            Query and control the lifecycle of apps.

            Query:
            \(lines([.list, .status, .receipts, .receipt, .log, .watch]))
            Control:
            \(lines([.launch, .activate, .background, .interrupt, .resume, .terminate, .push, .send]))
            Daemon:
            \(lines([.pressure, .verify, .reload, .reexec, .help]))
            Options, anywhere on the line:
              --json                  Print one JSON document (watch: one object a line)
              --system, --user        Connect to the system daemon (default for root), or to the user's
              --runtime DIR           Connect to the daemon with this runtime folder
              --version               Show the version
              -h, --help              Show this help, or the help of the verb
              --                      End of options

            Exit status: 0 success, 1 failure, 2 usage error, 3 for status of an app that is not running.

            """
    }

    /// The usage without options, for the list of verbs.
    private static func shortUsage(_ verb: Verb) -> String {
        switch verb {
        case .launch, .terminate: "APP"
        case .log: "[APP]"
        case .pressure: "[LEVEL]"
        default: verb.usage
        }
    }

    static func text(of verb: Verb) -> String {
        let usage = verb.usage.isEmpty ? "" : " " + verb.usage
        let head = "Usage: greenroomctl \(verb.rawValue)\(usage)\n\n\(verb.summary).\n"
        guard verb.isImplemented else { return head + "\nNot implemented.\n" }
        return details(verb).map { head + "\n" + $0 + "\n" } ?? head
    }

    private static func details(_ verb: Verb) -> String? {
        switch verb {
        case .list, .status, .receipts, .receipt, .log, .watch: queryDetails(verb)
        case .launch, .activate, .background, .interrupt, .resume, .terminate, .push, .send: controlDetails(verb)
        case .pressure, .verify, .reload, .reexec: daemonDetails(verb)
        case .help, .open, .snapshot: nil
        }
    }

    private static func queryDetails(_ verb: Verb) -> String? {
        switch verb {
        case .list:
            """
            Columns: ID, state, PID, memory, the time since the app entered its state, and its deadline, its background
            tasks or the error in its manifest. If standard output is not a terminal, there is no heading, an absent value
            is '-', and times are in RFC 3339: greenroomctl list | awk '$2 == "suspended" { print $1 }'
            """
        case .status: "The exit status is 3 if one of the apps is not running."
        case .receipts:
            """
              -n, --lines N           Show only the last N receipts

            Columns: ID, time, app, namespace, code and explanation. Receipts remain after a manifest is removed.
            """
        case .log:
            """
              -f, --follow            Print new entries as they arrive
              -n, --lines N           Show only the last N entries

            The entries are shown by journalctl(1), and with the caller's access to the journal.
            """
        case .watch:
            """
              -v, --verbose           Print deadlines that start and are met, too

            With APP, only events of these apps are printed. It ends with the daemon, or with Ctrl-C.
            """
        default: nil
        }
    }

    private static func controlDetails(_ verb: Verb) -> String? {
        switch verb {
        case .launch:
            """
              --background            Launch into the background, with 30s of background time
              --reason REASON         The launch reason that the app is given: user (default), url, push, fetch, socket,
                                      timer, accessory, location or relaunch. After several early ends, launches that
                                      wake the app (push, fetch, socket, timer, accessory, location) are postponed.
              --url URL               The URL to open

            A running app is activated. If the app ends before it is active, the exit status is 1.
            """
        case .activate:
            """
            Launches the app if it is not running. If all foreground slots are taken, the app that was activated first
            moves to the background.
            """
        case .background:
            """
            The app has its background deadline to finish. It is suspended when its background tasks have ended or its
            background time has expired.
            """
        case .interrupt:
            """
              --while-connected       Do not exit; the interruption ends with this program (Ctrl-C)

            Interruptions nest: the app becomes active when the last one has ended. Without the option an interruption
            ends with 'resume', or when the app enters the background.
            """
        case .resume: "Interruptions nest: the app becomes active when the last one has ended."
        case .terminate:
            """
              --remove                Kill the app at once, and drop its restoration state

            The app is notified and has its terminate deadline to end; then it is killed. A suspended app is killed without
            notice.
            """
        case .push: "The app has 30s to complete the push. Its manifest must declare BackgroundModes=push."
        case .send:
            """
            Kinds: accessory, orientation, time, battery, proximity, protectedData, display, screenMode, settings, locale,
            account, memory, and kinds of your own, which start with 'x-'. A suspended app receives the latest
            notification of each kind when it resumes.
            """
        default: nil
        }
    }

    private static func daemonDetails(_ verb: Verb) -> String? {
        switch verb {
        case .pressure:
            """
            Without LEVEL: the level and its cause, available memory of the machine and below the tightest limit of a
            cgroup, swap, the next threshold, stalls, and the apps that would be killed next.

            LEVEL is normal, warning or critical. A simulated level has the effects of a real one: apps are warned, and
            at critical an app may be killed.
            """
        case .verify:
            """
            FILE is ID.app, a drop-in (ID.app.d/*.conf) or greenroom.conf. The drop-ins of a file are checked with it. Each
            error and warning is printed as FILE:LINE:COLUMN. The exit status is 1 if there is an error.
            """
        case .reload:
            """
            Running apps keep running. The exit status is 1 if a manifest has an error; all other manifests are loaded.
            """
        case .reexec:
            """
            The daemon executes its program file again, in the same process: after an upgrade, the new version. Apps keep
            running, suspended apps stay suspended, and deadlines continue. Pending requests are carried out, but their
            callers receive no answer.
            """
        default: nil
        }
    }
}
