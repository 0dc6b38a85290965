import Control
import Daemon
import Glibc

// In a plain function: everything stays with the one thread that made it.
private func start() -> Int32 {
    let parsed = DaemonOptions.parse(
        Array(CommandLine.arguments.dropFirst()), isRoot: geteuid() == 0, version: ControlNames.version,
        environment: { name in getenv(name).map { String(cString: $0) } })
    switch parsed {
    case .run(let options): return runDaemon(options)
    case .show(let text):
        print(text, terminator: "")
        return 0
    case .wrong(let sentence):
        complainToTerminal(sentence)
        return 2
    }
}

exit(start())
