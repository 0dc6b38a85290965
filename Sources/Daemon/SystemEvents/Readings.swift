import Posix
import Systemd

/// What sources have read, as payloads of notifications. Pure functions; what a source may not say gives `nil`, and is ignored.
enum Readings {
    /// The longest name of a device, a locale or a time zone, in bytes.
    static let longestName = 64
    /// The most lines of a payload, so that it has at most `Notification.maximumPayload` bytes.
    static let mostLines = 48

    // MARK: Battery

    /// `80 discharging`.
    static func battery(percent: Int, state: String) -> String { "\(max(0, min(100, percent))) \(state)" }

    /// The object `DisplayDevice` of UPower (org.freedesktop.UPower.Device).
    static func battery(_ properties: [String: Variant]) -> String? {
        guard properties["IsPresent"]?.boolValue == true, case .double(let percent)? = properties["Percentage"],
            percent.isFinite, (0...100).contains(percent)
        else { return nil }
        let state =
            switch properties["State"]?.uintValue {
            case 1: "charging"
            case 2, 3: "discharging"
            case 4: "full"
            case 5, 6: "idle"
            default: "unknown"
            }
        return battery(percent: Int(percent.rounded()), state: state)
    }

    /// The file `uevent` of one entry of /sys/class/power_supply.
    struct Supply: Equatable {
        var percent: Int
        var state: String

        /// `nil`: it is no battery of the machine: mains, or the battery of a mouse.
        init?(parsing text: String) {
            var values: [Substring: Substring] = [:]
            for line in text.split(separator: "\n") {
                let parts = line.split(separator: "=", maxSplits: 1)
                if parts.count == 2, parts[0].hasPrefix("POWER_SUPPLY_") { values[parts[0].dropFirst(13)] = parts[1] }
            }
            guard values["TYPE"] == "Battery", values["SCOPE"] != "Device", values["PRESENT"] != "0" else { return nil }
            func number(_ key: Substring) -> Int? { values[key].flatMap { Int($0) } }
            let share = [("ENERGY_NOW", "ENERGY_FULL"), ("CHARGE_NOW", "CHARGE_FULL")].lazy.compactMap { now, full in
                guard let now = number(Substring(now)), let full = number(Substring(full)), full > 0, now >= 0,
                    now < Int.max / 200
                else { return Optional<Int>.none }
                return (now * 200 / full + 1) / 2
            }.first
            guard let percent = number("CAPACITY") ?? share else { return nil }
            self.percent = max(0, min(100, percent))
            state =
                switch values["STATUS"] {
                case "Charging": "charging"
                case "Discharging": "discharging"
                case "Full": "full"
                case "Not charging": "idle"
                default: "unknown"
                }
        }
    }

    /// All batteries of the machine together; without one `none`.
    static func battery(_ supplies: [Supply]) -> String {
        guard !supplies.isEmpty else { return "none" }
        let percent = supplies.reduce(0) { $0 + $1.percent } / supplies.count
        let states = Set(supplies.map(\.state))
        let state = ["discharging", "charging", "idle", "full"].first(where: states.contains) ?? "unknown"
        return battery(percent: percent, state: state)
    }

    // MARK: Sensors

    /// net.hadess.SensorProxy
    static func orientation(_ properties: [String: Variant]) -> String? {
        let known = ["normal", "bottom-up", "left-up", "right-up"]
        return properties["AccelerometerOrientation"]?.stringValue.flatMap { known.contains($0) ? $0 : nil }
    }

    static func proximity(_ properties: [String: Variant]) -> String? {
        properties["ProximityNear"]?.boolValue.map { $0 ? "near" : "far" }
    }

    // MARK: Files

    /// The variables of locale.conf(5) that programs have in their environment, as `LANG=de_DE.UTF-8 LC_TIME=C`, in the order of
    /// their names; without any `LANG=C`.
    static func locale(parsing text: String) -> String {
        var values: [String: String] = [:]
        for line in text.split(whereSeparator: \.isNewline) {
            let parts = line.split(separator: "=", maxSplits: 1)
            guard parts.count == 2, values.count < 16 else { continue }
            let name = String(parts[0].drop { $0 == " " || $0 == "\t" })
            guard name == "LANG" || name == "LANGUAGE" || name.hasPrefix("LC_"), isName(name) else { continue }
            let value = parts[1].filter { !"\"' \t".contains($0) }
            if isName(value) { values[name] = value }
        }
        if values.isEmpty { return "LANG=C" }
        return values.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }.joined(separator: " ")
    }

    /// The name of a time zone, from the target of /etc/localtime; `nil`: it is not a link to one.
    static func timeZone(link: String) -> String? {
        guard let range = link.firstRange(of: "zoneinfo/") else { return nil }
        let name = String(link[range.upperBound...])
        return isName(name) ? name : nil
    }

    /// Letters, digits and what else locales and zones have in their names.
    private static func isName(_ text: String) -> Bool {
        (1...longestName).contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"):
                    true
                default: "_-+.@:/".utf8.contains(byte)
                }
            }
    }

    // MARK: Devices

    /// One line for each device, in order; without one `none`. Equal lines are devices of the same name.
    static func list(_ lines: [String]) -> String {
        if lines.isEmpty { return "none" }
        let shown = lines.sorted().prefix(mostLines).joined(separator: "\n")
        return lines.count > mostLines ? shown + "\nand \(lines.count - mostLines) more" : shown
    }

    /// A name that a device gives itself: on one line, without control characters.
    static func name(_ bytes: some Collection<UInt8>) -> String? {
        let text = String(decoding: bytes.prefix(longestName), as: UTF8.self).split(whereSeparator: \.isNewline).first
        let name = String(text ?? "").printable(upTo: longestName)
        return name.isEmpty ? nil : name
    }
}
