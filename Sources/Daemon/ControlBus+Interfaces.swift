import Control
import JSON
import LifecycleCore
import Manifest
import Systemd

/// The interfaces as introspection shows them. Reading is free; all else needs root, the daemon's own user, or polkit's
/// leave (`Authoriser`).
extension ControlBus {
    func managerInterface() -> BusInterface {
        BusInterface(
            ControlNames.managerInterface, methods: readingMethods() + askingMethods() + machineMethods(),
            properties: [
                BusProperty("MemoryLevel", "s", .announced) { [unowned self] _ in
                    .string(self.shell.core.memory.level.name)
                }
            ],
            signals: [BusSignalDeclaration(ControlNames.newsSignal, "a{sv}", arguments: ["news"])])
    }

    private func readingMethods() -> [BusMethod] {
        [
            BusMethod("List", out: "aa{sv}", results: ["apps"], access: .anyone) { [unowned self] call in
                call.reply([.dictionaries(self.service.appRecords())])
            },
            BusMethod("Status", in: "s", out: "a{sv}", arguments: ["app"], results: ["status"], access: .anyone) {
                [unowned self] call in
                let name = call.text(0)
                guard let record = self.service.appRecord(name) else { return call.fail(self.service.unknownApp(name)) }
                call.reply([.dictionary(record)])
            },
            BusMethod(
                "Receipts", in: "su", out: "aa{sv}", arguments: ["app", "limit"], results: ["receipts"], access: .anyone
            ) { [unowned self] call in self.receipts(call) },
            BusMethod("Receipt", in: "t", out: "a{sv}", arguments: ["id"], results: ["receipt"], access: .anyone) {
                [unowned self] call in self.receipt(call)
            },
            BusMethod("Pressure", out: "a{sv}", results: ["memory"], access: .anyone) { [unowned self] call in
                call.reply([.dictionary(self.service.memoryRecord())])
            },
            BusMethod("Version", out: "s", results: ["version"], access: .anyone) { call in
                call.reply([.string(ControlNames.version)])
            },
        ]
    }

    private func askingMethods() -> [BusMethod] {
        func asking(_ name: String, _ request: Request) -> BusMethod {
            BusMethod(name, in: "s", out: "a{sv}", arguments: ["app"], results: ["result"]) { [unowned self] call in
                self.request(call, call.text(0), request)
            }
        }
        return [
            BusMethod("Launch", in: "sa{sv}", out: "a{sv}", arguments: ["app", "options"], results: ["result"]) {
                [unowned self] call in self.launch(call, call.text(0), call.options(1))
            },
            asking("Activate", .activate), asking("Background", .background), asking("Interrupt", .interrupt),
            asking("Resume", .endInterruption),
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
        ]
    }

    private func machineMethods() -> [BusMethod] {
        [
            BusMethod("SimulatePressure", in: "s", out: "a{sv}", arguments: ["level"], results: ["result"]) {
                [unowned self] call in
                guard let level = MemoryLevel(name: call.text(0)) else {
                    return call.fail(
                        ControlNames.Failure.invalidArgument.error(
                            "“\(call.text(0))” is no memory level; expected normal, warning or critical"))
                }
                self.simulate(call, level)
            },
            BusMethod("Reexec", out: "a{sv}", results: ["result"]) { [unowned self] call in
                call.reply([.dictionary([("outcome", .string("done"))])])
                // Once the answer is on its way.
                self.service.loop.callLater { [service = self.service] in
                    do { try service.reexec() } catch { service.logWarning("not replaced: \(error)") }
                }
            },
            BusMethod("Reload", out: "a{sv}", results: ["result"]) { [unowned self] call in
                call.reply([.dictionary(self.service.reload())])
            },
        ]
    }

