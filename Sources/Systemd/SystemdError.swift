import Glibc

/// An answer of the kernel or of libsystemd that was not expected: which call, its errno, and what it was about.
package struct SystemdError: Error, Equatable, CustomStringConvertible {
    /// The function that failed, by its C name (`bind`, `sd_event_new`), or a sentence about what was tried.
    package let call: String
    /// A positive errno.
    package let code: Int32
    /// The file or socket it was about, where there is one.
    package let path: String?

    package init(_ call: String, errno code: Int32, path: String? = nil) {
        self.call = call
        self.code = code
        self.path = path
    }

    package var description: String {
        let reason = errnoText(code)
        return path.map { "\(call) \($0): \(reason)" } ?? "\(call): \(reason)"
    }
}

/// What strerror says of an errno.
func errnoText(_ code: Int32) -> String {
    strerror(code).map { String(cString: $0) } ?? "error \(code)"
}

/// Passes a libsystemd result on; a negative one is an errno and throws.
@discardableResult
func check(_ result: Int32, _ call: String, path: String? = nil) throws(SystemdError) -> Int32 {
    guard result >= 0 else { throw SystemdError(call, errno: -result, path: path) }
    return result
}
