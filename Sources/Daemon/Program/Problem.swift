/// A failure, as a sentence for the user.
struct Problem: Error, Hashable, Sendable, CustomStringConvertible {
    var sentence: String
    init(_ sentence: String) { self.sentence = sentence }
    var description: String { sentence }
}
