/// The addresses of the system bus and of the user's bus, as sd-bus finds them (sd_bus_default(3)).
package enum BusAddress {
    /// Returns the address of the system bus.
    /// - Parameter environment: looks up a variable.
    package static func system(environment: (String) -> String?) -> String {
        environment("DBUS_SYSTEM_BUS_ADDRESS") ?? "unix:path=/run/dbus/system_bus_socket"
    }

    /// Returns the address of the user's bus; `nil` if no variable names it.
    package static func user(environment: (String) -> String?) -> String? {
        if let address = environment("DBUS_SESSION_BUS_ADDRESS") { return address }
        return environment("XDG_RUNTIME_DIR").map { unix(path: $0 + "/bus") }
    }

    /// Returns the address of a socket. Bytes with a meaning in addresses are escaped (D-Bus specification, "Server
    /// Addresses").
    package static func unix(path: String) -> String {
        var text = "unix:path="
        for byte in path.utf8 {
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "/"),
                UInt8(ascii: "."), UInt8(ascii: "\\"), UInt8(ascii: "*"):
                text.unicodeScalars.append(Unicode.Scalar(byte))
            default: text += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
            }
        }
        return text
    }

    /// Returns the path of an address `unix:path=…`; `nil`: it is another one.
    package static func path(ofUnix address: String) -> String? {
        let prefix = "unix:path="
        guard address.hasPrefix(prefix) else { return nil }
        var bytes: [UInt8] = []
        var rest = Array(address.utf8.dropFirst(prefix.utf8.count))[...]
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: ","), UInt8(ascii: ";"): return nil
            case UInt8(ascii: "%"):
                let digits = rest.prefix(2)
                guard digits.count == 2, let value = UInt8(String(decoding: digits, as: UTF8.self), radix: 16) else {
                    return nil
                }
                rest = rest.dropFirst(2)
                bytes.append(value)
            default: bytes.append(byte)
            }
        }
        return bytes.first == UInt8(ascii: "/") && !bytes.contains(0) ? String(decoding: bytes, as: UTF8.self) : nil
    }
}
