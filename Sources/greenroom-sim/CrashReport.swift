import Glibc

/// The message, formatted in advance: a signal handler must not allocate memory. The program has one thread.
nonisolated(unsafe) private var message: UnsafeMutablePointer<CChar>?

/// Prints the current seed if the core traps or does not return.
enum CrashReport {
    /// The time limit for one seed, in seconds. No seed takes nearly as long.
    private static let timeout: UInt32 = 600

    static func install() {
        for number in [SIGILL, SIGTRAP, SIGABRT, SIGSEGV, SIGALRM] {
            signal(number) { number in
                if let message { _ = write(STDERR_FILENO, message, strlen(message)) }
                signal(number, SIG_DFL)
                raise(number)
            }
        }
    }

    static func prepare(_ seed: UInt64, _ command: String) {
        free(message)
        message = strdup("\nThe core trapped or did not return in seed \(seed). To print the trace:\n  \(command)\n")
        alarm(timeout)
    }
}
