import Control
import Daemon
import Glibc
import Linux
import Posix

// In a function: variables at the top level would be global, and visible to all threads.
private func start() -> Int32 {
    do { try openStandardDescriptors() } catch {
        printError("\(error)")
        return 1
    }
    if let status = DirectoryKey.run(CommandLine.arguments) { return status }
    let parsed = DaemonOptions.parse(
        Array(CommandLine.arguments.dropFirst()), isRoot: geteuid() == 0, version: ControlNames.version,
        environment: { name in getenv(name).map { String(cString: $0) } })
    switch parsed {
    case .run(let options): return runDaemon(options)
    case .show(let text):
        print(text, terminator: "")
        return 0
    case .wrong(let sentence):
        printError(sentence)
        return 2
    }
}

exit(start())
