package import LifecycleCore

/// The schemes of URLs (RFC 3986).
package enum URLScheme {
    /// The longest one, in bytes. The longest that IANA has registered has 36.
    static let maximumLength = 64
    /// The most schemes of an app.
    static let maximumCount = 64

    /// The scheme in lower case, which is the same one; `nil`: it is none.
    package static func normalized(_ text: some StringProtocol) -> String? {
        guard let first = text.utf8.first, isLetter(first), text.utf8.count <= maximumLength,
            text.utf8.allSatisfy(isAllowed)
        else { return nil }
        return text.lowercased()
    }

    /// The scheme of a URL, in lower case; `nil`: it has none.
    package static func of(_ url: String) -> String? {
        url.utf8.firstIndex(of: UInt8(ascii: ":")).flatMap { normalized(url[..<$0]) }
    }

    private static func isLetter(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"): true
        default: false
        }
    }

    private static func isAllowed(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."): true
        default: isLetter(byte)
        }
    }
}

extension AppManifest {
    static func urlSchemes(_ specifiers: Specifiers) -> Setting<AppManifest> {
        .list(
            "App", "URLSchemes", "schemes of URLs such as mailto", \.urlSchemes, maximum: URLScheme.maximumCount,
            specifiers
        ) { URLScheme.normalized($0) }
    }
}

/// An entry of `DefaultHandlers=`: the app that opens the URLs of a scheme.
package struct DefaultHandler: Hashable, Sendable {
    /// The most entries.
    static let maximumCount = 1000

    /// In lower case.
    package let scheme: String
    package let app: AppID

    /// - Parameter text: `SCHEME:APP`.
    init?(_ text: String) {
        guard let scheme = URLScheme.of(text), let app = AppID(String(text.dropFirst(scheme.utf8.count + 1))) else {
            return nil
        }
        (self.scheme, self.app) = (scheme, app)
    }
}
