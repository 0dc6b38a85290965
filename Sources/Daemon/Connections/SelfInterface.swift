import Control
import LifecycleCore
import Systemd

/// org.greenroom.Self1 as introspection shows it. Access is decided when a process connects.
struct SelfInterface {
    static let busName = ControlNames.busName
    static let path = ControlNames.selfPath
    static let name = ControlNames.selfInterface
    static let eventSignal = "Event"

    unowned let connections: AppConnections

    var interface: BusInterface {
        BusInterface(
            Self.name, methods: lifecycleMethods + taskMethods + reportMethods + stateMethods,
            signals: [
                BusSignalDeclaration(Self.eventSignal, "tsa{sv}", arguments: ["serial", "kind", "details"])
            ])
    }

    private func method(
        _ name: String, in input: String = "", out output: String = "", _ arguments: [String] = [],
        _ results: [String] = [], takesDescriptors: Bool = false,
        _ body: @escaping (ConnectionTransport, MethodCall) throws(BusError) -> Void
    ) -> BusMethod {
        BusMethod(
            name, in: input, out: output, arguments: arguments, results: results, access: .anyone,
            takesDescriptors: takesDescriptors
        ) { [unowned connections] call in
            guard let transport = connections[call] else { return }
            do throws(BusError) { try body(transport, call) } catch { call.fail(error) }
        }
    }

    private var lifecycleMethods: [BusMethod] {
        [
            method("Attach", in: "a{sv}", out: "a{sv}", ["options"], ["launch"]) { (own, call) throws(BusError) in
                try own.attach(call)
            },
            method("Ready") { (own, call) throws(BusError) in own.say(.transition(.ready), call) },
            method("Answer", in: "ta{sv}", ["serial", "options"]) { (own, call) throws(BusError) in
                try own.answer(call)
            },
        ]
    }

    private var taskMethods: [BusMethod] {
        [
            method("BeginTask", in: "ss", out: "t", ["name", "token"], ["remainingMicroseconds"]) {
                (own, call) throws(BusError) in try own.beginTask(call)
            },
            method("EndTask", in: "s", ["token"]) { (own, call) throws(BusError) in try own.endTask(call) },
            method("SetTaskProgress", in: "stts", ["name", "done", "total", "title"]) { (own, call) throws(BusError) in
                try own.setTaskProgress(call)
            },
            method("BeginMode", in: "s", ["mode"]) { (own, call) throws(BusError) in try own.beginMode(call) },
            method("EndMode", in: "s", ["mode"]) { (own, call) throws(BusError) in try own.endMode(call) },
            method("BeginScene", in: "ss", ["scene", "role"]) { (own, call) throws(BusError) in try own.beginScene(call)
            },
            method("EndScene", in: "s", ["scene"]) { (own, call) throws(BusError) in try own.endScene(call) },
            method("RemainingTime", out: "t", [], ["remainingMicroseconds"]) { (own, call) throws(BusError) in
                call.reply([.uint64(own.remainingMicroseconds)])
            },
        ]
    }

    private var reportMethods: [BusMethod] {
        [
            method("SetStatus", in: "s", ["text"]) { (own, call) throws(BusError) in own.setStatus(call) },
            method("SetStateSummary", in: "s", ["text"]) { (own, call) throws(BusError) in
                try own.setStateSummary(call)
            },
            method("Heartbeat") { (own, call) throws(BusError) in own.say(.watchdog(.heartbeat), call) },
            method("Stopping") { (own, call) throws(BusError) in own.say(.transition(.stopping), call) },
            method("SetIdle", in: "b", ["idle"]) { (own, call) throws(BusError) in
                own.setIdle(call)
            },
        ]
    }

    private var stateMethods: [BusMethod] {
        [
            method("SaveState", in: "h", ["state"], takesDescriptors: true) { (own, call) throws(BusError) in
                try own.save(call, StoredDescriptors.state)
            },
            method("SaveSnapshot", in: "h", ["snapshot"], takesDescriptors: true) { (own, call) throws(BusError) in
                try own.save(call, StoredDescriptors.snapshot)
            },
            method("SaveSnapshotAs", in: "sh", ["type", "snapshot"], takesDescriptors: true) {
                (own, call) throws(BusError) in try own.saveTypedSnapshot(call)
            },
            method("GetState", out: "h", [], ["state"]) { (own, call) throws(BusError) in try own.getState(call) },
            method("SaveSceneState", in: "sh", ["scene", "state"], takesDescriptors: true) {
                (own, call) throws(BusError) in try own.saveSceneState(call)
            },
            method("GetSceneState", in: "s", out: "h", ["scene"], ["state"]) { (own, call) throws(BusError) in
                try own.getSceneState(call)
            },
            method(
                "SaveSceneSnapshot", in: "ssh", ["scene", "type", "snapshot"], takesDescriptors: true
            ) { (own, call) throws(BusError) in try own.saveSceneSnapshot(call) },
            method("DropState") { (own, call) throws(BusError) in
                own.context.storage.stored.remove(StoredDescriptors.state, of: own.run.app)
                call.reply()
            },
        ]
    }
}
