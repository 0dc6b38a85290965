/// Why a request of the app was not carried out.
public enum GreenroomError: Error, Hashable, Sendable, CustomStringConvertible {
    /// greenroomd refused the request.
    ///
    /// `name` is the name of the D-Bus error, for example `org.greenroom.Error.NoBackgroundTime`, and `sentence` says why, for
    /// people.
    case refused(name: String, sentence: String)
    /// greenroomd did not answer within 10s. It may be restarting; the app continues to run, and may try again.
    case unavailable(String)
    /// The background time ended, so the task with this name was cancelled.
    case taskExpired(String)
    /// A call of the operating system failed, or an argument is invalid: the error number (errno(3)) and a sentence.
    case system(Int32, String)
    /// The process is about to end, or is a child made by fork(2), which takes no part.
    case ended

    /// The reason, as a sentence.
    public var description: String {
        switch self {
        case .refused(_, let sentence): sentence
        case .unavailable(let sentence): sentence
        case .taskExpired(let name): "The background time of the task '\(name)' ends."
        case .system(_, let sentence): sentence
        case .ended: "The process takes no part, or no longer."
        }
    }

    /// The name of what the library itself refuses because it is too large or too much.
    static let limitsExceeded = "org.freedesktop.DBus.Error.LimitsExceeded"
}
