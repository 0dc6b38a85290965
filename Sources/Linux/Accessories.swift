import CLinux
import Glibc
package import Posix

/// Which open descriptors are accessories (L28): devices that are attached to the machine and detached from it again. The kernel's
/// subsystem of a device decides, whatever the name of its node.
struct AccessoryCheck {
    /// Every device of these: game controllers, keyboards and sensors, and what a program uses without a driver of the kernel.
    private static let subsystems: Set<String> = ["hidraw", "input", "usb", "usbmisc"]
    /// What a serial port belongs to, if it is one of a cable or a radio. Those of the machine (ttyS0) are consoles, too.
    private static let busesOfSerialPorts: Set<String> = ["bluetooth", "usb", "usb-serial"]
    /// Of sound, the raw MIDI ports: a program that plays or records is in another mode.
    private static let midiPorts = ["amidi", "dmmidi", "midi"]

    /// `/sys`; another folder in tests.
    var sys = "/sys"

    /// - Parameters:
    ///   - path: of the descriptor in /proc.
    ///   - target: what the link at the path says.
    func isAccessory(_ path: String, _ target: ArraySlice<UInt8>) -> Bool {
        if target.starts(with: "/dev/".utf8) { return isAccessoryNode(path) }
        return target.starts(with: "socket:".utf8) && clinux_is_bluetooth_socket(path)
    }

    private func isAccessoryNode(_ path: String) -> Bool {
        var (major, minor): (UInt32, UInt32) = (0, 0)
        guard clinux_character_device(path, &major, &minor) else { return false }
        // A device that was detached while it is open has no entry any more.
        let device = "\(sys)/dev/char/\(major):\(minor)"
        guard let subsystem = Self.lastName(device + "/subsystem") else { return false }
        switch subsystem {
        case "sound":
            let name = Self.lastName(device) ?? ""
            return Self.midiPorts.contains { name.hasPrefix($0) }
        case "tty":
            if Self.lastName(device)?.hasPrefix("rfcomm") ?? false { return true }
            return Self.lastName(device + "/device/subsystem").map(Self.busesOfSerialPorts.contains) ?? false
        default: return Self.subsystems.contains(subsystem)
        }
    }

    /// The last component of what a link names.
    private static func lastName(_ link: String) -> String? {
        linkTarget(link, limit: 1024)?.split(separator: UInt8(ascii: "/")).last?.text
    }
}

/// Searches for an accessory that processes have open, in pieces of some 100 µs.
package final class AccessorySearch {
    private let proc: ProcFS
    private let check: AccessoryCheck
    private var walk: DescriptorWalk
    /// Whether one was found.
    package private(set) var isFound = false

    init(_ proc: ProcFS, _ processes: [Int32], _ check: AccessoryCheck = AccessoryCheck()) {
        self.proc = proc
        self.check = check
        walk = DescriptorWalk(proc, processes)
    }

    /// Does the next piece.
    /// - Returns: whether there is more.
    package func advance() throws(SystemError) -> Bool {
        let hasMore = try walk.advance { item in
            isFound = isFound || check.isAccessory("\(proc.root)/\(item.pid)/fd/\(item.number)", item.target)
        }
        return hasMore && !isFound
    }
}

extension Enclosure {
    /// Begins to search for an accessory that processes of the app have open.
    package func accessorySearch() throws(SystemError) -> AccessorySearch { AccessorySearch(proc, try searchedPids()) }
}
