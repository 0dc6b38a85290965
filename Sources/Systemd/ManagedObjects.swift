import CSystemd

/// Answers `GetManagedObjects` of org.freedesktop.DBus.ObjectManager in pieces, one object each: for 10,000 objects libsystemd,
/// which answers all other methods of that interface, would take some 300 ms at once. Each object is consistent; another one
/// may change before its piece is made.
final class ManagedObjects {
    static let interface = "org.freedesktop.DBus.ObjectManager"
    private let method = BusMethod(
        "GetManagedObjects", out: "a{oa{sa{sv}}}", results: ["objects"], access: .anyone
    ) { _ in }
    /// The most calls that wait for their answer. A client can send calls without waiting.
    private static let maximumWaiting = 1024
    /// The interfaces that libsystemd adds to each object.
    private static let standardInterfaces = [
        "org.freedesktop.DBus.Peer", "org.freedesktop.DBus.Introspectable", "org.freedesktop.DBus.Properties",
    ]

    private unowned let objects: BusObjects
    private var waiting: [MethodCall] = []
    private var isRunning = false
    private var reply: ArrayReply?
    /// What is still to be listed: the entries, and the objects of the first of them.
    private var entries: ArraySlice<BusObjects.Entry> = []
    private var names: ArraySlice<String> = []
    private var current: BusObjects.Entry?

    init(_ objects: BusObjects) { self.objects = objects }

    /// Answers the message later if it calls the method.
    /// - Returns: whether it does.
    func take(_ message: OpaquePointer, _ peer: BusPeer) -> Bool {
        guard sd_bus_message_is_method_call(message, Self.interface, method.name) > 0,
            let path = sd_bus_message_get_path(message).map({ String(cString: $0) }),
            objects.managerPaths.contains(path),
            let call = try? MethodCall(
                message, target: BusTarget(path: path, id: ""), interface: Self.interface, method: method, peer: peer,
                serial: peer.nextSerial()), call.arguments.isEmpty
        else { return false }
        guard waiting.count < Self.maximumWaiting else {
            call.fail(
                "org.freedesktop.DBus.Error.LimitsExceeded",
                "\(Self.maximumWaiting) calls of \(method.name) wait for their answers.")
            return true
        }
        waiting.append(call)
        if isRunning { return true }
        isRunning = true
        peer.loop.controlWork.add { [weak self] in self?.step() ?? false }
        return true
    }

    /// - Returns: whether there is more to do.
    private func step() -> Bool {
        if let name = names.popFirst() {
            if let value = current?.value(of: name, Self.standardInterfaces) { reply?.append(value) }
        } else if let entry = entries.popFirst() {
            current = entry
            names = entry.collection.map { $0.list()[...] } ?? [""]
        } else if reply != nil {
            reply?.send()
            (reply, current) = (nil, nil)
        } else if waiting.isEmpty {
            isRunning = false
            return false
        } else {
            begin(waiting.removeFirst())
        }
        return true
    }

    private func begin(_ call: MethodCall) {
        call.peer.checkQueue(limit: call.peer.limits.queuedLargeAnswers)
        guard !call.peer.isGone else { return }
        reply = call.beginArrayReply()
        let path = call.target.path
        let prefix = path == "/" ? path : path + "/"
        entries = objects.entries.filter { $0.path.hasPrefix(prefix) }[...]
    }
}

extension BusObjects.Entry {
    /// An object with its interfaces and their properties, as libsystemd lists it; `nil`: it no longer exists.
    /// - Parameter name: of an object of a collection; for a fixed path empty.
    fileprivate func value(of name: String, _ standardInterfaces: [String]) -> Variant? {
        if let collection, !collection.contains(name) { return nil }
        let target = BusTarget(path: collection == nil ? path : ObjectPath.encode(name, below: path), id: name)
        var interfaces = standardInterfaces.map { Variant.entry(.string($0), .dictionary([])) }
        if owner?.managerPaths.contains(target.path) ?? false {
            interfaces.append(.entry(.string(ManagedObjects.interface), .dictionary([])))
        }
        for vtable in vtables {
            var properties: [(String, Variant)] = []
            for property in vtable.interface.properties {
                guard let value = try? property.get(target) else { return nil }
                properties.append((property.name, value))
            }
            interfaces.append(.entry(.string(vtable.interface.name), .dictionary(properties)))
        }
        return .entry(.objectPath(target.path), .array("{sa{sv}}", interfaces))
    }
}
