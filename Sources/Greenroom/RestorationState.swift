/// What the app has saved for its next process: bytes, or a text.
///
/// The form is the app's own: a text, JSON, a property list. At most 1 MiB is kept.
public struct RestorationState: Sendable, Hashable {
    /// The content.
    public let bytes: [UInt8]

    /// Makes a state of bytes.
    public init(bytes: some Sequence<UInt8>) { self.bytes = Array(bytes) }

    /// Makes a state of a text, in UTF-8.
    public init(_ text: some StringProtocol) { bytes = Array(text.utf8) }

    /// The content as a text; `nil` if it is not UTF-8.
    public var text: String? { String(validating: bytes, as: UTF8.self) }
}
