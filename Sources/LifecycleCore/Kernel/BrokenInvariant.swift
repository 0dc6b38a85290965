/// An invariant that did not hold: a fault of the core, whatever came from outside.
package struct BrokenInvariant: Hashable, Sendable, CustomStringConvertible {
    /// The app whose state it is about; `nil`: the state of all.
    package let app: AppID?
    /// What is wrong, without the name of the app.
    package let sentence: String
    /// Where it was checked: `MODULE/FILE:LINE`.
    package let location: String

    package var description: String { "\(app.map { "\($0): " } ?? "")\(sentence) (\(location))" }
}

/// What became of the invariants of a core. No part of its value.
struct InvariantLog: Sendable {
    /// The first one that did not hold at each location.
    private(set) var broken: [BrokenInvariant] = []
    /// Tests and debug builds continue after a broken invariant.
    var continues = false
    /// Each app that an event concerned is checked after it. It takes an eighth of the time of an event, which a released daemon saves.
    var checksApps = _isDebugAssertConfiguration()

    @inline(never)
    mutating func add(_ one: BrokenInvariant, _ file: StaticString, _ line: UInt) {
        if !continues { assertionFailure(one.description, file: file, line: line) }
        if broken.contains(where: { $0.location == one.location && $0.sentence == one.sentence }) { return }
        broken.append(one)
    }
}
