import Glibc

let usage = """
    Usage: greenroom-bench --programs DIR --app PROGRAM --scripts DIR --folder DIR --runtime DIR [--quick] [--json]
           [--only PART] [--apps NUMBER] [--minutes NUMBER] [--commit COMMIT] [--record FILE]
           greenroom-bench … --check BASELINE|--baseline FILE
           greenroom-bench tables [--check] RUN… PAGE

    Measures greenroomd and, for comparison, posix_spawn, cgroup.freeze, SIGCONT, timerfd and supervisord. `make bench` starts
    this program, creates the directories and cleans up after it. Parts: launches, resuming, deadlines, rest, turns, sockets, core,
    descriptors, memory, connection, waking, waking-shapes, waking-many, waking-web, hosting,
    hosting-show.

    --check measures some figures and compares them with a baseline, which --baseline writes. `tables` writes the tables of
    recorded runs into a page.

    """

// A function, as top-level variables would belong to the main actor.
private func start() -> Int32 {
    if CommandLine.arguments.dropFirst().first == "tables" {
        return status { try RecordedPage.command(Array(CommandLine.arguments.dropFirst(2))) }
    }
    var values: [String: String] = [:]
    var flags: Set<String> = []
    var words = CommandLine.arguments.dropFirst()
    while let word = words.popFirst() {
        switch word {
        case "--programs", "--app", "--scripts", "--folder", "--runtime", "--only", "--apps", "--minutes", "--commit",
            "--record", "--check", "--baseline":
            values[word] = words.popFirst()
        case "--quick", "--json": flags.insert(word)
        default: return fail(usage, 2)
        }
    }
    guard let programs = values["--programs"], let app = values["--app"], let scripts = values["--scripts"],
        let folder = values["--folder"], let runtime = values["--runtime"]
    else { return fail(usage, 2) }
    signal(SIGPIPE, SIG_IGN)
    let bench = Bench(
        BenchOptions(
            programs: programs, app: app, scripts: scripts, folder: folder, runtime: runtime,
            isQuick: flags.contains("--quick"), wantsJSON: flags.contains("--json"),
            apps: values["--apps"].flatMap { Int($0) } ?? 0, minutes: values["--minutes"].flatMap { Int($0) } ?? 1,
            commit: values["--commit"], recording: values["--record"]))
    if let file = values["--check"] { return status { try bench.check(baseline: file) } }
    if let file = values["--baseline"] { return status { try bench.writeBaseline(file) } }
    return status { try bench.run(only: values["--only"]) ? true : nil }
}

/// The exit status: 0 if the result is true, 1 if it is false or an error, 2 if it is `nil`, for a wrong usage.
private func status(_ body: () throws -> Bool?) -> Int32 {
    do {
        guard let isFine = try body() else { return fail(usage, 2) }
        return isFine ? 0 : 1
    } catch {
        return fail("greenroom-bench: \(error)\n", 1)
    }
}

private func fail(_ text: String, _ status: Int32) -> Int32 {
    _ = text.withCString { write(STDERR_FILENO, $0, strlen($0)) }
    return status
}

exit(start())
