import Glibc

// In a plain function: everything stays with the one thread that made it.
private func start() -> Int32 {
    runCommandLine(Array(CommandLine.arguments.dropFirst()), Environment.ofProcess)
}

exit(start())
