import Control
import Glibc
import LifecycleCore
import Linux
import Manifest
import Posix
import Reports
import Systemd

/// The interfaces as introspection shows them. Every user may read; all other methods are for root, for the daemon's own
/// user, and for callers that polkit authorizes (`Authoriser`).
extension ControlBus {
    func managerInterface() -> BusInterface {
        BusInterface(
            ControlNames.managerInterface, methods: queryMethods() + requestMethods() + daemonMethods(),
            properties: managerProperties(),
            signals: [BusSignalDeclaration(ControlNames.lifecycleEventSignal, "a{sv}", arguments: ["event"])])
    }

    private func managerProperties() -> [BusProperty] {
        func folder(_ name: String, _ path: KeyPath<Folders, String>) -> BusProperty {
            BusProperty(name, "s", .constant) { [unowned self] _ in .string(self.service.context.folders[keyPath: path])
            }
        }
        return [
            BusProperty("MemoryLevel", "s", .announced) { [unowned self] _ in
                .string(self.driver.core.memory.level.name)
            },
            folder("ConfigFolder", \.config), folder("RuntimeFolder", \.runtime), folder("StateFolder", \.state),
            folder("VendorFolder", \.vendor),
            // Not constant: on the message bus another program can have the name later.
            BusProperty("StartTimestamp", "t", .silent) { [unowned self] _ in .uint64(self.service.start.realtime) },
            BusProperty("StartTimestampMonotonic", "t", .silent) { [unowned self] _ in
                .uint64(self.service.start.monotonic)
            },
            BusProperty("LoopTurns", "t", .silent) { [unowned self] _ in
                .uint64(UInt64(self.service.loop.servedTurns))
            },
            BusProperty("LongestTurnUSec", "t", .silent) { [unowned self] _ in
                .uint64(UInt64(max(0, self.service.loop.longestTurn.duration.microseconds)))
            },
            BusProperty("MetricsListen", "s", .announced) { [unowned self] _ in .string(self.service.metricsListen) },
            BusProperty("Orientation", "s", .announced) { [unowned self] _ in .string(self.service.orientation) },
            BusProperty("AlertsWanted", "b", .announced) { [unowned self] _ in .bool(self.alerts.areWanted) },
            BusProperty("SettingsUsers", "au", .announced) { [unowned self] _ in self.service.settingsUsers },
            BusProperty("AccountUsers", "au", .announced) { [unowned self] _ in self.service.accountUsers },
            BusProperty("LocationApps", "a(sssu)", .announced) { [unowned self] _ in
                self.service.context.wakes.locations.property
            },
            BusProperty("PushApps", "a(sss)", .announced) { [unowned self] _ in
                self.service.context.wakes.pushEndpoints.property
            },
            BusProperty("FileProblems", "as", .silent) { [unowned self] _ in
                .array("s", self.service.library.fileProblems.map(Variant.string))
            },
            BusProperty("Containment", "s", .silent) { [unowned self] _ in
                .string(self.service.containment.mode.summary)
            },
        ]
    }

    private func queryMethods() -> [BusMethod] {
        [
            BusMethod("List", out: "aa{sv}", results: ["apps"], access: .anyone) { [unowned self] call in
                self.service.statusList.answer(call)
            },
            BusMethod("Status", in: "s", out: "a{sv}", arguments: ["app"], results: ["status"], access: .anyone) {
                [unowned self] call in
                self.status(call)
            },
            BusMethod(
                "Receipts", in: "su", out: "aa{sv}", arguments: ["app", "limit"], results: ["receipts"], access: .anyone
            ) { [unowned self] call in self.receipts(call) },
            BusMethod("Receipt", in: "t", out: "a{sv}", arguments: ["id"], results: ["receipt"], access: .anyone) {
                [unowned self] call in self.receipt(call)
            },
            BusMethod("Pressure", out: "a{sv}", results: ["memory"], access: .anyone) { [unowned self] call in
                call.reply([self.service.memoryStatus().variant])
            },
            BusMethod(
                "RecentEvents", in: "t", out: "a{sv}", arguments: ["serial"], results: ["events"], access: .anyone
            ) { [unowned self] call in
                call.reply([self.recent.events(after: call.arguments[0].uintValue ?? 0).variant])
            },
            BusMethod("GetAppByPID", in: "u", out: "s", arguments: ["pid"], results: ["app"], access: .anyone) {
                [unowned self] call in
                self.appOfProcess(call)
            },
            BusMethod("Version", out: "s", results: ["version"], access: .anyone) { call in
                call.reply([.string(ControlNames.version)])
            },
        ]
    }

