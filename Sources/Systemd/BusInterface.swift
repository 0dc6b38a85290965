/// An interface as served: what `introspect` shows, and the closures behind it. Names and signatures are checked by
/// libsystemd when the objects are registered on a connection.
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

/// Who may call a method.
package enum BusAccess: Sendable {
    /// The user the program runs as, and root. Anybody else gets AccessDenied before the handler is called.
    case owner
    /// Everybody who can connect; the handler looks at the caller's credentials where it matters.
    case anyone
}

/// A method: the handler answers with `MethodCall.reply` or `fail`, now or later.
package struct BusMethod {
    package let name: String
    package let input: String
    package let output: String
    package let arguments: [String]
    package let results: [String]
    package let access: BusAccess
    package let handler: (MethodCall) -> Void

    /// - Parameters:
    ///   - input, output: signatures; the arguments have been checked against `input` when the handler is called.
    ///   - arguments, results: a name for each complete type, for introspection: as a member's (`[A-Za-z0-9_]`). Name
    ///     both or neither.
    package init(
        _ name: String, in input: String = "", out output: String = "", arguments: [String] = [],
        results: [String] = [], access: BusAccess = .owner, handler: @escaping (MethodCall) -> Void
    ) {
        self.name = name
        self.input = input
        self.output = output
        self.arguments = arguments
        self.results = results
        self.access = access
        self.handler = handler
    }
}

/// A property that can be read, by everybody who can connect.
package struct BusProperty {
    package enum Change: Sendable {
        /// PropertiesChanged tells of each change.
        case announced
        /// It never changes.
        case constant
        /// It changes without being announced (a size, a remaining time).
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

/// A signal that introspection shows.
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

/// The object that a call or a property is about.
package struct BusTarget: Equatable, Sendable {
    package let path: String
    /// For objects below a prefix the name behind it, unescaped (`org.example.Photos`); empty for a fixed path.
    package let id: String
}

/// A signal that was received.
package struct BusSignal: Equatable, Sendable {
    package let path: String
    package let interface: String
    package let member: String
    package let arguments: [Variant]
    /// On a bus: the unique name of who sent it, or `org.freedesktop.DBus`. Whom a rule names as its sender does not keep
    /// others from sending us a signal of the same name directly: compare.
    package let sender: String?

    package init(path: String, interface: String, member: String, arguments: [Variant], sender: String? = nil) {
        self.path = path
        self.interface = interface
        self.member = member
        self.arguments = arguments
        self.sender = sender
    }
}
