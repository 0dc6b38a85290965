/// The methods of a bus daemon that clients also call on a private socket: busctl, gdbus and dbus-python call `Hello`, add
/// matches and query names before they call anything else.
enum BusDriver {
    static let path = "/org/freedesktop/DBus"
    static let name = "org.freedesktop.DBus"
    /// The server's unique name on a private connection. Clients get `:1.NUMBER`, numbered from 1.
    static let ownUniqueName = ":1.0"

    static func objects(names: [String]) -> BusObjects {
        let objects = BusObjects()
        objects.add(
            at: path,
            [
                BusInterface(
                    name, methods: connectionMethods() + nameMethods(names),
                    signals: [
                        BusSignalDeclaration("NameOwnerChanged", "sss", arguments: ["name", "old", "new"]),
                        BusSignalDeclaration("NameLost", "s", arguments: ["name"]),
                        BusSignalDeclaration("NameAcquired", "s", arguments: ["name"]),
                    ])
            ])
        return objects
    }

    private static func connectionMethods() -> [BusMethod] {
        [
            BusMethod("Hello", out: "s", access: .anyone) { $0.reply([.string(uniqueName($0.peer))]) },
            // Every peer gets every signal, so matches have no effect.
            BusMethod("AddMatch", in: "s", access: .anyone) { $0.reply() },
            BusMethod("RemoveMatch", in: "s", access: .anyone) { $0.reply() },
        ]
    }

    private static func nameMethods(_ names: [String]) -> [BusMethod] {
        [
            BusMethod("ListNames", out: "as", access: .anyone) { call in
                call.reply([.strings([name] + names + [ownUniqueName, uniqueName(call.peer)])])
            },
            BusMethod("ListActivatableNames", out: "as", access: .anyone) { $0.reply([.strings([])]) },
            BusMethod("NameHasOwner", in: "s", out: "b", access: .anyone) { call in
                call.reply([.bool(owner(call, names) != nil)])
            },
            BusMethod("GetNameOwner", in: "s", out: "s", access: .anyone) { call in
                guard let owner = owner(call, names) else { return fail(call) }
                call.reply([.string(owner)])
            },
            BusMethod("StartServiceByName", in: "su", out: "u", access: .anyone) { call in
                guard owner(call, names) != nil else { return fail(call) }
                // DBUS_START_REPLY_ALREADY_RUNNING
                call.reply([.uint32(2)])
            },
        ]
    }

    private static func uniqueName(_ peer: BusPeer) -> String { ":1.\(peer.number)" }

    private static func owner(_ call: MethodCall, _ names: [String]) -> String? {
        guard let wanted = call.arguments.first?.stringValue else { return nil }
        if wanted == name { return name }
        if names.contains(wanted) || wanted == ownUniqueName { return ownUniqueName }
        return wanted == uniqueName(call.peer) ? wanted : nil
    }

    private static func fail(_ call: MethodCall) {
        let wanted = call.arguments.first?.stringValue ?? ""
        call.fail("org.freedesktop.DBus.Error.NameHasNoOwner", "The name '\(wanted)' has no owner on this connection.")
    }
}
