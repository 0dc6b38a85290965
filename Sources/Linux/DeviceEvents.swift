import CLinux
import Glibc
package import Posix

/// Messages about devices (netlink(7), NETLINK_KOBJECT_UEVENT). For notifications they only say that something has changed: what a device is
/// like now is read from /sys, so that a message that is lost, or wrong, harms nothing. Only programs with CAP_NET_ADMIN can send them.
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
        let isComplete = read(descriptor) { message in
            if let subsystem = subsystem(of: message) { subsystems.insert(subsystem) }
        }
        return isComplete ? subsystems : nil
    }

    /// Reads messages that wait.
    /// - Parameter found: gets the properties of each device that was added.
    /// - Returns: `false`: some messages may have been lost.
    package static func readAdded(_ descriptor: SharedDescriptor, found: ([String: String]) -> Void) -> Bool {
        let added = Array("ACTION=add".utf8)
        return read(descriptor) { message in
            let lines = lines(of: message)
            guard lines.contains(where: { $0.elementsEqual(added) }) else { return }
            let pairs = lines.compactMap { line -> (String, String)? in
                guard let sign = line.firstIndex(of: UInt8(ascii: "=")),
                    let name = String(validating: line[..<sign], as: UTF8.self),
                    let value = String(validating: line[(sign + 1)...], as: UTF8.self)
                else { return nil }
                return (name, value)
            }
            found(Dictionary(pairs) { first, _ in first })
        }
    }

    /// - Returns: `false`: some messages may have been lost.
    private static func read(_ descriptor: SharedDescriptor, _ handle: (ArraySlice<UInt8>) -> Void) -> Bool {
        var buffer = [UInt8](repeating: 0, count: longest)
        for _ in 0..<mostMessages {
            let count = retryInterrupted { recv(descriptor.raw, &buffer, buffer.count, Int32(MSG_DONTWAIT)) }
            if count < 0 { return errno == EAGAIN }
            if count == 0 { return true }
            handle(buffer[..<count])
        }
        return true
    }

    /// The subsystem of the device that a message is about.
    package static func subsystem(of message: ArraySlice<UInt8>) -> String? {
        let key = Array("SUBSYSTEM=".utf8)
        guard let property = lines(of: message).first(where: { $0.starts(with: key) }) else { return nil }
        return String(validating: property.dropFirst(key.count), as: UTF8.self)
    }

    /// The lines of a message: `ACTION@PATH` and `KEY=VALUE`, each with a NUL, from the kernel; a header and the same keys from udev.
    private static func lines(of message: ArraySlice<UInt8>) -> [ArraySlice<UInt8>] {
        guard message.starts(with: Array("libudev\0".utf8)) else { return message.split(separator: 0) }
        // The position of the properties is the 32-bit number after the prefix, a mark and the size of the header.
        let start = message.startIndex
        guard message.count >= 20 else { return [] }
        let offset = message[(start + 16)..<(start + 20)].withUnsafeBytes { $0.loadUnaligned(as: UInt32.self) }
        guard offset <= UInt32(message.count) else { return [] }
        return message[(start + Int(offset))...].split(separator: 0)
    }
}
