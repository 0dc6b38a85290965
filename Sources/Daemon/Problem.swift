/// What could not be done, in a sentence for whoever asked for it.
struct Problem: Error, Hashable, Sendable, CustomStringConvertible {
    var sentence: String
    init(_ sentence: String) { self.sentence = sentence }
    var description: String { sentence }
}
