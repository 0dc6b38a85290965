import Control
import Glibc
import JSON
import Systemd

/// Verbs that change the state of apps and wait until the change is done.
extension Session {
    func request() throws(Failure) -> Int32 {
        let client = try connect()
        let names = invocation.verb == .open && apps.isEmpty ? [""] : try expand(apps, client)
        var status: Int32 = 0
        var documents: [JSONValue] = []
        let options = try launchOptions()
        let requests = names.map { (app: $0, calls: calls(for: $0, options)) }
        let batch = RequestBatch(client, screen, requests) { (app, result) in
            if !take(withoutDisabled(result, of: app, client), of: app, &documents) { status = 1 }
        }
        do throws(Failure) {
            try client.withAuthorization { () throws(Failure) in
                try invocation.has(.noBlock) ? batch.runWithoutWaiting() : batch.run()
            }
        } catch  where error.isRefusal {
            for (app, failure) in batch.refusals { _ = take(.failure(failure), of: app, &documents) }
            status = 1
        }
        if wantsJSON {
            if invocation.namesSeveral {
                try show(.array(documents))
            } else if let one = documents.first {
                try show(one)
            }
        }
        if invocation.has(.whileConnected), status == 0, !names.isEmpty { try holdConnection(client) }
        return status
    }

    /// The result of `terminate` for an app that an error in its manifest disables: it is not running, which is the state that
    /// was asked for. The daemon refuses all requests for such an app.
    private func withoutDisabled(
        _ result: Result<RequestResult, Failure>, of app: String, _ client: Client
    ) -> Result<RequestResult, Failure> {
        guard invocation.verb == .terminate, !invocation.has(.remove), case .failure(let failure) = result,
            failure.name == ControlNames.Failure.unknownApp.name,
            let pending = try? client.begin("Status", [.string(app)]),
            let status = (try? client.answer(pending, until: nil, as: AppStatus.self)) ?? nil,
            status.error != nil, status.isNotRunning
        else { return result }
        return .success(RequestResult(.done, state: status.state))
    }

    /// Prints the result of one app, or adds it to the JSON documents.
    /// - Returns: whether the app is in the state that was asked for.
    private func take(
        _ result: Result<RequestResult, Failure>, of app: String, _ documents: inout [JSONValue]
    ) -> Bool {
        switch result {
        case .success(let result): return take(result, of: app, &documents)
        case .failure(let failure):
            // It is in the state that was asked for, as after `terminate --remove`, and as with systemctl stop.
            if invocation.verb == .terminate, failure.name == ControlNames.Failure.notRunning.name {
                return take(RequestResult(.done, state: "notRunning"), of: app, &documents)
            }
            if wantsJSON, invocation.namesSeveral {
                documents.append(.object([("app", .string(app)), ("error", failure.json)]))
            }
            report(failure)
            return false
        }
    }

    private func take(_ result: RequestResult, of app: String, _ documents: inout [JSONValue]) -> Bool {
        if wantsJSON {
            let members = result.json.objectValue ?? []
            documents.append(.object(invocation.namesSeveral ? [("app", .string(app))] + members : members))
        }
        let line = "\(escaped(result.app ?? app)): \(outcomeSentence(result))"
        guard isSuccess(result) else {
            report(Failure(line, hint: result.lastReceipt.map { "See: \(command("receipt \($0.id)"))" }))
            return false
        }
        guard !wantsJSON else { return true }
        do throws(Failure) {
            // At once: other apps may take longer.
            try show(line + "\n")
            if result.needsReload == true { warnAboutFiles(of: [app]) }
            for warning in result.warnings { warn("\(escaped(app)): \(escaped(warning))") }
            return true
        } catch {
            report(error)
            return false
        }
    }

    /// Keeps the connection, with which the interruption ends, until Ctrl-C.
    /// - Throws: once the daemon has closed it.
    private func holdConnection(_ client: Client) throws(Failure) {
        Waiting.endsAtInterrupt()
        if screen.errorIsTerminal, screen.isTerminal {
            try write(screen.paint("Press Ctrl-C to end the interruption.", .faint) + "\n", to: STDERR_FILENO)
        }
        while true { _ = try client.nextEvent() }
    }

