import CLinux
import Glibc

/// A system call that failed in a way its caller did not expect.
package struct SystemError: Error, Equatable, CustomStringConvertible {
    /// As the manual calls it, perhaps with its operation: "open", "fcntl F_SETFL".
    package let call: String
    package let errno: Int32
    /// What it was called on.
    package let path: String?

    package init(call: String, errno: Int32, path: String? = nil) {
        self.call = call
        self.errno = errno
        self.path = path
    }

    /// "open /x: No such file or directory (ENOENT)"
    package var description: String {
        let subject = path.map { " " + $0.printable } ?? ""
        return "\(call)\(subject): \(SystemError.text(of: errno)) (\(SystemError.name(of: errno)))"
    }

    /// "ENOENT" for 2.
    package static func name(of errno: Int32) -> String {
        clinux_errno_name(errno).map { String(cString: $0) } ?? "errno \(errno)"
    }

    /// "No such file or directory" for 2.
    package static func text(of errno: Int32) -> String {
        clinux_errno_text(errno).map { String(cString: $0) } ?? "unknown error"
    }
}

/// Turns the -errno of a C function into an error.
@discardableResult
func check<Number: SignedInteger & FixedWidthInteger>(
    _ result: Number, _ call: @autoclosure () -> String, _ path: @autoclosure () -> String? = nil
) throws(SystemError) -> Number {
    if result < 0 { throw SystemError(call: call(), errno: Int32(truncatingIfNeeded: -result), path: path()) }
    return result
}

/// The same for libc's -1 with errno, which is read at once.
@discardableResult
func checkErrno<Number: SignedInteger & FixedWidthInteger>(
    _ result: Number, _ call: @autoclosure () -> String, _ path: @autoclosure () -> String? = nil
) throws(SystemError) -> Number {
    let number = errno
    if result < 0 { throw SystemError(call: call(), errno: number, path: path()) }
    return result
}

extension String {
    /// A path may hold any byte but must not be able to paint a terminal or break a log line.
    var printable: String {
        String(String.UnicodeScalarView(unicodeScalars.map { $0.value < 0x20 || $0.value == 0x7f ? "\u{FFFD}" : $0 }))
    }
}