    private func requestMethods() -> [BusMethod] {
        func requesting(_ name: String, _ request: Request) -> BusMethod {
            BusMethod(name, in: "s", out: "a{sv}", arguments: ["app"], results: ["result"]) { [unowned self] call in
                self.request(call, call.text(0), request)
            }
        }
        return [
            BusMethod("Launch", in: "sa{sv}", out: "a{sv}", arguments: ["app", "options"], results: ["result"]) {
                [unowned self] call in self.launch(call, call.text(0), call.options(1))
            },
            requesting("Activate", .activate), requesting("Background", .background),
            requesting("Interrupt", .interrupt),
            requesting("InterruptWhileConnected", .interruptWhileConnected),
            requesting("Resume", .endInterruption),
            BusMethod("Terminate", in: "sb", out: "a{sv}", arguments: ["app", "remove"], results: ["result"]) {
                [unowned self] call in
                self.request(call, call.text(0), call.flag(1) ? .remove : .terminate)
            },
            BusMethod("Push", in: "ss", out: "a{sv}", arguments: ["app", "payload"], results: ["result"]) {
                [unowned self] call in self.push(call)
            },
            BusMethod("Send", in: "sss", out: "a{sv}", arguments: ["app", "kind", "payload"], results: ["result"]) {
                [unowned self] call in self.sendNotification(call)
            },
            openMethod(),
            BusMethod("CancelTask", in: "ss", out: "a{sv}", arguments: ["app", "task"], results: ["result"]) {
                [unowned self] call in self.cancelTask(call, call.text(0), call.text(1))
            },
            // `ModeReports` decides of which processes a caller may report something.
            BusMethod("ReportModes", in: "a(us)", arguments: ["modes"], access: .anyone) { [unowned self] call in
                self.service.whenStarted(call) { self.modeReports.report(call) }
            },
            // It concerns the apps of the caller's user only.
            BusMethod("ReportSettings", in: "s", arguments: ["digest"], access: .anyone) { [unowned self] call in
                self.service.whenStarted(call) { self.service.context.wakes.systemEvents.desktop.report(call) }
            },
            BusMethod("ReportAccounts", in: "s", arguments: ["digest"], access: .anyone) { [unowned self] call in
                self.service.whenStarted(call) { self.service.context.wakes.systemEvents.accounts.report(call) }
            },
            BusMethod("ReportLocation", in: "s", arguments: ["app"], access: .anyone) { [unowned self] call in
                self.service.whenStarted(call) { self.service.context.wakes.locations.report(call) }
            },
            BusMethod(
                "ReportPush", in: "say", out: "a{sv}", arguments: ["app", "message"], results: ["result"],
                access: .anyone
            ) { [unowned self] call in
                self.service.whenStarted(call) { self.reportPush(call) }
            },
            BusMethod("ReportPushEndpoint", in: "ss", arguments: ["app", "endpoint"], access: .anyone) {
                [unowned self] call in
                self.service.whenStarted(call) { self.service.context.wakes.pushEndpoints.report(call) }
            },
            BusMethod("ReportAlert", in: "b", arguments: ["shown"], access: .anyone) { [unowned self] call in
                self.service.whenStarted(call) { self.alerts.report(call) }
            },
        ] + sceneMethods()
    }

    private func daemonMethods() -> [BusMethod] {
        [
            BusMethod("SimulatePressure", in: "s", out: "a{sv}", arguments: ["level"], results: ["result"]) {
                [unowned self] call in
                guard let level = MemoryLevel(name: call.text(0)) else {
                    return self.invalid(
                        call, "Invalid memory level '\(call.text(0))'; expected normal, warning or critical.")
                }
                self.simulate(call, level)
            },
            BusMethod("SimulateLock", in: "b", out: "a{sv}", arguments: ["locked"], results: ["result"]) {
                [unowned self] call in
                self.service.whenStarted(call) { self.simulateLock(call, isLocked: call.flag(0)) }
            },
            BusMethod("Reexec", out: "a{sv}", results: ["result"]) { [unowned self] call in
                self.service.whenStarted(call) { self.reexec(call) }
            },
            BusMethod("Reload", out: "a{sv}", results: ["result"]) { [unowned self] call in
                self.service.whenStarted(call) {
                    self.service.reloader.reload { call.reply([$0.variant]) }
                }
            },
        ]
    }

