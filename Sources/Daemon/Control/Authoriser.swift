import Control
import Glibc
import Posix
import Systemd

/// Asks polkit whether a user other than root and the daemon's own may manage apps (action `org.greenroom.manage`) or administer
/// the daemon (`org.greenroom.administer`). It never blocks: polkit may ask the user for a password. Such users call over the
/// message bus; the private socket refuses them.
///
/// The subject is the unique name of the caller on the bus, which the bus never gives to another one. A process with its start
/// time could be another one by now.
final class Authoriser {
    /// What polkit is asked for.
    enum Action: String {
        /// To launch, suspend and end apps, and to pass them URLs and payloads.
        case manage = "org.greenroom.manage"
        /// What concerns the daemon and so all apps: Reload, Reexec, SimulatePressure, SimulateLock. And to pass variables to a program, which
        /// may then do anything that its user may do.
        case administer = "org.greenroom.administer"
    }
    /// Calls that wait for polkit's decision, of all users and of one: each may keep a dialog open.
    static let maximumPending = 64
    static let maximumPendingPerUser = 8
    /// How long the user may take to answer; polkit itself sets no limit.
    static let interactiveTimeout = Duration.seconds(300)
    /// How long polkit may take if it does not ask the user.
    static let timeout = Duration.seconds(25)
    /// CheckAuthorization's flag AllowUserInteraction.
    private static let allowInteraction: UInt32 = 1

    private enum Polkit {
        static let name = "org.freedesktop.PolicyKit1"
        static let path = "/org/freedesktop/PolicyKit1/Authority"
        static let interface = "org.freedesktop.PolicyKit1.Authority"
    }

    /// The bus of polkit, where callers have unique names; `nil`: polkit is not available.
    weak var bus: MessageBus?
    /// Whether this is a user's own daemon, which only that user and root may control.
    let isForUser: Bool
    /// The uids of the calls that wait, by number.
    private var pending: [UInt64: UInt32] = [:]
    private var lastNumber: UInt64 = 0

    init(isForUser: Bool) {
        self.isForUser = isForUser
    }

    // MARK: Deciding

    func decide(_ call: MethodCall, _ caller: PeerCredentials, _ decided: @escaping (BusError?) -> Void) {
        func refuse(_ why: String) {
            decided(
                ControlNames.Failure.accessDenied.error(
                    "\(call.member) is for root\(geteuid() == 0 ? "" : " and uid \(geteuid())")\(why)"))
        }
        if isForUser { return refuse("") }
        guard let polkit = bus?.peer else { return refuse("; polkit cannot be asked, as there is no system bus") }
        guard let sender = call.sender else {
            return refuse("; polkit cannot be asked, as the caller has no name on the bus")
        }
        guard pending.count < Self.maximumPending,
            pending.values.count(where: { $0 == caller.uid }) < Self.maximumPendingPerUser
        else {
            return decided(
                ControlNames.Failure.tooMany.error("too many calls wait for polkit's decision; try again later")
            )
        }
        ask(polkit, call, caller, sender) { refusal in
            if let refusal { refuse(refusal) } else { decided(nil) }
        }
    }

    /// Calls `decided` once, with the end of a sentence, or `nil` if polkit authorizes the call.
    private func ask(
        _ polkit: BusPeer, _ call: MethodCall, _ caller: PeerCredentials, _ sender: String,
        _ decided: @escaping (String?) -> Void
    ) {
        lastNumber += 1
        let number = lastNumber
        pending[number] = caller.uid
        let cancellation = "greenroom-\(number)"
        let mayAsk = call.allowsInteraction
        let action = Action(for: call)
        call.onPeerGone { [weak self, weak polkit] in
            guard self?.pending.removeValue(forKey: number) != nil, let polkit else { return }
            Self.cancel(polkit, cancellation)
        }
        do throws(BusError) {
            try polkit.call(
                Polkit.name, path: Polkit.path, interface: Polkit.interface, member: "CheckAuthorization",
                [
                    .structure([.string("system-bus-name"), .dictionary([("name", .string(sender))])]),
                    .string(action.rawValue), details(of: call), .uint32(mayAsk ? Self.allowInteraction : 0),
                    .string(cancellation),
                ], timeout: mayAsk ? Self.interactiveTimeout : Self.timeout
            ) { [weak self, weak polkit] result in
                // The call of a caller that has disconnected has no effect.
                guard self?.pending.removeValue(forKey: number) != nil else {
                    return decided("; the caller has disconnected")
                }
                if case .failure(let error) = result, error.name == "org.freedesktop.DBus.Error.NoReply", let polkit {
                    Self.cancel(polkit, cancellation)
                }
                decided(Self.refusal(result, caller, action, mayAsk: mayAsk))
            }
        } catch {
            pending[number] = nil
            decided("; polkit cannot be asked: \(error.message)")
        }
    }

    /// Returns the end of a sentence; `nil`: polkit authorizes the call.
    private static func refusal(
        _ result: Result<[Variant], BusError>, _ caller: PeerCredentials, _ action: Action, mayAsk: Bool
    ) -> String? {
        switch result {
        case .failure(let error): return "; polkit cannot be asked: \(error.message)"
        case .success(let answer):
            guard let fields = answer.first?.structureValue, fields.count == 3, let isAllowed = fields[0].boolValue,
                let isChallenge = fields[1].boolValue
            else { return "; polkit's answer has an unexpected form" }
            if isAllowed { return nil }
            if isChallenge {
                return "; polkit requires authentication (\(action.rawValue)), "
                    + (mayAsk
                        ? "and no authentication agent is available"
                        : "which the call does not allow (busctl --allow-interactive-authorization=yes)")
            }
            return "; polkit does not authorize uid \(caller.uid) (\(action.rawValue))"
        }
    }

    private static func cancel(_ polkit: BusPeer, _ cancellation: String) {
        // It fails if the check has ended already.
        try? polkit.call(
            Polkit.name, path: Polkit.path, interface: Polkit.interface, member: "CancelCheckAuthorization",
            [.string(cancellation)], timeout: timeout
        ) { _ in }
    }

    /// Returns the details for an administrator's rules (`action.lookup("app")`, `action.lookup("method")`, polkit(8)).
    private func details(of call: MethodCall) -> Variant {
        var entries = [Variant.entry(.string("method"), .string(call.member))]
        let app = call.interface == ControlNames.appInterface ? call.target.id : call.appArgument
        if let app { entries.append(.entry(.string("app"), .string(app))) }
        return .array("{ss}", entries)
    }
}

extension Authoriser.Action {
    init(for call: MethodCall) {
        switch call.member {
        case "Reload", "Reexec", "SimulatePressure", "SimulateLock": self = .administer
        // Variables such as LD_PRELOAD let a program do anything that its user may do.
        case "Launch" where call.passesVariables: self = .administer
        default: self = .manage
        }
    }
}

extension MethodCall {
    /// Whether the options of `Launch` contain variables.
    fileprivate var passesVariables: Bool {
        guard case .dictionary(let options)? = arguments.last else { return false }
        return options.contains { $0.0 == "environment" }
    }

    /// The first argument of Manager1's methods for one app.
    fileprivate var appArgument: String? {
        ["SimulatePressure", "SimulateLock"].contains(member) ? nil : arguments.first?.stringValue
    }
}
