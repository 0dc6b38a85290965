/// A value on the heap: what contains it is small to copy and to pass. It behaves like the value itself.
///
/// For large parts that are not read at each step: a method of a struct that does not change it gets a copy of all its fields.
@propertyWrapper
package struct Boxed<Value: Hashable & Sendable>: Hashable, Sendable {
    // Sendable, because a box that is shared is never changed. For the same reason overlapping accesses to it need no check at
    // run time: the compiler checks those to the structs that own it.
    private final class Box: @unchecked Sendable {
        @exclusivity(unchecked) var value: Value

        init(_ value: Value) { self.value = value }
    }
    private var box: Box

    package init(wrappedValue: Value) { box = Box(wrappedValue) }

    package var wrappedValue: Value {
        @inline(__always) _read { yield box.value }
        @inline(__always) _modify {
            if !isKnownUniquelyReferenced(&box) { box = Box(box.value) }
            yield &box.value
        }
    }

    /// Takes over the storage of an equal value. The settings of most apps are equal to those of others.
    package mutating func share(with other: Boxed) {
        if box !== other.box, box.value == other.box.value { box = other.box }
    }

    package static func == (a: Boxed, b: Boxed) -> Bool { a.box === b.box || a.box.value == b.box.value }
    package func hash(into hasher: inout Hasher) { hasher.combine(box.value) }
}

extension Boxed where Value == AppPolicy {
    /// Read in the box. Through `wrappedValue` a part that is counted by references is read from a copy of the whole policy.
    var seat: String? { @inline(__always) get { box.value.seat } }
}

/// A value that is made without arguments.
package protocol Defaulted: Hashable, Sendable {
    init()
    /// The default value, to be read where none is stored.
    static var standard: Boxed<Self> { get }
}

extension Defaulted {
    /// A new one at each access: a type that is read often stores it.
    package static var standard: Boxed<Self> { Boxed(wrappedValue: Self()) }
}

/// A value that seldom differs from the default one: as long as it does not, it takes no space. It behaves like the value itself.
@propertyWrapper
package struct OnDemand<Value: Defaulted>: Hashable, Sendable {
    /// `nil`: it is the default one.
    private var box: Boxed<Value>?

    package init(wrappedValue: Value) {
        box = wrappedValue == Value() ? nil : Boxed(wrappedValue: wrappedValue)
    }

    package var wrappedValue: Value {
        // One `yield`: with two of them the compiler does not inline this, and each access allocates a frame.
        @inline(__always) _read {
            let stored = box ?? Value.standard
            yield stored.wrappedValue
        }
        _modify {
            var value = box ?? Boxed(wrappedValue: Value())
            // The box has one owner, so that it is changed in place.
            box = nil
            defer { box = value.wrappedValue == Value() ? nil : value }
            yield &value.wrappedValue
        }
    }
}

/// An optional value that is rare: it is on the heap, so that its absence takes no space and costs no copy.
@propertyWrapper
package indirect enum Rare<Value: Hashable & Sendable>: Hashable, Sendable {
    case none
    case some(Value)

    package init(wrappedValue: Value?) { self = wrappedValue.map { .some($0) } ?? .none }

    package var wrappedValue: Value? {
        get { if case .some(let value) = self { value } else { nil } }
        set { self = Rare(wrappedValue: newValue) }
    }

    var isPresent: Bool { if case .some = self { true } else { false } }
}
