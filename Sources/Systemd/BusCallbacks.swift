import CSystemd
import Glibc

// The C callbacks of slots. Each userdata is a retained `Binding`. Their results are libsystemd's: 1 handled, 0 not handled,
// negative an error that libsystemd sends as the reply.

typealias BusErrorPointer = UnsafeMutablePointer<sd_bus_error>

func methodCallback(
    _ message: OpaquePointer?, _ userdata: UnsafeMutableRawPointer?, _ problem: BusErrorPointer?
) -> Int32 {
    guard let message, let binding = Binding.from(userdata), let peer = binding.peer else { return 0 }
    do throws(BusError) {
        try peer.dispatch(message, binding)
        return 1
    } catch {
        return error.set(problem)
    }
}

func propertyCallback(
    _ bus: OpaquePointer?, _ path: UnsafePointer<CChar>?, _ interface: UnsafePointer<CChar>?,
    _ name: UnsafePointer<CChar>?, _ reply: OpaquePointer?, _ userdata: UnsafeMutableRawPointer?,
    _ problem: BusErrorPointer?
) -> Int32 {
    guard let path, let name, let reply, let binding = Binding.from(userdata),
        let property = binding.vtable?.properties[String(cString: name)],
        let target = binding.objects.target(String(cString: path))
    else { return -ENOENT }
    do throws(BusError) {
        let value = try property.get(target)
        guard value.signature == property.signature else {
            throw .failed("The property \(property.name) is a \(value.signature) instead of a \(property.signature).")
        }
        try MessageWriter.append([value], to: reply)
        return 0
    } catch {
        return error.set(problem)
    }
}

/// Reports to libsystemd whether an object with this path exists below a prefix.
func findCallback(
    _ bus: OpaquePointer?, _ path: UnsafePointer<CChar>?, _ interface: UnsafePointer<CChar>?,
    _ userdata: UnsafeMutableRawPointer?, _ found: UnsafeMutablePointer<UnsafeMutableRawPointer?>?,
    _ problem: BusErrorPointer?
) -> Int32 {
    guard let path, let found, let binding = Binding.from(userdata),
        binding.objects.target(String(cString: path)) != nil
    else { return 0 }
    found.pointee = userdata
    return 1
}

/// Lists the objects below a prefix, as an array of strings that libsystemd frees.
func enumeratorCallback(
    _ bus: OpaquePointer?, _ prefix: UnsafePointer<CChar>?, _ userdata: UnsafeMutableRawPointer?,
    _ nodes: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?>?, _ problem: BusErrorPointer?
) -> Int32 {
    guard let nodes, let binding = Binding.from(userdata) else { return -EINVAL }
    let paths = binding.objects.paths()
    let size = (paths.count + 1) * MemoryLayout<UnsafeMutablePointer<CChar>?>.stride
    guard let memory = malloc(size) else { return -ENOMEM }
    let list = memory.bindMemory(to: UnsafeMutablePointer<CChar>?.self, capacity: paths.count + 1)
    for (index, path) in paths.enumerated() { list[index] = strdup(path) }
    list[paths.count] = nil
    nodes.pointee = list
    return 0
}

/// Gets every message of a connection before its objects.
func filterCallback(
    _ message: OpaquePointer?, _ userdata: UnsafeMutableRawPointer?, _ problem: BusErrorPointer?
) -> Int32 {
    guard let message, let userdata else { return 0 }
    let box = Unmanaged<WeakPeer>.fromOpaque(userdata).takeUnretainedValue()
    return box.peer?.filter(message) == true ? 1 : 0
}

/// The answer to an asynchronous call.
func replyCallback(
    _ message: OpaquePointer?, _ userdata: UnsafeMutableRawPointer?, _ problem: BusErrorPointer?
) -> Int32 {
    guard let message, let userdata else { return 0 }
    let call = Unmanaged<OutgoingCall>.fromOpaque(userdata).takeUnretainedValue()
    call.finish(.success(message))
    return 1
}

/// The userdata of a filter: the sd-bus connection does not keep its owner alive.
final class WeakPeer {
    weak var peer: BusPeer?

    init(_ peer: BusPeer) {
        self.peer = peer
    }
}
