import Control
import Glibc
import Linux
import Systemd

/// Asks polkit whether somebody who is neither root nor the daemon's own user may manage apps: the action
/// `org.greenroom.manage`. Never waits for it: a person may be asked for a password meanwhile.
final class Authoriser {
    static let action = "org.greenroom.manage"
    /// Calls that wait for polkit's decision, in all and of one user: each may keep a dialogue open.
    static let maximumPending = 64
    static let maximumPendingPerUser = 8
    /// How long a person may take to answer; polkit itself sets no limit.
    static let patience = Duration.seconds(300)
    /// polkit's when nobody is asked.
    static let shortPatience = Duration.seconds(25)
    /// CheckAuthorization's flag AllowUserInteraction.
    private static let allowInteraction: UInt32 = 1

    private enum Polkit {
        static let name = "org.freedesktop.PolicyKit1"
        static let path = "/org/freedesktop/PolicyKit1/Authority"
        static let interface = "org.freedesktop.PolicyKit1.Authority"
    }

    /// Where polkit is, and callers are known to it by their unique names; `nil`: nobody can be asked.
    weak var bus: MessageBus?
    /// A user's own daemon is for that user alone.
    let isForUser: Bool
    /// When the processes behind private connections were started, as polkit wants to know (so that another process that
    /// is given the same number is told apart).
    private var startTimes: [UInt64: UInt64] = [:]
    /// The users of the calls that wait, by number.
    private var pending: [UInt64: UInt32] = [:]
    private var lastNumber: UInt64 = 0

    init(isForUser: Bool) {
        self.isForUser = isForUser
    }

    // MARK: Private connections

    /// Of a stranger, the process is looked at now: it has only just connected.
    func meet(_ peer: BusPeer) {
        guard let caller = peer.credentials, caller.uid != 0, caller.uid != geteuid(),
            let status = try? ProcFS().stat(of: caller.pid)
        else { return }
        startTimes[peer.number] = status.startTime
    }

    func forget(_ peer: BusPeer) { startTimes[peer.number] = nil }

    // MARK: Deciding

    func decide(_ call: MethodCall, _ caller: PeerCredentials, _ decided: @escaping (BusError?) -> Void) {
        func refuse(_ why: String) {
            decided(
                ControlNames.Failure.accessDenied.error(
                    "\(call.member) is for root\(geteuid() == 0 ? "" : " and uid \(geteuid())")\(why)"))
        }
        if isForUser { return refuse("") }
        guard let polkit = bus?.peer else { return refuse("; polkit cannot be asked, as there is no system bus") }
        guard let subject = subject(of: call, caller) else {
            return refuse("; polkit cannot be asked, as the caller's process is not known")
        }
        guard pending.count < Self.maximumPending,
            pending.values.count(where: { $0 == caller.uid }) < Self.maximumPendingPerUser
        else {
            return decided(
                ControlNames.Failure.tooMany.error("too many calls wait for polkit's decision already; try again later")
            )
        }
        ask(polkit, call, caller, subject) { refusal in
            if let refusal { refuse(refusal) } else { decided(nil) }
        }
    }

    /// Calls back once, with the end of a sentence or `nil` for yes.
    private func ask(
        _ polkit: BusPeer, _ call: MethodCall, _ caller: PeerCredentials, _ subject: Variant,
        _ decided: @escaping (String?) -> Void
    ) {
        lastNumber += 1
        let number = lastNumber
        pending[number] = caller.uid
        let cancellation = "greenroom-\(number)"
        let mayAsk = call.allowsInteraction
        call.onPeerGone { [weak self, weak polkit] in
            guard self?.pending.removeValue(forKey: number) != nil, let polkit else { return }
            Self.cancel(polkit, cancellation)
        }
        do throws(BusError) {
            try polkit.call(
                Polkit.name, path: Polkit.path, interface: Polkit.interface, member: "CheckAuthorization",
                [
                    subject, .string(Self.action), details(of: call), .uint32(mayAsk ? Self.allowInteraction : 0),
                    .string(cancellation),
                ], timeout: mayAsk ? Self.patience : Self.shortPatience
            ) { [weak self, weak polkit] result in
                // Nothing is done for somebody who is gone, whatever polkit says in the end.
                guard self?.pending.removeValue(forKey: number) != nil else { return decided("; its caller is gone") }
                if case .failure(let error) = result, error.name == "org.freedesktop.DBus.Error.NoReply", let polkit {
                    Self.cancel(polkit, cancellation)
                }
                decided(Self.refusal(result, caller, mayAsk: mayAsk))
            }
        } catch {
            pending[number] = nil
            decided("; polkit cannot be asked: \(error.message)")
        }
    }

    /// The end of a sentence; `nil`: it is allowed.
    private static func refusal(
        _ result: Result<[Variant], BusError>, _ caller: PeerCredentials, mayAsk: Bool
    ) -> String? {
        switch result {
        case .failure(let error): return "; polkit cannot be asked: \(error.message)"
        case .success(let answer):
            guard let fields = answer.first?.structureValue, fields.count == 3, let isAllowed = fields[0].boolValue,
                let isChallenge = fields[1].boolValue
            else { return "; polkit's answer is not understood" }
            if isAllowed { return nil }
            if isChallenge {
                return "; polkit wants authentication first (\(action)), "
                    + (mayAsk
                        ? "and found no agent that asks for it"
                        : "which the call does not allow (busctl --allow-interactive-authorization=yes)")
            }
            return "; polkit does not let uid \(caller.uid) (\(action))"
        }
    }

    private static func cancel(_ polkit: BusPeer, _ cancellation: String) {
        // What fails here is over already.
        try? polkit.call(
            Polkit.name, path: Polkit.path, interface: Polkit.interface, member: "CancelCheckAuthorization",
            [.string(cancellation)], timeout: shortPatience
        ) { _ in }
    }

    /// Who asks, in polkit's terms: a name on the bus, or a process with its start time and user.
    private func subject(of call: MethodCall, _ caller: PeerCredentials) -> Variant? {
        if let sender = call.sender {
            return .structure([.string("system-bus-name"), .dictionary([("name", .string(sender))])])
        }
        guard let start = startTimes[call.peer.number], let pid = UInt32(exactly: caller.pid) else { return nil }
        return .structure([
            .string("unix-process"),
            .dictionary([
                ("pid", .uint32(pid)), ("start-time", .uint64(start)), ("uid", .int32(Int32(bitPattern: caller.uid))),
            ]),
        ])
    }

    /// What an administrator's rules may look at (`action.lookup("app")`, `action.lookup("method")`, polkit(8)).
    private func details(of call: MethodCall) -> Variant {
        var entries = [Variant.entry(.string("method"), .string(call.member))]
        let app = call.interface == ControlNames.appInterface ? call.target.id : call.appArgument
        if let app { entries.append(.entry(.string("app"), .string(app))) }
        return .array("{ss}", entries)
    }
}

extension MethodCall {
    /// Manager1's methods about one app have its name first.
    fileprivate var appArgument: String? {
        member == "SimulatePressure" ? nil : arguments.first?.stringValue
    }
}
