import Testing

@testable import Manifest

@Suite("WakeOnDevice=")
struct DeviceSettingTests {
    @Test(
        "WakeOnDevice= names a subsystem and properties, several settings add to each other, and an empty one removes all (L30)"
    )
    func devices() throws {
        let lines = [
            "WakeOnDevice=usb input:ID_INPUT_JOYSTICK=1,ID_BUS=usb", #"WakeOnDevice="block:ID_FS_LABEL=%p disk""#,
        ]
        let devices = try accepted("Wake", lines[0], lines[1]).wakeDevices
        #expect(devices.map(\.subsystem) == ["usb", "input", "block"])
        #expect(devices[1].properties.map(\.name) == ["ID_INPUT_JOYSTICK", "ID_BUS"])
        #expect(devices[2].properties.map(\.value) == ["a disk"])
        #expect(try accepted("Wake", lines[0], "WakeOnDevice=").wakeDevices == [])
    }

    @Test("a device has to have the subsystem and all properties (L30)")
    func matching() throws {
        let stick = try #require(DeviceMatch("input:ID_INPUT_JOYSTICK=1,ID_PATH=pci-0000:00:14.0-usb"))
        let device = ["SUBSYSTEM": "input", "ID_INPUT_JOYSTICK": "1", "ID_PATH": "pci-0000:00:14.0-usb", "X": "y"]
        #expect(stick.matches(device))
        for name in ["SUBSYSTEM", "ID_INPUT_JOYSTICK", "ID_PATH"] {
            #expect(!stick.matches(device.filter { $0.key != name }))
            #expect(!stick.matches(device.merging([name: "0"]) { $1 }))
        }
        #expect(DeviceMatch("usb")?.matches(["SUBSYSTEM": "usb"]) == true)
        #expect(DeviceMatch("usb")?.matches([:]) == false)
    }

    @Test("what is no device, and one too many, is refused with a sentence (L30)")
    func refused() throws {
        let long = "usb:A=" + String(repeating: "a", count: 251)
        let properties = "usb:" + (1...9).map { "A\($0)=1" }.joined(separator: ",")
        for value in [
            "", ":A=1", "usb:", "usb:A", "usb:A=", "usb:a=1", "usb:1A=1", "usb:A=1,", "u/b", "usb:A=\u{9b}", long,
            properties,
        ] {
            #expect(DeviceMatch(value) == nil, "\(value)")
            if !value.isEmpty { try expectRefused("Wake", "WakeOnDevice", value, DeviceMatch.expected) }
        }
        #expect(DeviceMatch(String(long.dropLast())) != nil)
        let many = (1...17).map { "usb:A=\($0)" }.joined(separator: " ")
        try expectRefused("Wake", "WakeOnDevice", many, at: many.utf8.count - 8, "more than 16 devices")
    }
}
