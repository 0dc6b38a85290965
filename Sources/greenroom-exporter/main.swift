import Control
import Glibc
import Posix
import Systemd

/// Prints a sentence to standard error.
func printError(_ sentence: String) {
    try? writeAll("greenroom-exporter: \(sentence)\n", to: STDERR_FILENO)
}

/// Writes all bytes; a reader that has gone is no error of this program.
private func writeAll(_ text: String, to descriptor: Int32) throws(SystemError) {
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
        let count = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
        guard count > 0 else { return }
        rest = rest.dropFirst(count)
    }
}

// In a function: variables at the top level would be global, and visible to all threads.
private func start() -> Int32 {
    do { try openStandardDescriptors() } catch {
        printError("\(error)")
        return 1
    }
    let options: Options
    switch Options.parse(
        Array(CommandLine.arguments.dropFirst()), isRoot: geteuid() == 0,
        environment: { name in getenv(name).map { String(cString: $0) } })
    {
    case .run(let parsed): options = parsed
    case .show(let text):
        try? writeAll(text, to: STDOUT_FILENO)
        return 0
    case .wrong(let sentence):
        printError(sentence)
        return 2
    }
    // A scraper that hangs up is no reason to end.
    signal(SIGPIPE, SIG_IGN)
    do {
        return try Exporter(options).run()
    } catch {
        printError("\(error)")
        return 1
    }
}

exit(start())
