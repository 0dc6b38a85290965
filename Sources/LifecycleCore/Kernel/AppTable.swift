/// Which app of a core: a handle to its position in `AppTable`, and in everything that the core keeps by app. It stays the app's until the
/// app is removed; then another one may get it.
struct AppIndex: Hashable, Strideable, Sendable {
    let number: Int

    @inline(__always)
    init(_ number: Int) { self.number = number }

    func distance(to other: AppIndex) -> Int { other.number - number }
    func advanced(by distance: Int) -> AppIndex { AppIndex(number + distance) }
    static func < (a: AppIndex, b: AppIndex) -> Bool { a.number < b.number }
    static func == (a: AppIndex, b: AppIndex) -> Bool { a.number == b.number }
}

/// The apps of a core. The position of a removed one is free until another app gets it.
struct AppTable: Hashable, MutableCollection, RandomAccessCollection, Sendable {
    /// As they are saved.
    private(set) var all: [App] = []

    init(_ apps: [App] = []) { all = apps }

    @inline(__always)
    var startIndex: AppIndex { AppIndex(0) }
    @inline(__always)
    var endIndex: AppIndex { AppIndex(all.count) }

    subscript(index: AppIndex) -> App {
        @inline(__always) _read { yield all[index.number] }
        @inline(__always) _modify { yield &all[index.number] }
    }

    mutating func append(_ app: App) { all.append(app) }

    /// Lets an app have the policy of its neighbour in common, if both are equal.
    mutating func sharePolicy(_ index: AppIndex) {
        if index > startIndex { self[index].sharePolicy(with: self[self.index(before: index)]) }
    }
}