    /// The calls for one app, one after the other.
    private func calls(for app: String, _ options: LaunchOptions) -> [RequestBatch.Call] {
        let name = Variant.string(app)
        func operand(_ index: Int) -> Variant { .string(operands.count > index ? operands[index] : "") }
        func call(_ member: String, _ more: Variant..., isIdempotent: Bool = false) -> RequestBatch.Call {
            RequestBatch.Call(member: member, arguments: [name] + more, isIdempotent: isIdempotent)
        }
        switch invocation.verb {
        case .launch: return [call("Launch", options.variant, isIdempotent: true)]
        case .terminate: return [call("Terminate", .bool(invocation.has(.remove)), isIdempotent: true)]
        case .restart:
            var launch = call("Launch", options.variant, isIdempotent: true)
            launch.isSequential = !invocation.has(.background)
            return [call("Terminate", .bool(false), isIdempotent: true), launch]
        case .push: return [call("Push", operand(1))]
        case .send: return [call("Send", operand(1), operand(2))]
        case .open: return [call("Open", operand(operands.count - 1), .dictionary([]))]
        case .activate, .background:
            let member = invocation.verb == .activate ? "Activate" : "Background"
            guard let scene = invocation.options[.scene] else { return [call(member, isIdempotent: true)] }
            return [call(member + "Scene", .string(scene), isIdempotent: true)]
        case .interrupt: return [call(invocation.has(.whileConnected) ? "InterruptWhileConnected" : "Interrupt")]
        case .close: return [call("CloseScene", .string(invocation.options[.scene] ?? ""))]
        case .cancelTask: return [call("CancelTask", operand(1), isIdempotent: true)]
        case .resume: return [call("Resume")]
        case .list, .status, .explain, .show, .isActive, .idle, .listTimers, .cat, .receipts, .receipt, .watch, .top,
            .pressure,
            .initialize,
            .certify, .edit, .doctor, .enable, .disable, .verify, .reload, .help, .snapshot, .log, .reexec, .app, .plot,
            .replay, .savings, .run, .mcpConfig, .switchApps:
            preconditionFailure("\(invocation.verb) is not a request")
        }
    }

    private func launchOptions() throws(Failure) -> LaunchOptions {
        var options = LaunchOptions()
        options.environment = try variables()
        if invocation.has(.background) { options.background = true }
        options.reason = invocation.options[.reason]
        options.url = invocation.options[.url]
        return options
    }

    /// As with systemd-run(1), a name alone has the value that it has in the environment of this program.
    private func variables() throws(Failure) -> [String] {
        try invocation.variables.map { (text) throws(Failure) in
            guard !text.utf8.contains(UInt8(ascii: "=")) else { return text }
            guard let value = environment.variable(text) else {
                throw Failure(
                    "--setenv: the variable \(text) is not set; expected \(text)=VALUE", status: Failure.wrongUsage)
            }
            return "\(text)=\(value)"
        }
    }

    func isSuccess(_ result: RequestResult) -> Bool {
        if result.outcome == RequestResult.requestedOutcome { return true }
        return switch RequestResult.Outcome(rawValue: result.outcome) {
        case .done: true
        case .ended: invocation.verb == .terminate
        case .superseded, nil: false
        }
    }

    func outcomeSentence(_ result: RequestResult) -> String {
        let state = stateInWords(result.state ?? "")
        switch RequestResult.Outcome(rawValue: result.outcome) {
        case .done:
            return (result.wakeID.map { "\(state), \(invocation.verb == .push ? "push" : "wake") \($0)" } ?? state)
                + remark(result)
        case .ended:
            let explanation = result.lastReceipt?.explanation ?? result.explanation ?? "Ended for an unknown reason."
            // The end is the requested result: its receipt is named here, and not as a hint of a failure.
            guard invocation.verb != .terminate else {
                return explanation + (result.lastReceipt.map { " (receipt \($0.id))" } ?? "")
            }
            let before = result.lastReceipt.map { "ended \(period(of: $0.state)): " } ?? ""
            return before + explanation
        case .superseded:
            return "\(result.explanation ?? "A later request asked for another state.") It is \(state) now."
        case nil:
            if result.outcome == RequestResult.requestedOutcome { return "requested" }
            return "unknown answer '\(result.outcome)' of greenroomd"
        }
    }

    /// What a successful request did not do.
    private func remark(_ result: RequestResult) -> String {
        if invocation.verb == .send, result.state == "suspended" {
            return "; the notification is delivered when the app runs again"
        }
        let isInForeground = result.state == "active" || result.state == "inactive"
        if invocation.verb == .launch, invocation.has(.background), isInForeground {
            return "; it was running and stays in the foreground"
        }
        return ""
    }

    /// When an app ended: "while launching".
    private func period(of state: String) -> String {
        switch state {
        case "background": "in the background"
        case "notRunning": "before it ran"
        default: "while \(state)"
        }
    }
}
