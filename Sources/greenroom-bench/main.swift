import Glibc

let usage = """
    Usage: greenroom-bench --programs DIR --app PROGRAM --folder DIR --runtime DIR [--quick] [--json] [--only PART]

    Measures greenroomd beside posix_spawn, cgroup.freeze, SIGCONT, timerfd and supervisord. Started by `make bench`, which
    makes the folders and clears away what is left should this program be interrupted. Parts: launches, resuming, deadlines,
    rest, core.

    """

// In a plain function: everything stays with the one thread that made it.
private func start() -> Int32 {
    var values: [String: String] = [:]
    var flags: Set<String> = []
    var words = CommandLine.arguments.dropFirst()
    while let word = words.popFirst() {
        switch word {
        case "--programs", "--app", "--folder", "--runtime", "--only": values[word] = words.popFirst()
        case "--quick", "--json": flags.insert(word)
        default: return complain(usage, 2)
        }
    }
    guard let programs = values["--programs"], let app = values["--app"], let folder = values["--folder"],
        let runtime = values["--runtime"]
    else { return complain(usage, 2) }
    signal(SIGPIPE, SIG_IGN)
    let bench = Bench(
        programs: programs, app: app, folder: folder, runtime: runtime, isQuick: flags.contains("--quick"),
        wantsJSON: flags.contains("--json"))
    do {
        guard try bench.run(only: values["--only"]) else { return complain(usage, 2) }
        return 0
    } catch {
        return complain("greenroom-bench: \(error)\n", 1)
    }
}

private func complain(_ text: String, _ status: Int32) -> Int32 {
    _ = text.withCString { write(STDERR_FILENO, $0, strlen($0)) }
    return status
}

exit(start())
