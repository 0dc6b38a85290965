/// What `help` shows.
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

            Shows apps and moves them through their lives.

            Looking:
            \(lines([.list, .status, .receipts, .receipt, .log, .watch]))
            Moving:
            \(lines([.launch, .activate, .background, .interrupt, .resume, .terminate, .push, .send]))
            The house:
            \(lines([.pressure, .verify, .reload, .reexec, .help]))
            Options, anywhere on the line:
              --json                  one JSON document (watch: one object a line)
              --system, --user        the system's daemon (root's default) or one's own
              --runtime DIR           the daemon that has this runtime folder
              --version
              -h, --help              also behind a verb
              --                      what follows are no options

            Exit status: 0 done, 1 failed, 2 wrong usage, 3 for the status of an app that is not running.

            """
    }

    /// Options stay out of the list of verbs.
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
        let summary = verb.summary.prefix(1).uppercased() + verb.summary.dropFirst() + "."
        let head = "Usage: greenroomctl \(verb.rawValue)\(usage)\n\n\(summary)\n"
        guard verb.isThere else { return head + "\nThis verb is not there yet.\n" }
        return details(verb).map { head + "\n" + $0 + "\n" } ?? head
    }

    private static func details(_ verb: Verb) -> String? {
        switch verb {
        case .list, .status, .receipts, .receipt, .log, .watch: looking(verb)
        case .launch, .activate, .background, .interrupt, .resume, .terminate, .push, .send: moving(verb)
        case .pressure, .verify, .reload, .reexec: house(verb)
        case .help, .open, .snapshot: nil
        }
    }

    private static func looking(_ verb: Verb) -> String? {
        switch verb {
        case .list:
            """
            Columns: ID, state, pid, memory, since when it is in that state, and what counts: its deadline, its open
            background tasks, an error in its manifest. Into a pipe there is no heading, an absent value is “-”, and times
            are in RFC 3339: so `greenroomctl list | awk '$2 == "suspended" { print $1 }'` works.
            """
        case .status: "The exit status is 3 if one of the apps is not running."
        case .receipts:
            """
              -n, --lines N           only the last N; all that are kept otherwise

            Columns: ID, time, app, namespace and code, explanation. Also of apps whose manifest is gone.
            """
        case .log:
            """
              -f, --follow            what comes, as it comes
              -n, --lines N           only the last N

            Shown by journalctl(1), which also says who may read it.
            """
        case .watch:
            """
              -v, --verbose           also deadlines that begin and are kept

            With APPs only what concerns these. Ends with the daemon, or with Ctrl-C.
            """
        default: nil
        }
    }

    private static func moving(_ verb: Verb) -> String? {
        switch verb {
        case .launch:
            """
              --background            into the background, with 30 s of background time
              --reason REASON         what the app is told: user (default), url, push, fetch, socket, timer, accessory,
                                      location, relaunch. Only a user's launch is not postponed after early ends.
              --url URL               what it is to open

            An app that runs is activated. Fails with the reason if the app ends before it is there.
            """
        case .activate: "Launches it if it is not running. The app that was activated longest ago makes room."
        case .background: "It has its deadline to answer, then the time of its tasks, then it is suspended."
        case .interrupt, .resume: "Interruptions nest: the app is active again when the last of them ended."
        case .terminate:
            """
              --remove                killed at once, without a word; its restoration state is dropped

            The app is told and has its deadline to end, then it is killed. A suspended app is killed without a word.
            """
        case .push: "The app has 30 s to complete it, and must declare BackgroundModes=push."
        case .send:
            """
            Kinds: accessory, orientation, time, battery, proximity, protectedData, display, screenMode, settings, locale,
            account, memory, and one's own, which begin with “x-”. Of each kind a suspended app keeps the latest.
            """
        default: nil
        }
    }

    private static func house(_ verb: Verb) -> String? {
        switch verb {
        case .pressure: "Simulating a level does what that level would do: it warns apps, and may take one."
        case .verify:
            """
            FILE is ID.app, one of its drop-ins (ID.app.d/*.conf) or greenroom.conf; drop-ins beside it are read too. Says
            file:line:column of each error and warning. The exit status is 1 if there is an error.
            """
        case .reload:
            "Apps that run go on. The exit status is 1 if a manifest has an error; the others count all the same."
        case .reexec:
            """
            The program that lies where the daemon's own was takes its place, in the same process: after an upgrade, the new
            one. Apps run on, frozen ones stay frozen, deadlines go on. Requests that somebody waits for are carried out,
            but not answered.
            """
        default: nil
        }
    }
}
