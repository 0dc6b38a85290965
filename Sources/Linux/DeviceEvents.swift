import CLinux
import Glibc
package import Posix

/// Messages about devices (netlink(7), NETLINK_KOBJECT_UEVENT). They only say that something has changed: what a device is like now
/// is read from /sys, so that a message that is lost, or wrong, harms nothing.
package enum DeviceEvents {
    /// Most messages have some hundred bytes; the kernel's have at most 2 KiB (UEVENT_BUFFER_SIZE), udev's 8 KiB.
    private static let longest = 8192
    /// The most messages of one `read`.
    private static let mostMessages = 64

    /// - Parameter control: exists while udev runs. Its messages come when the nodes of a device have their permissions. Without
    ///   udev, as in most containers, the kernel's have to do.
    package static func open(control: String = "/run/udev/control") throws(SystemError) -> SharedDescriptor {
        let ofUdev = access(control, F_OK) == 0
        return SharedDescriptor(
            Descriptor(adopting: try check(clinux_uevent_socket(ofUdev), "socket", "NETLINK_KOBJECT_UEVENT")))
    }

    /// Reads messages that wait.
    /// - Returns: the subsystems of the devices; `nil`: some may have been lost.
    package static func read(_ descriptor: SharedDescriptor) -> Set<String>? {
        var subsystems: Set<String> = []
        var buffer = [UInt8](repeating: 0, count: longest)
        for _ in 0..<mostMessages {
            let count = retryInterrupted { recv(descriptor.raw, &buffer, buffer.count, Int32(MSG_DONTWAIT)) }
            if count < 0 { return errno == EAGAIN ? subsystems : nil }
            if count == 0 { return subsystems }
            if let subsystem = subsystem(of: buffer[..<count]) { subsystems.insert(subsystem) }
        }
        return subsystems
    }

    /// The subsystem of the device that a message is about: `ACTION@PATH` and `KEY=VALUE`, each with a NUL, from the kernel; a header
    /// and the same keys from udev.
    package static func subsystem(of message: ArraySlice<UInt8>) -> String? {
        var properties = message
        if message.starts(with: Array("libudev\0".utf8)) {
            // The position of the properties is the 32-bit number after the prefix, a mark and the size of the header.
            let start = message.startIndex
            guard message.count >= 20 else { return nil }
            let offset = message[(start + 16)..<(start + 20)].withUnsafeBytes { $0.loadUnaligned(as: UInt32.self) }
            guard offset <= UInt32(message.count) else { return nil }
            properties = message[(start + Int(offset))...]
        }
        let key = Array("SUBSYSTEM=".utf8)
        guard let property = properties.split(separator: 0).first(where: { $0.starts(with: key) }) else { return nil }
        return String(validating: property.dropFirst(key.count), as: UTF8.self)
    }
}