    func appInterface() -> BusInterface {
        func requesting(_ name: String, _ request: Request) -> BusMethod {
            BusMethod(name, out: "a{sv}", results: ["result"]) { [unowned self] call in
                self.request(call, call.target.id, request)
            }
        }
        func property(_ name: String, _ signature: String, _ change: BusProperty.Change = .announced) -> BusProperty {
            BusProperty(name, signature, change) { [unowned self] target throws(BusError) in
                guard let id = AppID(target.id), let properties = self.service.properties(of: id),
                    let value = self.service.property(name, of: id, properties)
                else { throw self.service.unknownApp(target.id) }
                return value
            }
        }
        return BusInterface(
            ControlNames.appInterface,
            methods: [
                BusMethod("Launch", in: "a{sv}", out: "a{sv}", arguments: ["options"], results: ["result"]) {
                    [unowned self] call in self.launch(call, call.target.id, call.options(0))
                },
                requesting("Activate", .activate), requesting("Background", .background),
                requesting("Interrupt", .interrupt),
                requesting("InterruptWhileConnected", .interruptWhileConnected),
                requesting("Resume", .endInterruption),
                BusMethod("Terminate", in: "b", out: "a{sv}", arguments: ["remove"], results: ["result"]) {
                    [unowned self] call in self.request(call, call.target.id, call.flag(0) ? .remove : .terminate)
                },
                openMethodOfApp(),
                BusMethod("CancelTask", in: "s", out: "a{sv}", arguments: ["task"], results: ["result"]) {
                    [unowned self] call in self.cancelTask(call, call.target.id, call.text(0))
                },
            ] + sceneMethodsOfApp() + snapshotMethods(),
            properties: [
                property("Id", "s", .constant), property("Name", "s"), property("State", "s"), property("Pid", "u"),
                property("Foreground", "b"), property("Visible", "b"), property("ReceivesInput", "b"),
                property("LaunchState", "s"), property("Orientation", "s"), property("NoticeStyle", "s"),
                property("WindowAppID", "s"), property("Seat", "s"), property("Scenes", "aa{sv}"),
                property("Tasks", "aa{sv}"),
                property("LastReceipt", "t"),
                property("MemoryBytes", "t", .silent),
                property("Launches", "t", .silent), property("LoadState", "s"), property("LoadError", "s"),
                property("SnapshotTime", "t"),
            ])
    }

    // MARK: Methods

    private func status(_ call: MethodCall) {
        let name = call.text(0)
        if let status = service.appStatus(name) { return reply(call, status) }
        service.whenStarted(call) { [self] in
            guard let status = service.appStatus(name) else { return call.fail(service.unknownApp(name)) }
            reply(call, status)
        }
    }

    /// Only root and the user of the app are given the address at which it can be sent pushes: each program that has it can send some.
    private func reply(_ call: MethodCall, _ status: AppStatus) {
        let endpoints = service.context.wakes.pushEndpoints
        guard let id = AppID(status.id), let endpoint = endpoints[id] else { return call.reply([status.variant]) }
        call.identify { result in
            var status = status
            if case .success(let caller) = result, endpoints.apps.isAllowed(caller.uid, id) {
                status.pushEndpoint = endpoint
            }
            call.reply([status.variant])
        }
    }

    /// For programs that show windows: the compositor knows the process of each (L55).
    private func appOfProcess(_ call: MethodCall) {
        let number = call.arguments[0].uintValue ?? 0
        let pid = Int32(exactly: number) ?? 0
        let owner = pid > 0 ? (try? service.containment.owner(of: pid)) ?? .ended : .ended
        guard case .app(let name) = owner else {
            return call.fail(ControlNames.Failure.unknownApp.error("Process \(number) belongs to no app."))
        }
        call.reply([.string(name)])
    }

    private func reexec(_ call: MethodCall) {
        call.reply([RequestResult(.done).variant])
        // After the answer was sent.
        service.loop.callLater { [self] in prepareReexec() }
    }

    private func launch(_ call: MethodCall, _ app: String, _ options: [(String, Variant)]) {
        // Unlike in a record that is read, an unknown option is refused: it would change what the caller expects.
        let known = LaunchOptions.fields.map(\.key)
        if let unknown = options.first(where: { !known.contains($0.0) }) {
            return invalid(call, "Unknown option '\(unknown.0)'; expected \(known.joined(separator: ", ")).")
        }
        do throws(RecordError) {
            let options = try LaunchOptions(variant: .dictionary(options))
            let state: LaunchState = options.background == true ? .background : .foreground
            let name = options.reason ?? LaunchReason.user.rawValue
            guard var reason = LaunchReason(rawValue: name) else {
                let names = LaunchReason.allCases.map(\.rawValue).joined(separator: ", ")
                return invalid(call, "Invalid launch reason '\(name)'; expected \(names).")
            }
            if reason == .user, options.url != nil { reason = .url }
            if let url = options.url, !Self.isURL(url) {
                return invalid(call, "Invalid URL; \(Self.expectedURL).")
            }
            let variables = options.environment
            if let problem = LaunchVariables.problem(of: variables) { return invalid(call, problem) }
            request(call, app, .launch(state, reason: reason, url: options.url, environment: variables))
        } catch {
            invalid(call, "Invalid launch options: \(error).")
        }
    }