    func appInterface() -> BusInterface {
        func asking(_ name: String, _ request: Request) -> BusMethod {
            BusMethod(name, out: "a{sv}", results: ["result"]) { [unowned self] call in
                self.request(call, call.target.id, request)
            }
        }
        func property(_ name: String, _ signature: String, _ change: BusProperty.Change = .announced) -> BusProperty {
            BusProperty(name, signature, change) { [unowned self] target throws(BusError) in
                guard let id = AppID(target.id), let face = self.service.face(of: id),
                    let value = self.service.property(name, of: id, face)
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
                asking("Activate", .activate), asking("Background", .background), asking("Interrupt", .interrupt),
                asking("Resume", .endInterruption),
                BusMethod("Terminate", in: "b", out: "a{sv}", arguments: ["remove"], results: ["result"]) {
                    [unowned self] call in self.request(call, call.target.id, call.flag(0) ? .remove : .terminate)
                },
            ],
            properties: [
                property("Id", "s", .constant), property("Name", "s"), property("State", "s"), property("Pid", "i"),
                property("Foreground", "b"), property("LastReceipt", "t"), property("MemoryBytes", "t", .silent),
                property("Launches", "t", .silent),
            ])
    }

    // MARK: What the methods do

    /// The longest URL, as browsers allow it to be typed and more than a launch environment should hold.
    private static let maximumURL = 8192

    private func launch(_ call: MethodCall, _ app: String, _ options: [(String, Variant)]) {
        var state = LaunchState.foreground
        var reason = LaunchReason.user
        var url: String?
        for (name, value) in options {
            switch name {
            case "background":
                guard let isBackground = value.boolValue else {
                    return invalid(call, "the option background is yes or no (b), not of the type \(value.signature)")
                }
                state = isBackground ? .background : .foreground
            case "reason":
                guard let text = value.stringValue, let named = LaunchReason(rawValue: text) else {
                    let known = LaunchReason.allCases.map(\.rawValue).joined(separator: ", ")
                    return invalid(
                        call, "“\(value.stringValue ?? "")” is no reason to launch; expected one of \(known)")
                }
                reason = named
            case "url":
                guard let text = value.stringValue, !text.isEmpty, text.utf8.count <= Self.maximumURL,
                    text.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7f })
                else {
                    return invalid(call, "a URL has 1 to \(Self.maximumURL) bytes and no spaces or control characters")
                }
                url = text
                if reason == .user { reason = .url }
            default: return invalid(call, "unknown option “\(name)”; known are background, reason and url")
            }
        }
        request(call, app, .launch(state, reason: reason, url: url))
    }

    private func push(_ call: MethodCall) {
        guard call.text(1).utf8.count <= Notification.maximumPayload, !call.text(1).utf8.contains(0) else {
            return invalid(call, "a payload has at most \(Notification.maximumPayload) bytes, and no NUL")
        }
        request(call, call.text(0), .push(payload: call.text(1)))
    }

    private func sendNotification(_ call: MethodCall) {
        guard let notification = Notification(kind: call.text(1), payload: call.text(2)) else {
            let kinds = Notification.kinds.joined(separator: ", ")
            return invalid(
                call,
                "a notification is of one of the kinds \(kinds), or of your own: x- and letters, digits or -; its payload "
                    + "has at most \(Notification.maximumPayload) bytes")
        }
        request(call, call.text(0), .send(notification))
    }

    private func invalid(_ call: MethodCall, _ sentence: String) {
        call.fail(ControlNames.Failure.invalidArgument.error(sentence))
    }

    private func receipts(_ call: MethodCall) {
        let name = call.text(0)
        let limit = call.arguments[1].intValue.map { $0 == 0 ? ReceiptStore.kept : Int($0) } ?? ReceiptStore.kept
        do {
            // Of an app whose manifest is gone there may still be receipts.
            guard name.isEmpty || AppID(name) != nil else { return call.fail(service.unknownApp(name)) }
            let found = try service.receipts.read(app: AppID(name), limit: min(limit, ReceiptStore.kept))
            if found.isEmpty, let id = AppID(name), shell.core.state(of: id) == nil {
                return call.fail(service.unknownApp(name))
            }
            call.reply([.dictionaries(found.map(\.record))])
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
                        "there is no receipt \(id); the last \(ReceiptStore.kept) are kept"))
            }
            call.reply([.dictionary(found.record)])
        } catch {
            call.fail(ControlNames.Failure.failed.error("\(error)"))
        }
    }
}

/// The bus has checked the arguments against the method's signature.
extension MethodCall {
    fileprivate func text(_ index: Int) -> String { arguments[index].stringValue ?? "" }
    fileprivate func flag(_ index: Int) -> Bool { arguments[index].boolValue ?? false }
    fileprivate func options(_ index: Int) -> [(String, Variant)] {
        if case .dictionary(let entries) = arguments[index] { entries } else { [] }
    }
}
