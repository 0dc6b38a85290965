/// The texts of `help`.
enum Help {
    static var general: String {
        let width = 24
        func lines(_ verbs: [Verb]) -> String {
            verbs.map { verb in
                let call = "\(verb.rawValue) \(verb.shortUsage)"
                return "  " + call.padded(to: width) + verb.summary + "\n"
            }.joined()
        }
        return """
            Usage: greenroomctl [--json] [--user|--system] [--runtime DIR] [VERB …]

            Query and control the lifecycle of apps. Without VERB, show the daemon as a whole.

            Query:
            \(lines([.list, .status, .explain, .show, .isActive, .idle, .listTimers, .cat, .snapshot, .receipts, .receipt, .log, .watch, .top, .plot, .replay, .savings]))
            Control:
            \(lines([.switchApps, .launch, .activate, .background, .close, .cancelTask, .interrupt, .resume, .terminate, .restart, .push, .send, .open]))
            Programs without a manifest:
            \(lines([.run, .mcpConfig]))
            Instances of templates (worker@.app):
            \(lines([.enable, .disable]))
            Daemon:
            \(lines([.pressure, .initialize, .certify, .edit, .verify, .reload, .reexec, .doctor, .help]))
            Inside an app:
            \(lines([.app]))
            APP is an ID, with or without '.app', such as photos or worker@42, or a pattern such as 'worker@*'.

            Options, anywhere on the line:
              --json                  Print one JSON document (watch: one object a line); errors, too
              --system, --user        Connect to the system daemon (default for root), or to the user's
              --runtime DIR           Connect to the daemon with this runtime folder
              --version               Show the version
              -h, --help              Show this help, or the help of the verb
              --                      End of options

            Exit status: 0 success, 1 failure, 2 usage error, 3 for status and is-active of an app that is not running.

            """
    }

    static func text(of verb: Verb) -> String {
        let usage = verb.usage.isEmpty ? "" : " " + verb.usage
        let head = "Usage: greenroomctl \(verb.rawValue)\(usage)\n\n\(verb.summary).\n"
        return details(verb).map { head + "\n" + $0 + "\n" } ?? head
    }

    private static func details(_ verb: Verb) -> String? {
        switch verb {
        case .list, .status, .explain, .show, .isActive, .idle, .listTimers, .cat, .receipts, .receipt, .log, .watch,
            .top:
            queryDetails(verb)
        case .launch, .activate, .background, .close, .cancelTask, .interrupt, .resume, .terminate, .restart, .push,
            .send, .open:
            controlDetails(verb)
        case .enable, .disable: templateDetails(verb)
        case .certify: certifyDetails
        case .pressure, .initialize, .edit, .verify, .reload, .reexec, .doctor: daemonDetails(verb)
        case .plot, .replay: recordingDetails(verb)
        case .savings: savingsDetails
        case .app: appDetails
        case .run: runDetails
        case .mcpConfig: mcpConfigDetails
        case .snapshot: snapshotDetails
        case .switchApps: switchDetails
        case .help: nil
        }
    }

    private static var switchDetails: String {
        """
        Lists the apps that run and show something: those in the foreground first, then those that were there last; of an app
        with several windows, each. A number brings one to the foreground. -NUMBER closes a window (close --scene), or removes
        an app that has one (terminate --remove). If standard input or output is no terminal, the list is all.
        """
    }

    private static var certifyDetails: String {
        """
          -p, --property KEY=VALUE  A setting of the command's manifest (greenroom.app(5)); the option may be repeated
          --client COMMAND        Let this command of sh(1) make the requests of the step load: it reads a line for each
                                  round, and writes a line: ok, or what is wrong
          --rounds N              Suspend the app so often in the step load (default: 5)
          --timeout TIME          For each answer of the client (default: 10s)
          --only STEP,…           Take and report only these steps
          --junit FILE            Write the report to FILE, too, in the XML format of JUnit
          --keep                  Keep the folder with the log of greenroomd
          --config DIR            Look for the manifest of APP in this folder

        A greenroomd of its own, in a temporary folder, takes a copy of the app through each transition: launch, interruption,
        background, suspension, wakes, memory warning, notification, a kill with restoration, requests while it is frozen,
        a restart of the daemon, the end. A line a step says what the app handled and how fast, what it ignored, which is
        allowed, and what broke. The app that is installed is not touched; what its program does with files outside of its own
        folders is done. The exit status is 1 if something broke. The steps are
        \(certifySteps).
        """
    }

