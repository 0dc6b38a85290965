import Glibc

// In a function: global variables of a main file belong to the main actor.
private func start() -> Int32 {
    runCommandLine(Array(CommandLine.arguments.dropFirst()), Environment.ofProcess)
}

exit(start())
