/// The ID of an app: a reverse-DNS or plain name, `[A-Za-z0-9_.-]{1,128}`, not starting with a dot. It also names the app's
/// manifest, folders and cgroup.
///
/// The ID of an instance of a template is `TEMPLATE@INSTANCE`, as in systemd.unit(5). The instance may also contain `:` and
/// `\`, which systemd-escape(1) uses; all together are at most 128 bytes.
package struct AppID: Hashable, Comparable, Sendable, CustomStringConvertible {
    package let name: String

    /// The longest name, in bytes.
    package static let maximumLength = 128

    /// `nil` if `name` is not a valid ID. The name of a template, `TEMPLATE@`, is none.
    package init?(_ name: String) {
        let bytes = name.utf8
        let prefix = bytes.prefix { $0 != Self.separator }
        guard let first = bytes.first, first != UInt8(ascii: "."), bytes.count <= Self.maximumLength,
            !prefix.isEmpty, prefix.allSatisfy(Self.isAllowed)
        else { return nil }
        if prefix.endIndex < bytes.endIndex {
            let instance = bytes[prefix.endIndex...].dropFirst()
            guard !instance.isEmpty, instance.allSatisfy(Self.isAllowedInInstance) else { return nil }
        }
        self.name = name
    }

    /// Between the name of a template and that of an instance.
    private static let separator = UInt8(ascii: "@")

    static func isAllowed(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "."), UInt8(ascii: "-"):
            true
        default: false
        }
    }

    private static func isAllowedInInstance(_ byte: UInt8) -> Bool {
        isAllowed(byte) || byte == UInt8(ascii: ":") || byte == UInt8(ascii: "\\")
    }

    /// Of an instance of a template: the name of the template without the `@`. Of another app: `nil`.
    package var template: String? {
        name.utf8.firstIndex(of: Self.separator).map { String(name[..<$0]) }
    }

    /// Of an instance of a template: its name behind the `@`, as it is written. Of another app: `nil`.
    package var instance: String? {
        name.utf8.firstIndex(of: Self.separator).map { String(name[name.utf8.index(after: $0)...]) }
    }

    package var description: String { name }
    package static func < (a: AppID, b: AppID) -> Bool { a.name < b.name }
}

/// One run of one app, from the launch to the end of its last process. A number is never used twice, so that a late report
/// about an earlier run is recognized.
package struct RunID: Hashable, Comparable, Sendable, CustomStringConvertible {
    package let number: UInt64
    package init(_ number: UInt64) { self.number = number }
    package var description: String { String(number) }
    package static func < (a: RunID, b: RunID) -> Bool { a.number < b.number }
}

/// One request of a client that waits for the answer.
package struct RequestID: Hashable, Sendable, CustomStringConvertible {
    package let number: UInt64
    package init(_ number: UInt64) { self.number = number }
    package var description: String { String(number) }
}
