import Glibc
import Posix

// In a function: global variables of a main file belong to the main actor.
private func start() -> Int32 {
    let closed = (0...2).filter { fcntl($0, F_GETFD) < 0 }
    do { try openStandardDescriptors() } catch {
        try? write("greenroomctl: \(error)\n", to: STDERR_FILENO)
        return 1
    }
    var environment = Environment.ofProcess
    environment.closedDescriptors = closed
    return runCommandLine(Array(CommandLine.arguments.dropFirst()), environment)
}

exit(start())
