/// A file with variables for an app (`EnvironmentFile=`, systemd.exec(5)). It is read at each launch.
package struct EnvironmentFile: Hashable, Sendable {
    /// A normalized absolute path.
    package var path: String
    /// `-` in front of the path: the file may be missing.
    package var isOptional: Bool

    /// The most bytes of a file: execve(2) accepts 2 MiB for arguments and environment, with the usual limit of the stack.
    package static let maximumSize = 1 << 20

    package init(path: String, isOptional: Bool) {
        self.path = path
        self.isOptional = isOptional
    }

    /// Reads the assignments, `NAME=value` each. What is none is ignored, as by systemd.
    package static func entries(_ bytes: [UInt8]) -> [String] {
        var reader = EnvironmentFileReader(rest: bytes[...])
        return reader.entries()
    }
}

/// The syntax is that of a shell without expansion (systemd.exec(5), "EnvironmentFile="): comments, quotes, and a backslash in front of
/// a line end or another character.
private struct EnvironmentFileReader {
    var rest: ArraySlice<UInt8>

    private static func isLineEnd(_ byte: UInt8) -> Bool { byte == 0x0a || byte == 0x0d }

    mutating func entries() -> [String] {
        var all: [String] = []
        while true {
            rest = rest.drop { isBlank($0) || Self.isLineEnd($0) }
            guard let first = rest.first else { return all }
            if first == UInt8(ascii: "#") || first == UInt8(ascii: ";") {
                rest = rest.drop { !Self.isLineEnd($0) }
                continue
            }
            let name = rest.prefix { $0 != UInt8(ascii: "=") && !Self.isLineEnd($0) }
            rest = rest[name.endIndex...]
            guard rest.first == UInt8(ascii: "=") else { continue }
            rest = rest.dropFirst()
            let entry = trimmed(name) + [UInt8(ascii: "=")] + value()
            guard let text = String(validating: entry, as: UTF8.self), !entry.contains(0), isEnvironmentEntry(text)
            else { continue }
            all.append(text)
        }
    }

    private mutating func value() -> [UInt8] {
        var value: [UInt8] = []
        // Where blanks at the end of a word without quotes begin.
        var end = 0
        // Within a word without quotes, quotes have no meaning.
        var isPlain = false
        rest = rest.drop(while: isBlank)
        while let byte = rest.popFirst(), !Self.isLineEnd(byte) {
            if !isPlain, byte == UInt8(ascii: "'") || byte == UInt8(ascii: "\"") {
                quoted(byte, into: &value)
                end = value.count
            } else if byte == UInt8(ascii: "\\") {
                guard let next = rest.popFirst() else { break }
                isPlain = true
                if Self.isLineEnd(next) { continue }
                value.append(next)
                end = value.count
            } else if isBlank(byte), !isPlain {
                continue
            } else {
                isPlain = true
                value.append(byte)
                if !isBlank(byte) { end = value.count }
            }
        }
        return Array(value[..<end])
    }

    private mutating func quoted(_ quote: UInt8, into value: inout [UInt8]) {
        let escaped = Array("\"\\`$".utf8)
        while let byte = rest.popFirst(), byte != quote {
            guard quote == UInt8(ascii: "\""), byte == UInt8(ascii: "\\"), let next = rest.first else {
                value.append(byte)
                continue
            }
            rest = rest.dropFirst()
            if Self.isLineEnd(next) { continue }
            if !escaped.contains(next) { value.append(byte) }
            value.append(next)
        }
    }
}