    /// Two lines.
    private static var certifySteps: String {
        let names = CertifyStep.all.map(\.name)
        return [names[..<8], names[8...]].map { $0.joined(separator: " ") }.joined(separator: "\n")
    }

    private static var snapshotDetails: String {
        """
          --scene ID              Of this scene
          -o, --output FILE       Write it to FILE, which only its owner may read

        Without -o it is written to standard output. On a terminal only text is shown, with control characters escaped. With
        --json: the media type, the time and the size. Apps are asked for a snapshot when they enter the background; one with
        SnapshotPrivacy=hidden is never shown, and one with ProtectedData=yes not while the screen is locked.
        """
    }

    private static func queryDetails(_ verb: Verb) -> String? {
        switch verb {
        case .list: listDetails
        case .status:
            """
              -v, --verbose           Show details, as 'explain'

            Without APP: the version, the folders and the containment of the daemon, the number of apps in each state, memory, and
            what is short or wrong. With APP the exit status is 3 if one of the apps is not running.
            """
        case .explain:
            """
            Shows the same as 'status -v': why the app is awake, or what wakes it and when; why it is not launched; what it may
            still use: tasks, background time, deadlines; why it ended last.
            """
        case .show:
            """
              -p, --property KEY      Show only this property; the option may be repeated, and KEY may be a list with commas
              --value                 Show only the values

            The keys are those of --json, upper or lower case; 'deadline' stands for 'deadline.what' and the others below it.
            Without APP all apps are shown, with an empty line between them.
            """
        case .isActive:
            """
            Prints the state of each app. The exit status is 0 if at least one of the apps runs, in any state but notRunning,
            and otherwise 3.
            """
        case .idle:
            """
              -v, --verbose           Show details: threads, descriptors, the app's own timeouts

            Columns: app, state, since when, and why the app is awake; of a suspended app, what would wake it, and what cannot be
            watched; of an app that is not running, the sockets that greenroomd holds for it, at which a connection launches
            it. Without APP all apps are shown. With --json there is always a list.
            """
        case .listTimers:
            "Columns: next time, until then, last time, since then, app, and kind: timer or fetch. A timer elapses up to\nAccuracySec= later, so that one moment wakes several apps."
        case .cat: "Each file is printed after its path. Files that changed since the daemon read them are named."
        case .receipts:
            """
              -n, --lines N           Show only the last N receipts
              --since TIME            Show only receipts since then: '2025-11-21 07:12', 07:12, today, -1h

            Columns: ID, time, app, how it ended, and explanation. Receipts remain after a manifest is removed.
            """
        case .log:
            """
              -f, --follow            Print new entries as they arrive
              -n, --lines N           Show only the last N entries
              --since TIME            Show only entries since then, in the syntax of systemd.time(7): today, -1h, …

            The entries are shown by journalctl(1), and with the caller's access to the journal.
            """
        case .watch:
            """
              -v, --verbose           Print deadlines that start and are met, too

            With APP, only events of these apps are printed. It ends with the daemon, or with Ctrl-C.
            """
        case .top: topDetails
        default: nil
        }
    }

