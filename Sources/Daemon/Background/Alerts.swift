import Control
import LifecycleCore
import Manifest
import Posix
import Systemd

/// Interruptions by notifications of the desktop that are critical (Desktop Notifications Specification, "Urgency Levels"), with
/// `Interruptions=notifications` (L13). They are shown on the bus of a user's session, so a program in that session, such as
/// greenroom-session, reports whether there is one (`ReportAlert`).
///
/// It interrupts the apps that are active when the first one is shown, until the last one is closed, or the client disconnects. A
/// client interrupts apps of its own user; root those of any user.
final class Alerts {
    private struct Client {
        var user: UInt32
        /// `nil`: no alert is shown.
        var interruptions: [RequestID]?
    }

    private let driver: CoreDriver
    private let answers: AnswerTable
    private let library: ManifestLibrary
    private let runs: RunTable
    /// Those that have reported an alert, until they disconnect.
    private var clients: [BusClient: Client] = [:]

    init(driver: CoreDriver, answers: AnswerTable, library: ManifestLibrary, runs: RunTable) {
        self.driver = driver
        self.answers = answers
        self.library = library
        self.runs = runs
    }

    /// Whether alerts are to be reported.
    var areWanted: Bool { library.configuration.interruptions.contains(.notifications) }

    /// The configuration was read.
    func configure() {
        if areWanted { return }
        for client in clients.keys { end(client) }
    }

    /// Handles the report of a client whether an alert is shown, and answers the call.
    func report(_ call: MethodCall) {
        call.identify { [weak self] result in
            switch result {
            case .success(let caller): self?.report(call.arguments[0] == .bool(true), call, caller.uid)
            case .failure(let error): call.fail(error)
            }
        }
    }

    private func report(_ isShown: Bool, _ call: MethodCall, _ user: UInt32) {
        let client = call.client
        if !isShown {
            end(client)
        } else if areWanted {
            if clients[client] == nil {
                if let refusal = ReporterLimit.refusal(of: user, among: clients.values.map(\.user), reporting: "alerts")
                {
                    return call.fail(refusal)
                }
                clients[client] = Client(user: user)
                call.onDisconnect { [weak self] in
                    self?.end(client)
                    self?.clients[client] = nil
                }
            }
            begin(client, user)
        }
        call.reply()
    }

    private func begin(_ client: BusClient, _ user: UInt32) {
        guard let known = clients[client], known.interruptions == nil else { return }
        let apps = driver.core.foregroundApps.filter {
            driver.core.state(of: $0) == .active && (user == 0 || runs.user(of: $0) == user)
        }
        let requests = apps.map { ($0, answers.expect { _ in }) }
        clients[client]?.interruptions = requests.map(\.1)
        for (app, request) in requests { driver.send(.requested(request, app, .interruptWhileConnected)) }
    }

    private func end(_ client: BusClient) {
        guard let requests = clients[client]?.interruptions else { return }
        clients[client]?.interruptions = nil
        for request in requests { driver.send(.requestAbandoned(request)) }
    }
}
