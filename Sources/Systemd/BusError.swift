import CSystemd
import Glibc
import Posix

/// A D-Bus error: its name, and a sentence for people.
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
    /// The standard names (org.freedesktop.DBus, "Standard errors").
    package static func failed(_ message: String) -> BusError { BusError("org.freedesktop.DBus.Error.Failed", message) }
    package static func accessDenied(_ message: String) -> BusError {
        BusError("org.freedesktop.DBus.Error.AccessDenied", message)
    }
    package static func invalidArguments(_ message: String) -> BusError {
        BusError("org.freedesktop.DBus.Error.InvalidArgs", message)
    }
    /// Nobody listens at the address.
    package static func noServer(_ message: String) -> BusError {
        BusError("org.freedesktop.DBus.Error.NoServer", message)
    }
    /// The other side is gone.
    package static func disconnected(_ message: String) -> BusError {
        BusError("org.freedesktop.DBus.Error.Disconnected", message)
    }
    /// No answer in time, or none at all.
    package static func noReply(_ message: String) -> BusError {
        BusError("org.freedesktop.DBus.Error.NoReply", message)
    }
    package var isOfAccessDenied: Bool { name == "org.freedesktop.DBus.Error.AccessDenied" }
    package var isOfNoServer: Bool { name == "org.freedesktop.DBus.Error.NoServer" }
    /// Of a connection that the other side ended, or let wait for too long.
    package var isOfLostConnection: Bool {
        name == "org.freedesktop.DBus.Error.Disconnected" || name == "org.freedesktop.DBus.Error.NoReply"
    }
    static func limit(_ what: String) -> BusError {
        BusError("org.freedesktop.DBus.Error.LimitsExceeded", "The message was refused: \(what).")
    }
    static func invalid(_ what: String) -> BusError {
        BusError("org.freedesktop.DBus.Error.InvalidArgs", "The message was refused: \(what).")
    }

    /// Passes a libsystemd result on; a negative one throws, with the errno's own words behind `what`, which is
    /// put together only then: a long answer has ten thousands of values.
    @discardableResult
    static func check(_ result: Int32, _ what: @autoclosure () -> String) throws(BusError) -> Int32 {
        guard result < 0 else { return result }
        throw BusError(name(ofErrno: -result), "\(what()): \(SystemError.text(of: -result))")
    }

    /// libsystemd's error name for an errno: its own table knows which are standard D-Bus errors.
    private static func name(ofErrno code: Int32) -> String {
        var error = sd_bus_error()
        sd_bus_error_set_errno(&error, code)
        defer { sd_bus_error_free(&error) }
        return error.name.map { String(cString: $0) } ?? "org.freedesktop.DBus.Error.Failed"
    }

    /// A copy of libsystemd's structure; `nil` when no error is set in it.
    init?(_ error: UnsafePointer<sd_bus_error>?) {
        guard let error, let name = error.pointee.name else { return nil }
        self.name = String(cString: name)
        message = error.pointee.message.map { String(cString: $0) } ?? self.name
    }

    /// Hands the error to libsystemd, which copies it, and returns what a callback of its must return.
    func set(_ error: UnsafeMutablePointer<sd_bus_error>?) -> Int32 {
        sd_bus_error_set(error, name, message)
    }
}
