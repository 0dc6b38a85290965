import CLinux
import Glibc

/// A call of the kernel, of libc or of libsystemd that failed in a way that its caller did not expect.
package struct SystemError: Error, Equatable, CustomStringConvertible {
    /// The name of the call in its manual page, perhaps with the operation: "open", "fcntl F_SETFL".
    package let call: String
    package let errno: Int32
    /// The file, process or name that the call was applied to.
    package let path: String?

    package init(call: String, errno: Int32, path: String? = nil) {
        self.call = call
        self.errno = errno
        self.path = path
    }

    /// "open /x: No such file or directory (ENOENT)"
    package var description: String {
        let subject = path.map { " " + $0.printable() } ?? ""
        return "\(call)\(subject): \(SystemError.text(of: errno)) (\(SystemError.name(of: errno)))"
    }

    /// The name of an errno: "ENOENT" for 2.
    package static func name(of errno: Int32) -> String {
        clinux_errno_name(errno).map { String(cString: $0) } ?? "errno \(errno)"
    }

    /// The description of an errno: "No such file or directory" for 2.
    package static func text(of errno: Int32) -> String {
        clinux_errno_text(errno).map { String(cString: $0) } ?? "unknown error"
    }

    /// Whether the file, or the process or cgroup behind it, no longer exists (ENOENT, ENOTDIR, ESRCH, ENODEV).
    package var meansGone: Bool { errno == ENOENT || errno == ENOTDIR || errno == ESRCH || errno == ENODEV }

    /// Whether the caller may not do it (EACCES, EPERM).
    package var isRefusal: Bool { errno == EACCES || errno == EPERM }

    /// Whether this process or the machine has too little of something (EMFILE, ENFILE, ENOMEM), whatever the call was applied to.
    package var isShortage: Bool { errno == EMFILE || errno == ENFILE || errno == ENOMEM }
}

/// Throws if a function failed that returns -errno; otherwise returns its result.
@discardableResult
package func check<Number: SignedInteger & FixedWidthInteger>(
    _ result: Number, _ call: @autoclosure () -> String, _ path: @autoclosure () -> String? = nil
) throws(SystemError) -> Number {
    if result < 0 { throw SystemError(call: call(), errno: Int32(truncatingIfNeeded: -result), path: path()) }
    return result
}

/// Throws if a libc function failed that returns -1 and sets errno; otherwise returns its result. Nothing may change errno
/// between the function and this call.
@discardableResult
package func checkErrno<Number: SignedInteger & FixedWidthInteger>(
    _ result: Number, _ call: @autoclosure () -> String, _ path: @autoclosure () -> String? = nil
) throws(SystemError) -> Number {
    let number = errno
    if result < 0 { throw SystemError(call: call(), errno: number, path: path()) }
    return result
}

/// Repeats a call while a signal interrupts it (EINTR).
package func retryInterrupted(_ call: () -> Int) -> Int {
    while true {
        let result = call()
        if result >= 0 || errno != EINTR { return result }
    }
}

extension String {
    /// Throws EINVAL if the text contains a NUL: C would cut it off there and use another file.
    package func refuseNul(_ call: String) throws(SystemError) {
        if utf8.contains(0) { throw SystemError(call: call, errno: EINVAL, path: self) }
    }
}
