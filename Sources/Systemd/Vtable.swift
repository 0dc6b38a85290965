import CSystemd
import Glibc

/// The sd-bus vtable of an interface and its strings, in memory that does not move. A slot refers to it as long as its
/// connection exists, so the userdata of each slot retains it (through `Binding`).
final class Vtable {
    let interface: BusInterface
    let methods: [String: BusMethod]
    let properties: [String: BusProperty]
    let entries: UnsafeMutablePointer<sd_bus_vtable>
    private let count: Int
    private var strings: [UnsafeMutablePointer<CChar>] = []

    init(_ interface: BusInterface) {
        self.interface = interface
        methods = Dictionary(interface.methods.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        properties = Dictionary(interface.properties.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        count = interface.methods.count + interface.properties.count + interface.signals.count + 2
        entries = .allocate(capacity: count)
        entries.initialize(repeating: sd_bus_vtable(), count: count)
        fill()
    }

    deinit {
        entries.deallocate()
        for string in strings { string.deallocate() }
    }

    private func fill() {
        csystemd_vtable_start(entries)
        var entry = entries + 1
        for method in interface.methods {
            // `BusPeer` checks the user of the caller, in the same way for every kind of bus.
            csystemd_vtable_method(
                entry, store([method.name]), store([method.input]), store([method.output]),
                store(method.arguments + method.results + [""]), methodCallback, csystemd_flag_unprivileged())
            entry += 1
        }
        for property in interface.properties {
            let flags =
                switch property.change {
                case .announced: csystemd_flag_emits_change()
                case .constant: csystemd_flag_constant()
                case .silent: UInt64(0)
                }
            csystemd_vtable_property(
                entry, store([property.name]), store([property.signature]), propertyCallback, flags)
            entry += 1
        }
        for signal in interface.signals {
            csystemd_vtable_signal(
                entry, store([signal.name]), store([signal.signature]), store(signal.arguments + [""]), 0)
            entry += 1
        }
        csystemd_vtable_end(entry)
    }

    /// Stores the texts in sequence, each with a NUL, until this object is released.
    private func store(_ texts: [String]) -> UnsafePointer<CChar> {
        let bytes = texts.flatMap { Array($0.utf8) + [0] }.map { CChar(bitPattern: $0) }
        let copy = UnsafeMutablePointer<CChar>.allocate(capacity: bytes.count)
        copy.initialize(from: bytes, count: bytes.count)
        strings.append(copy)
        return UnsafePointer(copy)
    }
}

/// The objects, interface and connection of a slot, for its callbacks. The slot retains it.
final class Binding {
    let objects: BusObjects.Entry
    let vtable: Vtable?
    weak var peer: BusPeer?

    init(_ objects: BusObjects.Entry, _ vtable: Vtable?, _ peer: BusPeer) {
        self.objects = objects
        self.vtable = vtable
        self.peer = peer
    }

    static func from(_ userdata: UnsafeMutableRawPointer?) -> Binding? {
        userdata.map { Unmanaged<Binding>.fromOpaque($0).takeUnretainedValue() }
    }
}
