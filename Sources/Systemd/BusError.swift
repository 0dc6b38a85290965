import CSystemd
import Glibc
import Posix

/// A D-Bus error: its name and a sentence.
package struct BusError: Error, Equatable, CustomStringConvertible {
    package let name: String
    package let message: String

    package init(_ name: String, _ message: String) {
        self.name = name
        self.message = message
    }

    package var description: String { "\(message) (\(name))" }
}

extension BusError {
    /// org.freedesktop.DBus.Error.Failed.
    package static func failed(_ message: String) -> BusError { BusError("org.freedesktop.DBus.Error.Failed", message) }
    package static func accessDenied(_ message: String) -> BusError {
        BusError("org.freedesktop.DBus.Error.AccessDenied", message)
    }
    /// No server listens at the address.
    package static func noServer(_ message: String) -> BusError {
        BusError("org.freedesktop.DBus.Error.NoServer", message)
    }
    /// The connection has ended.
    package static func disconnected(_ message: String) -> BusError {
        BusError("org.freedesktop.DBus.Error.Disconnected", message)
    }
    /// No answer, or none within the timeout.
    package static func noReply(_ message: String) -> BusError {
        BusError("org.freedesktop.DBus.Error.NoReply", message)
    }
    package var isOfAccessDenied: Bool { name == "org.freedesktop.DBus.Error.AccessDenied" }
    package var isOfNoServer: Bool { name == "org.freedesktop.DBus.Error.NoServer" }
    /// Whether the other side has ended the connection or has not answered in time.
    package var isOfLostConnection: Bool {
        name == "org.freedesktop.DBus.Error.Disconnected" || name == "org.freedesktop.DBus.Error.NoReply"
    }
    static func limit(_ what: String) -> BusError {
        BusError("org.freedesktop.DBus.Error.LimitsExceeded", "The message was refused: \(what).")
    }
    /// The D-Bus daemon answers with this name, too.
    static let descriptors = BusError(
        "org.freedesktop.DBus.Error.NotSupported",
        "The message has file descriptors, which no method takes here.")
    static func invalid(_ what: String) -> BusError {
        BusError("org.freedesktop.DBus.Error.InvalidArgs", "The message was refused: \(what).")
    }

    /// Returns the result of a libsystemd function, or throws `what` with the text of the errno if it is negative. `what` is
    /// evaluated only then: a long message has tens of thousands of values.
    @discardableResult
    static func check(_ result: Int32, _ what: @autoclosure () -> String) throws(BusError) -> Int32 {
        guard result < 0 else { return result }
        throw BusError(name(ofErrno: -result), "\(what()): \(SystemError.text(of: -result))")
    }

    /// Returns libsystemd's error name for an errno.
    private static func name(ofErrno code: Int32) -> String {
        var error = sd_bus_error()
        sd_bus_error_set_errno(&error, code)
        defer { sd_bus_error_free(&error) }
        return error.name.map { String(cString: $0) } ?? "org.freedesktop.DBus.Error.Failed"
    }

    /// Copies libsystemd's structure; `nil` if no error is set in it.
    init?(_ error: UnsafePointer<sd_bus_error>?) {
        guard let error, let name = error.pointee.name else { return nil }
        self.name = String(cString: name)
        message = error.pointee.message.map { String(cString: $0) } ?? self.name
    }

    /// Copies the error into libsystemd's structure and returns the result of the callback.
    func set(_ error: UnsafeMutablePointer<sd_bus_error>?) -> Int32 {
        sd_bus_error_set(error, name, message)
    }
}
