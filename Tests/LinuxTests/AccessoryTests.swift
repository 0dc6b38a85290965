import Glibc
import Posix
import TestKit
import Testing

@testable import Linux

/// Which open descriptors are accessories (L28), of a process of the test, with a made-up /sys.
@Suite("Open accessories")
struct AccessoryTests {
    private let scratch: Scratch

    init() throws { scratch = try Scratch() }

    /// Makes /dev/full, which every machine has, a device of the kernel's `subsystem`, in a folder of its own.
    /// - Returns: whether it is an accessory then.
    private func isAccessory(_ subsystem: String?, name: String = "device0", of bus: String? = nil) throws -> Bool {
        let sys = "\(scratch.path)/\(subsystem ?? "none")-\(name)-\(bus ?? "")"
        let device = "\(sys)/devices/\(name)"
        try createDirectories(at: sys + "/dev/char")
        try createDirectories(at: device)
        #expect(symlink("../../devices/\(name)", sys + "/dev/char/1:7") == 0)
        if let subsystem { #expect(symlink("../../class/\(subsystem)", device + "/subsystem") == 0) }
        if let bus {
            try createDirectories(at: device + "/device")
            #expect(symlink("../../../bus/\(bus)", device + "/device/subsystem") == 0)
        }
        let file = try Descriptor.open("/dev/full", O_RDONLY)
        return try withExtendedLifetime(file) { try isFound(sys) }
    }

    private func isFound(_ sys: String) throws -> Bool {
        let search = AccessorySearch(ProcFS(), [getpid()], AccessoryCheck(sys: sys))
        while try search.advance() {}
        return search.isFound
    }

    @Test("the kernel's subsystem of an open device decides whether it is an accessory (L28)")
    func subsystems() throws {
        for subsystem in ["hidraw", "input", "usb", "usbmisc"] {
            #expect(try isAccessory(subsystem), "\(subsystem)")
        }
        for subsystem in [nil, "mem", "misc", "drm", "video4linux"] {
            #expect(try !isAccessory(subsystem), "\(subsystem ?? "none")")
        }
        #expect(try isAccessory("sound", name: "midiC1D0"))
        #expect(try !isAccessory("sound", name: "pcmC1D0p"))
        #expect(try isAccessory("tty", name: "ttyACM0", of: "usb"))
        #expect(try isAccessory("tty", name: "ttyUSB0", of: "usb-serial"))
        #expect(try isAccessory("tty", name: "rfcomm0"))
        #expect(try !isAccessory("tty", name: "ttyS0", of: "pnp"))
        #expect(try !isAccessory("tty", name: "tty1"))
        #expect(try !isFound("\(scratch.path)/nothing"))
    }

    @Test("the kernel names the protocol of a socket, and a process that has ended has no accessory (L28)")
    func others() throws {
        var ends: [Int32] = [0, 0]
        #expect(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
        defer { for end in ends { close(end) } }
        let path = "/proc/self/fd/\(ends[0])"
        #expect(!AccessoryCheck().isAccessory(path, Array("socket:[1]".utf8)[...]))
        let bluetooth = socket(31, Int32(SOCK_RAW.rawValue), 1)
        if bluetooth >= 0 {
            #expect(AccessoryCheck().isAccessory("/proc/self/fd/\(bluetooth)", Array("socket:[2]".utf8)[...]))
            close(bluetooth)
        }
        let gone = AccessorySearch(ProcFS(root: scratch.path), [7])
        while try gone.advance() {}
        #expect(!gone.isFound)
    }
}
