import Linux
import Posix

/// What is read of devices: which files in /sys, and what they say. The files are read on a helper thread.
enum DeviceFolders {
    /// The most entries of a folder that are looked at.
    private static let mostEntries = 512

    /// A file of each entry of a folder whose name has this prefix.
    private struct Files {
        let subsystem: String
        let folder: String
        var prefix = ""
        let file: String
    }

    private static let supplies = Files(subsystem: "power_supply", folder: "class/power_supply", file: "uevent")
    private static let connectors = Files(subsystem: "drm", folder: "class/drm", file: "status")
    /// The subsystems whose devices apps may use, and which come and go. Of Bluetooth adapters (hci0) and connections (hci0:11) the name
    /// of the entry counts, as of a USB device that does not name itself.
    private static let accessories = [
        Files(subsystem: "input", folder: "class/input", prefix: "input", file: "name"),
        Files(subsystem: "sound", folder: "class/sound", prefix: "card", file: "id"),
        Files(subsystem: "video4linux", folder: "class/video4linux", prefix: "video", file: "name"),
        Files(subsystem: "usb", folder: "bus/usb/devices", file: "product"),
        Files(subsystem: "bluetooth", folder: "class/bluetooth", file: "uevent"),
    ]
    private static let byKind = ["battery": [supplies], "display": [connectors], "accessory": accessories]

    static let kinds = ["accessory", "battery", "display"]
    static let subsystems = Set(byKind.values.joined().map(\.subsystem))

    static func isConcerned(_ kind: String, by subsystems: Set<String>) -> Bool {
        byKind[kind]?.contains { subsystems.contains($0.subsystem) } ?? false
    }

    /// The files to read for a kind.
    static func files(_ kind: String, root: String) -> [String] {
        (byKind[kind] ?? []).flatMap { files in
            let folder = "\(root)/\(files.folder)"
            let entries = ((try? folderEntries(at: folder)) ?? []).sorted().filter { entry in
                // Interfaces of USB devices, and the hubs of the machine.
                if files.subsystem == "usb", entry.contains(":") || entry.hasPrefix("usb") { return false }
                return entry.hasPrefix(files.prefix)
            }
            return entries.prefix(mostEntries).map { "\(folder)/\($0)/\(files.file)" }
        }
    }

    /// - Parameters:
    ///   - paths: as `files` has found them.
    ///   - contents: those that could be read.
    static func payload(_ kind: String, _ paths: [String], _ contents: [String: [UInt8]], root: String) -> String {
        if kind == "battery" {
            return Readings.battery(paths.compactMap { contents[$0].flatMap { Readings.Supply(parsing: text($0)) } })
        }
        var lines: [String] = []
        for files in byKind[kind] ?? [] {
            let folder = "\(root)/\(files.folder)/"
            for path in paths where path.hasPrefix(folder) {
                let entry = String(path.dropFirst(folder.count).prefix { $0 != "/" })
                if let line = line(files.subsystem, entry, contents[path]) { lines.append(line) }
            }
        }
        return Readings.list(lines)
    }

    private static func line(_ subsystem: String, _ entry: String, _ content: [UInt8]?) -> String? {
        let name = Readings.name(entry.utf8)
        switch subsystem {
        case "drm":
            guard let content, let name, let status = text(content).split(separator: "\n").first,
                ["connected", "disconnected", "unknown"].contains(status)
            else { return nil }
            return "\(name) \(status)"
        case "bluetooth": return name.map { "bluetooth \($0)" }
        case "usb": return (content.flatMap { Readings.name($0) } ?? name).map { "usb \($0)" }
        default: return content.flatMap { Readings.name($0) }.map { "\(subsystem) \($0)" }
        }
    }

    private static func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
}