    private func push(_ call: MethodCall) {
        guard call.text(1).utf8.count <= Notification.maximumPayload, !call.text(1).utf8.contains(0) else {
            return invalid(call, "Invalid payload; expected at most \(Notification.maximumPayload) bytes without NUL.")
        }
        request(call, call.text(0), .push(payload: call.text(1)))
    }

    /// A message for an app, from a distributor of the user's session (L30).
    private func reportPush(_ call: MethodCall) {
        let most = PushEndpoints.longestMessage
        guard case .bytes(let message) = call.arguments[1], (1...most).contains(message.count) else {
            return invalid(call, "Invalid message; expected 1 to \(most) bytes.")
        }
        service.context.wakes.pushEndpoints.apps.find(call) { [weak self] app in
            self?.request(call, app.name, .push(payload: PushEndpoints.payload(message)))
        }
    }

    private func cancelTask(_ call: MethodCall, _ app: String, _ task: String) {
        guard (1...NotifyDatagram.maximumTaskName).contains(task.utf8.count) else {
            return invalid(
                call, "Invalid task name; expected 1 to \(NotifyDatagram.maximumTaskName) bytes.")
        }
        request(call, app, .cancelTask(name: task))
    }

    private func sendNotification(_ call: MethodCall) {
        guard let notification = Notification(kind: call.text(1), payload: call.text(2)) else {
            let kinds = Notification.kinds.joined(separator: ", ")
            return invalid(
                call,
                "Invalid notification; expected one of the kinds \(kinds), or x- followed by letters, digits or '-', and "
                    + "a payload of at most \(Notification.maximumPayload) bytes.")
        }
        request(call, call.text(0), .send(notification))
    }

    func invalid(_ call: MethodCall, _ sentence: String) {
        call.fail(ControlNames.Failure.invalidArgument.error(sentence))
    }

    private func receipts(_ call: MethodCall) {
        let name = call.text(0)
        let limit = call.arguments[1].intValue.map { $0 == 0 ? ReceiptStore.kept : Int($0) } ?? ReceiptStore.kept
        do {
            // An app whose manifest was removed may still have receipts.
            guard name.isEmpty || AppID(name) != nil else { return call.fail(service.unknownApp(name)) }
            let found = try service.receipts.read(app: AppID(name), limit: min(limit, ReceiptStore.kept))
            if found.isEmpty, let id = AppID(name), driver.core.state(of: id) == nil {
                return call.fail(service.unknownApp(name))
            }
            clearOutput(of: found, for: call) { call.reply([$0.variant]) }
        } catch {
            call.fail(ControlNames.Failure.failed.error("\(error)"))
        }
    }

    private func receipt(_ call: MethodCall) {
        do {
            let id = call.arguments[0].uintValue ?? 0
            guard let found = try service.receipts.receipt(id) else {
                return call.fail(
                    ControlNames.Failure.unknownReceipt.error(
                        "There is no receipt \(id); the last \(ReceiptStore.kept) are kept."))
            }
            clearOutput(of: [found], for: call) { call.reply([$0[0].variant]) }
        } catch {
            call.fail(ControlNames.Failure.failed.error("\(error)"))
        }
    }

    /// Every user may read receipts, but the output of apps only root and the daemon's user: not every user may read the journal
    /// either.
    private func clearOutput(
        of found: [ReceiptRecord], for call: MethodCall, _ reply: @escaping ([ReceiptRecord]) -> Void
    ) {
        guard found.contains(where: { !$0.output.isEmpty }) else { return reply(found) }
        call.identify { result in
            let uid = (try? result.get())?.uid
            if uid == 0 || uid == geteuid() { return reply(found) }
            reply(
                found.map { receipt in
                    var receipt = receipt
                    receipt.output = []
                    return receipt
                })
        }
    }
}

/// The bus has already checked the arguments against the method's signature.
extension MethodCall {
    func text(_ index: Int) -> String { arguments[index].stringValue ?? "" }
    fileprivate func flag(_ index: Int) -> Bool { arguments[index].boolValue ?? false }
    func options(_ index: Int) -> [(String, Variant)] {
        if case .dictionary(let entries) = arguments[index] { entries } else { [] }
    }
}