    private static var runDetails: String {
        """
          -p, --property KEY=VALUE
                                  Set a setting of greenroom.app(5), such as IdleSec=1min; the option may be repeated
          --name NAME             Name the app run@NAME instead of run@COMMAND
          --protocol NAME         What the command reads and writes, jsonrpc or mcp: a request without an answer keeps it
                                  awake; with mcp it may be ended while it sleeps, and its client's next message starts it again
          --keep                  Create a manifest of the command first, so that it can be launched as the app NAME
          --keep-children         Processes that the command leaves behind when it ends continue, as without greenroomd
          --quiet                 Do not warn if the command is executed without greenroomd

        The command has the caller's context: streams, terminal, directory, environment, limits. While nothing happens at its
        streams, its connections and its timers it is suspended, and input wakes it. When the caller is gone it is
        terminated, with all processes that it has started. Without a daemon that may move it into a control group, and
        within another 'run', it is executed as without 'greenroomctl run', with a warning.

        Exit status: that of the command, 128 + N for signal N; 125 'run' failed, 126 the command cannot be executed, 127
        there is no such command.
        """
    }

    private static var mcpConfigDetails: String {
        """
          --protocol NAME         Put this option of 'run' into the prefix, too: jsonrpc or mcp
          --remove                Take the prefix out again

        FILE is the configuration of an MCP client, such as .mcp.json, ~/.claude.json, mcp.json of Cursor or VS Code,
        settings.json of Zed, or ~/.codex/config.toml. Before the command of each server that is started as a command it puts
        'greenroomctl run --name SERVER --'; everything else in the file stays as it is. The difference is printed, and
        the old file is kept as FILE.before-greenroom, with --remove as FILE.with-greenroom.
        """
    }

    private static var topDetails: String {
        """
          --interval TIME         Ask for sizes and counters this often: 2s (default), at least 200ms
          --sort KEY              Sort by state (default), name, memory, resident, swapped, saved, cpu, wakes, left
          --batch                 Print a table instead of a screen, for a pipe or a file
          --count N               With --batch: print N tables (default: 1)

        The key '?' shows the keys. States change as they happen; deadlines and tasks count down. An action needs the same
        permission as the verb. If the daemon is replaced or restarted, top connects again.
        """
    }

    private static var savingsDetails: String {
        """
          --file PATH             A file of the recording, or a folder of them, instead of the daemon's

        It counts what was recorded (TraceSize= in greenroom.conf). IDLE MEMORY is the footprint of the app while it slept, as
        an average over the recorded time: what can be swapped out, or is free after a jetsam kill. WOKEN BY names the kind
        of input, or the reason.
        """
    }

    private static func recordingDetails(_ verb: Verb) -> String? {
        verb == .plot
            ? """
              --svg                   A picture that a browser and a README show
              --html                  A page with zoom, and the sentence of each bar; it needs no network
              --perfetto              A trace for ui.perfetto.dev (TrackEvent)
              --since TIME            Only since then: '2025-11-21 07:12', 07:12, today, -1h
              --file PATH             A file of the recording, or a folder of them, instead of the daemon's

            With --json, the data of these. The document is written to standard output: greenroomctl plot --html > apps.html
            It is read from the daemon's runtime folder, which takes the daemon's user. TraceSize= in greenroom.conf sets how much
            is kept.
            """
            : """
              --jetsam-order ORDER    The other order: largest, lru or balanced

            FILE is a file of the recording, or a folder of them; without FILE, the daemon's. Each decision is judged by what was
            recorded until then: what another decision would have changed later is not known.
            """
    }

    private static var listDetails: String {
        """
          --state STATE           Show only apps in this state; STATE may be a list with commas
          --sort KEY              Sort by name (default), state, memory or since: the largest and the latest first
          --scenes                List the scenes of apps instead: app, scene, role, state and age of the snapshot
          --clients               List what has started commands of 'greenroomctl run' instead, with the sums of each
          --full                  Cut, wrap and leave out nothing for the width of the terminal

        APP is an ID or a pattern: 'worker@*'. Columns: ID, state, PID, memory, the time since the app entered its state,
        and its deadline, its background tasks or the error in its manifest. On a terminal, columns that are empty for all
        apps are left out. If standard output is not a terminal, there is no heading, an absent value is '-', and times
        are in RFC 3339: greenroomctl list | awk '$2 == "suspended" { print $1 }'
        """
    }

