/// What the app shows: a picture, or a text. It is shown while the app is not.
public struct Snapshot: Hashable, Sendable {
    /// The type of a snapshot for which nothing else is said.
    public static let png = "image/png"

    /// The contents, at most 8 MiB.
    public let bytes: [UInt8]
    /// The media type.
    public let type: String

    /// Makes a snapshot of a media type, for example `image/jpeg`.
    public init(_ bytes: some Sequence<UInt8>, type: String = Snapshot.png) {
        self.bytes = Array(bytes)
        self.type = type
    }

    /// Makes a snapshot that is a text.
    public init(text: some StringProtocol) { self.init(text.utf8, type: "text/plain") }
}
