import Testing

@testable import LifecycleCore

@Suite("Values that take space once they differ from the default one")
struct OnDemandTests {
    private struct Counts: Defaulted, Hashable {
        var first = 1
        var names: [String] = []
    }

    private struct Owner: Hashable {
        @OnDemand var counts = Counts()
    }

    @Test("a copy keeps its value when the other one is changed")
    func copies() {
        var one = Owner()
        one.counts.first = 2
        var other = one
        other.counts.names.append("a")
        #expect(one.counts == Counts(first: 2) && other.counts == Counts(first: 2, names: ["a"]))
        #expect(one != other)
    }

    @Test("a value that is the default one again is equal to one that was never changed")
    func reset() {
        var one = Owner()
        #expect(one.counts == Counts())
        one.counts.names.append("a")
        #expect(one != Owner())
        one.counts.names = []
        #expect(one == Owner() && one.hashValue == Owner().hashValue)
        one.counts = Counts(first: 3)
        one.counts = Counts()
        #expect(one == Owner())
    }

    @Test("the value takes no more than a reference")
    func size() { #expect(MemoryLayout<Owner>.size == MemoryLayout<AnyObject>.size) }
}
