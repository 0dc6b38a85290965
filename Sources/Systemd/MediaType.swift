/// The media type of a snapshot: `image/png`, `text/plain`. Without parameters; text is UTF-8.
package enum MediaType {
    /// What a snapshot is if nothing else is said.
    package static let png = "image/png"
    /// Bytes. RFC 6838 allows 127 for each part; those that are registered have fewer than 90 in all.
    package static let maximumLength = 127
    package static let expected = "a media type such as image/jpeg, of at most \(maximumLength) bytes"

    /// Whether a text is `type/subtype`, with the characters of RFC 6838, section 4.2.
    package static func isValid(_ text: some StringProtocol) -> Bool {
        guard text.utf8.count <= maximumLength else { return false }
        let parts = Array(text.utf8).split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        return parts.count == 2 && isName(parts[0]) && isName(parts[1])
    }

    package static func isText(_ type: String) -> Bool { type.lowercased().hasPrefix("text/") }

    private static func isName(_ name: ArraySlice<UInt8>) -> Bool {
        name.first.map(isLetterOrDigit) ?? false
            && name.allSatisfy { isLetterOrDigit($0) || "!#$&-^_.+".utf8.contains($0) }
    }

    private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "a")...UInt8(ascii: "z"):
            true
        default: false
        }
    }
}
