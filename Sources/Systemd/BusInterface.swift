/// A served interface: what introspection shows, and the closures that implement it. libsystemd checks names and signatures
/// when the objects are registered on a connection.
package struct BusInterface {
    package let name: String
    package let methods: [BusMethod]
    package let properties: [BusProperty]
    package let signals: [BusSignalDeclaration]

    package init(
        _ name: String, methods: [BusMethod] = [], properties: [BusProperty] = [],
        signals: [BusSignalDeclaration] = []
    ) {
        self.name = name
        self.methods = methods
        self.properties = properties
        self.signals = signals
    }
}

/// Which users may call a method.
package enum BusAccess: Sendable {
    /// Root and the user of this process. Other users get AccessDenied before the handler is called, unless
    /// `BusObjects.authorise` allows the call.
    case owner
    /// Every user who can connect. The handler can check the caller's credentials.
    case anyone
}

/// A method. Its handler answers with `MethodCall.reply` or `fail`, at once or later.
package struct BusMethod {
    package let name: String
    package let input: String
    package let output: String
    package let arguments: [String]
    package let results: [String]
    package let access: BusAccess
    /// Whether the last arguments are of the type `h`, and are read. Each call must have as many descriptors. Only of servers that
    /// trust their clients, or have `BusLimits.descriptors`; others refuse all calls with descriptors.
    package let takesDescriptors: Bool
    package let handler: (MethodCall) -> Void

    /// - Parameters:
    ///   - input, output: signatures. The arguments match `input` when the handler is called.
    ///   - arguments, results: for introspection, a name for each complete type (`[A-Za-z0-9_]`); for both or neither.
    package init(
        _ name: String, in input: String = "", out output: String = "", arguments: [String] = [],
        results: [String] = [], access: BusAccess = .owner, takesDescriptors: Bool = false,
        handler: @escaping (MethodCall) -> Void
    ) {
        self.name = name
        self.input = input
        self.output = output
        self.arguments = arguments
        self.results = results
        self.access = access
        self.takesDescriptors = takesDescriptors
        self.handler = handler
    }
}

/// A read-only property. Every user who can connect may read it.
package struct BusProperty {
    package enum Change: Sendable {
        /// PropertiesChanged is sent for each change.
        case announced
        /// The value never changes.
        case constant
        /// The value changes without PropertiesChanged (a size, a remaining time).
        case silent
    }

    package let name: String
    package let signature: String
    package let change: Change
    package let get: (BusTarget) throws(BusError) -> Variant

    package init(
        _ name: String, _ signature: String, _ change: Change = .announced,
        get: @escaping (BusTarget) throws(BusError) -> Variant
    ) {
        self.name = name
        self.signature = signature
        self.change = change
        self.get = get
    }
}

/// A signal, for introspection.
package struct BusSignalDeclaration {
    package let name: String
    package let signature: String
    package let arguments: [String]

    package init(_ name: String, _ signature: String = "", arguments: [String] = []) {
        self.name = name
        self.signature = signature
        self.arguments = arguments
    }
}

/// The object of a call or property.
package struct BusTarget: Equatable, Sendable {
    package let path: String
    /// The name of an object below a prefix, unescaped (`org.example.Photos`); empty for a fixed path.
    package let id: String
}

/// A signal that was received.
package struct BusSignal: Equatable, Sendable {
    package let path: String
    package let interface: String
    package let member: String
    package let arguments: [Variant]
    /// On a bus: the unique name of the sender, or `org.freedesktop.DBus`. Other programs can send a signal directly to this
    /// connection whatever its match rules, so compare the sender.
    package let sender: String?

    package init(path: String, interface: String, member: String, arguments: [Variant], sender: String? = nil) {
        self.path = path
        self.interface = interface
        self.member = member
        self.arguments = arguments
        self.sender = sender
    }
}
