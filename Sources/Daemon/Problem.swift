/// What could not be done, in a sentence for whoever asked for it.
package struct Problem: Error, Hashable, Sendable, CustomStringConvertible {
    package var sentence: String
    package init(_ sentence: String) { self.sentence = sentence }
    package var description: String { sentence }
}
