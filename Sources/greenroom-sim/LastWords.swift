import Glibc

/// Written beforehand, as a signal handler may do next to nothing. Nothing else runs while it is read.
nonisolated(unsafe) private var lastWords: UnsafeMutablePointer<CChar>?

/// What is said if the core traps or never returns: which seed it was.
enum LastWords {
    /// How long one seed may take, in seconds: far longer than any does.
    private static let patience: UInt32 = 600

    static func install() {
        for number in [SIGILL, SIGTRAP, SIGABRT, SIGSEGV, SIGALRM] {
            signal(number) { number in
                if let lastWords { _ = write(STDERR_FILENO, lastWords, strlen(lastWords)) }
                signal(number, SIG_DFL)
                raise(number)
            }
        }
    }

    static func prepare(_ seed: UInt64, _ command: String) {
        free(lastWords)
        lastWords = strdup("\nThe core trapped, or never came back, in seed \(seed). To see all of it:\n  \(command)\n")
        alarm(patience)
    }
}
