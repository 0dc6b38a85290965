import LifecycleCore

/// A device that wakes an app when it is added, `WakeOnDevice=`: `SUBSYSTEM`, or `SUBSYSTEM:PROPERTY=VALUE` with more properties after
/// commas, as udev and the kernel name them (`udevadm info`).
package struct DeviceMatch: Hashable, Sendable {
    /// The most devices of one app, properties of one device, and its size in bytes.
    static let maximumDevices = 16
    static let maximumProperties = 8
    static let maximumSize = 256
    static let expected = "SUBSYSTEM or SUBSYSTEM:PROPERTY=VALUE,… such as usb or input:ID_INPUT_JOYSTICK=1"

    package struct Property: Hashable, Sendable {
        package let name: String
        package let value: String
    }

    package let subsystem: String
    package let properties: [Property]

    /// - Returns: `nil` if the text is invalid.
    package init?(_ text: String) {
        guard text.utf8.count <= Self.maximumSize,
            !text.unicodeScalars.contains(where: { $0.properties.generalCategory == .control })
        else { return nil }
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        subsystem = String(parts[0])
        guard !subsystem.isEmpty, subsystem.utf8.allSatisfy(Self.isSubsystemByte) else { return nil }
        guard parts.count == 2 else {
            properties = []
            return
        }
        let found = parts[1].split(separator: ",", omittingEmptySubsequences: false).map(Self.property)
        guard found.count <= Self.maximumProperties, !found.contains(nil) else { return nil }
        properties = found.compactMap { $0 }
    }

    private static func property(_ text: Substring) -> Property? {
        let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, let first = parts[0].utf8.first, !(UInt8(ascii: "0")...UInt8(ascii: "9") ~= first),
            parts[0].utf8.allSatisfy(isNameByte), !parts[1].isEmpty
        else { return nil }
        return Property(name: String(parts[0]), value: String(parts[1]))
    }

    private static func isSubsystemByte(_ byte: UInt8) -> Bool {
        isNameByte(byte) || UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte || byte == UInt8(ascii: "-")
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        UInt8(ascii: "A")...UInt8(ascii: "Z") ~= byte || UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte
            || byte == UInt8(ascii: "_")
    }

    /// Whether a device with these properties is meant; `SUBSYSTEM` is one of them.
    package func matches(_ device: [String: String]) -> Bool {
        device["SUBSYSTEM"] == subsystem && properties.allSatisfy { device[$0.name] == $0.value }
    }
}

extension AppManifest {
    static func deviceSettings(_ specifiers: Specifiers) -> [Setting<AppManifest>] {
        [
            Setting(section: "Wake", key: "WakeOnDevice", expected: DeviceMatch.expected) {
                manifest, text throws(ValueError) in
                for word in try splitWords(text) {
                    let written = try word.mapped(specifiers.expanded)
                    guard let device = DeviceMatch(written) else {
                        throw ValueError.invalid(written, offset: word.offset)
                    }
                    guard manifest.wakeDevices.count < DeviceMatch.maximumDevices else {
                        throw ValueError(
                            problem: "more than \(DeviceMatch.maximumDevices) devices", offset: word.offset)
                    }
                    manifest.wakeDevices.append(device)
                }
            } reset: { manifest, _ in
                manifest.wakeDevices = []
            }
        ]
    }
}
