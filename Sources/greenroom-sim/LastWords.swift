import Glibc

/// What is said if the core traps or never returns: which seed it was. Written beforehand, as a signal handler may do next
/// to nothing.
enum LastWords {
    nonisolated(unsafe) private static var words: UnsafeMutablePointer<CChar>?

    /// How long one seed may take, in seconds: far longer than any does.
    private static let patience: UInt32 = 600

    static func install() {
        for number in [SIGILL, SIGTRAP, SIGABRT, SIGSEGV, SIGALRM] {
            signal(number) { number in
                if let words { _ = write(STDERR_FILENO, words, strlen(words)) }
                signal(number, SIG_DFL)
                raise(number)
            }
        }
    }

    static func prepare(_ seed: UInt64, _ command: String) {
        free(words)
        words = strdup("\nThe core trapped, or never came back, in seed \(seed). To see all of it:\n  \(command)\n")
        alarm(patience)
    }
}
