import Control
import LifecycleCore
import Linux
import Posix
import Systemd

/// The snapshots of apps for clients that show them (L18). Those who may manage an app may see its snapshot, and only they: it may
/// show what other users are not to read.
extension ControlBus {
    func snapshotMethods() -> [BusMethod] {
        [
            BusMethod("GetSnapshot", out: "hst", results: ["snapshot", "type", "time"]) { [unowned self] call in
                service.whenStarted(call) { self.getSnapshot(call, isByDescriptor: true) }
            },
            BusMethod("ReadSnapshot", out: "ayst", results: ["contents", "type", "time"]) { [unowned self] call in
                service.whenStarted(call) { self.getSnapshot(call, isByDescriptor: false) }
            },
            BusMethod(
                "GetSceneSnapshot", in: "s", out: "hst", arguments: ["scene"], results: ["snapshot", "type", "time"]
            ) { [unowned self] call in service.whenStarted(call) { self.getSceneSnapshot(call, isByDescriptor: true) }
            },
            BusMethod(
                "ReadSceneSnapshot", in: "s", out: "ayst", arguments: ["scene"], results: ["contents", "type", "time"]
            ) { [unowned self] call in service.whenStarted(call) { self.getSceneSnapshot(call, isByDescriptor: false) }
            },
            BusMethod(
                "SetSnapshot", in: "sh", arguments: ["type", "snapshot"], takesDescriptors: true
            ) { [unowned self] call in setSnapshot(call, type: call.text(0)) },
            BusMethod(
                "SetSceneSnapshot", in: "ssh", arguments: ["scene", "type", "snapshot"], takesDescriptors: true
            ) { [unowned self] call in
                guard let scene = scene(call, call.text(0)) else { return }
                setSnapshot(call, of: scene, type: call.text(1))
            },
        ]
    }

    private func getSceneSnapshot(_ call: MethodCall, isByDescriptor: Bool) {
        guard let scene = scene(call, call.text(0)) else { return }
        getSnapshot(call, of: scene, isByDescriptor: isByDescriptor)
    }

    /// - Parameters:
    ///   - scene: `nil`: that of the app.
    ///   - isByDescriptor: of the private socket: the contents are not copied.
    private func getSnapshot(_ call: MethodCall, of scene: SceneID? = nil, isByDescriptor: Bool) {
        let name = call.target.id
        guard let id = AppID(name), let rules = driver.core.snapshotRules(of: id) else {
            return call.fail(service.unknownApp(name))
        }
        if rules.isHidden { return fail(call, .snapshotHidden, "its manifest hides it (SnapshotPrivacy=hidden)") }
        if rules.isWithheld {
            return fail(call, .snapshotWithheld, "it may show protected data, and the screen is locked")
        }
        // This program takes no descriptors from the message bus, so the bus passes none to its clients either.
        if isByDescriptor, call.peer.isOnBus {
            return fail(
                call, .failed,
                "the message bus passes no descriptors of greenroomd; use Read\(call.member.dropFirst(3))")
        }
        do {
            let scene = scene ?? service.sceneForSnapshot(of: id, service.view(of: id))
            guard let snapshot = try service.context.storage.stored.snapshot(of: id, scene) else {
                return fail(call, .noSnapshot, "it has none")
            }
            // Up to 8 MiB are copied.
            service.context.loop.work.add { [weak self] in
                self?.giveSnapshot(snapshot.file, snapshot.about, call, isByDescriptor: isByDescriptor) ?? false
            }
        } catch {
            fail(call, .failed, "\(error)")
        }
    }

    /// - Returns: whether more is to be copied before the answer.
    private func giveSnapshot(
        _ file: ReadOnlyMemoryFile, _ about: SnapshotFacts, _ call: MethodCall, isByDescriptor: Bool
    ) -> Bool {
        do {
            if try file.advance() { return true }
            let reader = try file.reader()
            let facts: [Variant] = [.string(about.type), .uint64(about.time.microseconds)]
            if isByDescriptor {
                call.reply([.descriptor(reader)] + facts)
                return false
            }
            let limit = StoredDescriptors.sizeLimit(of: StoredDescriptors.snapshot) ?? 0
            call.reply([.bytes(try MemoryFile.contents(reader.descriptor, limit: limit) ?? [])] + facts)
        } catch {
            fail(call, .failed, "\(error)")
        }
        return false
    }

    /// For an app that is not asked: what shows its windows gives the snapshot.
    private func setSnapshot(_ call: MethodCall, of scene: SceneID? = nil, type: String) {
        service.whenStarted(call) { [self] in
            let name = call.target.id
            guard let id = AppID(name), let rules = driver.core.snapshotRules(of: id, scene) else {
                return call.fail(service.unknownApp(name))
            }
            if rules.isHidden { return fail(call, .snapshotHidden, "its manifest hides it (SnapshotPrivacy=hidden)") }
            if rules.isGivenByApp { return fail(call, .failed, "the app takes its snapshots itself") }
            if let scene, !hasScene(id, scene) { return fail(call, .noScene, "it has no such scene") }
            guard MediaType.isValid(type) else {
                let shown = type.printable(upTo: MediaType.maximumLength)
                return fail(call, .invalidArgument, "the type '\(shown)' is not \(MediaType.expected)")
            }
            guard case .descriptor(let shared)? = call.arguments.last else {
                return fail(call, .invalidArgument, "the call has no descriptor")
            }
            if let reason = StoredDescriptors.reasonToRefuse(contentsOf: shared) {
                return fail(call, .invalidArgument, reason)
            }
            store(shared, type, of: id, scene, call)
        }
    }

    private func hasScene(_ id: AppID, _ scene: SceneID) -> Bool {
        guard let view = service.view(of: id) else { return false }
        return view.ownScenes.isEmpty ? scene == .main : view.ownScenes.contains { $0.id == scene }
    }

    private func store(
        _ shared: SharedDescriptor, _ type: String, of id: AppID, _ scene: SceneID?, _ call: MethodCall
    ) {
        do {
            let stored = service.context.storage.stored
            switch stored.add(
                try shared.descriptor.duplicate(),
                scene.map(StoredDescriptors.snapshot(of:)) ?? StoredDescriptors.snapshot, type, of: id,
                closer: DescriptorCloser())
            {
            case .refused(let reason): fail(call, .invalidArgument, reason)
            case .stored(_, let problem):
                if let problem { service.context.journal.logWarning(problem, app: id) }
                call.reply()
            }
        } catch {
            fail(call, .failed, "\(error)")
        }
    }

    private func fail(_ call: MethodCall, _ failure: ControlNames.Failure, _ reason: String) {
        let what =
            switch call.member {
            case "SetSnapshot": "set the snapshot of"
            case "SetSceneSnapshot": "set the snapshot of the scene '\(call.text(0))' of"
            case "GetSceneSnapshot", "ReadSceneSnapshot": "give the snapshot of the scene '\(call.text(0))' of"
            default: "give the snapshot of"
            }
        call.fail(failure.error("Cannot \(what) '\(call.target.id)': \(reason)."))
    }
}
