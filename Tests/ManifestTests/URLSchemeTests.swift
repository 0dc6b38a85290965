import Testing

@testable import Manifest

@Suite("URLSchemes=")
struct URLSchemeTests {
    @Test("URLSchemes= takes schemes as RFC 3986 defines them, in any case, and an empty value removes them (L8)")
    func schemes() throws {
        #expect(
            try accepted("App", "URLSchemes=mailto X-Photos", "URLSchemes=git+ssh").urlSchemes
                == ["mailto", "x-photos", "git+ssh"])
        #expect(try accepted("App", "URLSchemes=mailto", "URLSchemes=").urlSchemes == [])
        for text in ["1st", "mail:", "über", "a/b", "-a", String(repeating: "a", count: 65)] {
            try expectRefused("App", "URLSchemes", text)
        }
        let most = (0..<64).map { "a\($0)" }
        #expect(try accepted("App", "URLSchemes=" + most.joined(separator: " ")).urlSchemes == most)
        let tooMany = most.joined(separator: " ") + " b"
        try expectRefused("App", "URLSchemes", tooMany, at: tooMany.utf8.count - 1)
    }

    @Test("the scheme of a URL is what is before its first colon")
    func urls() {
        #expect(URLScheme.of("MailTo:me@example.org") == "mailto")
        #expect(URLScheme.of("photos://album/1:2") == "photos")
        for url in ["album", ":x", "/a:b", "1:2"] { #expect(URLScheme.of(url) == nil, "\(url)") }
    }
}