    private static var closeDetails: String {
        """
          --scene ID              The scene, which may be unattached
          --no-block              Do not wait for the result; a refusal is still reported

        The app is notified, when it runs. Its other scenes stay. 'list --scenes' lists them.
        """
    }

    private static var cancelTaskDetails: String {
        """
          --no-block              Do not wait for the result; a refusal is still reported

        TASK is the name that 'status' shows; all tasks of this name are cancelled. The app is notified, and in the background
        it has the rest of its background time to end the task, 5s at least; then it is killed (0x2182bad2). In the
        foreground it may ignore it.
        """
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
              -E, --setenv NAME=VALUE Set a variable for this launch alone; the option may be repeated. NAME alone has the
                                      value that it has for greenroomctl.
              --no-block              Do not wait for the result; a refusal is still reported

            A running app is activated; with --background it stays in its state, and it does not get variables. If the app
            ends before it is active, the exit status is 1. An instance of a template, such as worker@42, needs no file of its
            own: launch creates it.
            """
        case .activate:
            """
              --scene ID              Bring this scene of a running app to the foreground; it may create it
              --no-block              Do not wait for the result; a refusal is still reported

            Launches the app if it is not running. If all foreground slots are taken, the app that was activated first
            moves to the background.
            """
        case .background:
            """
              --scene ID              Move this scene alone; with the last one in the foreground, the app
              --no-block              Do not wait for the result; a refusal is still reported

            The app has its background deadline to finish. It is suspended when its background tasks have ended or its
            background time has expired.
            """
        case .close: closeDetails
        case .cancelTask: cancelTaskDetails
        case .interrupt:
            """
              --while-connected       Do not exit; the interruption ends with this program (Ctrl-C)
              --no-block              Do not wait for the result; a refusal is still reported

            Interruptions nest: the app becomes active when the last one has ended. Without the option an interruption
            ends with 'resume', or when the app enters the background.
            """
        case .resume:
            """
              --no-block              Do not wait for the result; a refusal is still reported

            Interruptions nest: the app becomes active when the last one has ended. To wake a suspended app use 'activate'.
            """
        case .terminate:
            """
              --remove                Kill the app at once, and drop its restoration state
              --no-block              Do not wait for the result; a refusal is still reported

            The app is notified and has its terminate deadline to end; then it is killed. A suspended app that has saved its
            data is killed without notice. An app that is not running stays so: the exit status is 0.
            """
        case .restart:
            """
              --background            Launch into the background, with 30s of background time
              -E, --setenv NAME=VALUE Set a variable for this launch alone; the option may be repeated. NAME alone has the
                                      value that it has for greenroomctl.

            An app that is not running is launched. Each app is launched when it has ended, into the foreground also if it
            was in the background or suspended.
            """
        default: notificationDetails(verb)
        }
    }

    private static func notificationDetails(_ verb: Verb) -> String? {
        switch verb {
        case .push:
            """
              --no-block              Do not wait for the result; a refusal is still reported

            Prints the number of the push, except with --no-block. PAYLOAD has 4096 bytes at most. The app has 30s to complete
            the push. Its manifest must declare BackgroundModes=push.
            """
        case .send:
            """
              --no-block              Do not wait for the result; a refusal is still reported

            Kinds: accessory, orientation, time, battery, proximity, protectedData, display, screenMode, settings, locale,
            account, memory, pushEndpoint, and kinds of your own, which start with 'x-'. A suspended app receives the latest
            notification of each kind when it runs again.
            """
        case .open:
            """
              --no-block              Do not wait for the result; a refusal is still reported

            Brings the app to the foreground, or launches it there. Without APP it is the app whose manifest names the
            scheme of the URL (URLSchemes=); of several, the one that DefaultHandlers= in greenroom.conf names. A running
            app takes URLs only if it has a connection to greenroomd that handles them.
            """
        default: nil
        }
    }

    private static func templateDetails(_ verb: Verb) -> String? {
        switch verb {
        case .enable:
            """
              --now                   Launch the instances, too, into the background
              --config DIR            Make the links in DIR/apps

            Makes a link worker@42.app to the template worker@.app in the folder of the daemon's manifests, and reloads them.
            The instance exists at each start of the daemon then: its sockets are held, and LaunchAtStart= of the template
            applies. Without a link an instance exists from its launch on, as long as something is left of it.
            """
        case .disable:
            """
              --now                   Terminate the instances, too
              --config DIR            Remove the links from DIR/apps

            APP may be a pattern for links that exist. Files that are no links are not removed. An instance that runs keeps
            running.
            """
        default: nil
        }
    }

    private static var appDetails: String {
        let commands = AppCommand.allCases.map { command in
            "  " + "\(command.rawValue) \(command.usage)".padded(to: 52) + command.summaryLine + "\n"
        }
        return commands.joined() + """

              --after SERIAL          events, wait: the last event that was handled. Later ones are printed, again if need be
              --timeout TIME          wait: give up after TIME, with the exit status 124
              --answer SERIAL         task: answer this event once the task is open
              --result RESULT         answer: of a push or wake: new-data (default), no-data or failed

            For the processes of an app: GREENROOM_BUS_ADDRESS names the daemon. KIND: openURL, didBecomeActive, willResignActive,
            willEnterForeground, didEnterBackground, willTerminate, memoryWarning, tasksExpiring, push, wake, notification,
            willSuspend, didResume, scene, takeSnapshot, takeSceneSnapshot, didDiscardScenes, withdraw; without KIND all.
            didEnterBackground, willTerminate, push, wake, withdraw, takeSnapshot and takeSceneSnapshot have to be answered.
            TYPE of 'snapshot' is a media type, by default image/png.

            greenroomctl app events didEnterBackground push | while read -r serial kind rest; do … ; done

            'task' exits with the status of COMMAND, or with 125 if there is no background time. When the time ends, it sends
            SIGTERM to COMMAND. 'restore' exits with 3 if there is no state. Keys of 'launch': app, state, reason, url, first,
            summary, end, endCode.
            """
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
        case .initialize:
            """
              --config DIR            Create the manifest in DIR/apps
              --url-scheme SCHEME     The app opens URLs of this scheme; the option may be repeated, and SCHEME may be a list
                                      with commas. Also creates a desktop entry, so that browsers and xdg-open find the app.

            Creates NAME.app for a program in the folder of the daemon's manifests. If no daemon answers, it is
            /etc/greenroom/apps, or for a user's daemon ~/.config/greenroom/apps. An existing file is not changed. NAME may
            be a template such as worker@; specifiers in COMMAND are then replaced for each instance:
            init worker@ -- python3 -m http.server %i
            """
        case .edit:
            """
              --config DIR            Edit the manifest in DIR/apps

            Opens a copy in the editor of VISUAL or EDITOR, or in editor(1) or vi. What is wrong in it is printed, and
            you are asked to edit again. The file is replaced as a whole, and the manifests are reloaded. APP may be a template
            such as worker@. For a manifest of a package, a file of your own is created that takes its place.
            """
        case .verify:
            """
            FILE is ID.app, a drop-in (ID.app.d/*.conf) or greenroom.conf. The drop-ins of a file are checked with it. A
            template is checked as its instance 1; to check it as another one, name the file of that instance, such as
            worker@web.app, which need not exist. Each error and warning is printed as FILE:LINE:COLUMN. The exit status is 1
            if there is an error.
            """
        case .reload:
            """
            Running apps keep running. The exit status is 1 if a manifest has an error; all other manifests are loaded.
            """
        case .doctor:
            """
            Checks the kernel, cgroups and their controllers, PSI, swap and zram, multi-gen LRU, Yama, limits, systemd-oomd, the
            journal, the message bus, polkit, logind, and whether a daemon answers. '✓' is fine, '·' a note, '!' costs a
            feature, '✗' prevents greenroomd from running. Nothing is changed. The exit status is 0, 1 if a feature is
            missing, and 2 if greenroomd does not run on this machine.
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
