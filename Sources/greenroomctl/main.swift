import Glibc
import Posix

// In a function: global variables of a main file belong to the main actor.
private func start() -> Int32 {
    do { try openStandardDescriptors() } catch {
        try? write("greenroomctl: \(error)\n", to: STDERR_FILENO)
        return 1
    }
    return runCommandLine(Array(CommandLine.arguments.dropFirst()), Environment.ofProcess)
}

exit(start())
