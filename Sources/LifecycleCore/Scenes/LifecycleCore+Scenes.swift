/// The scenes of apps that have more than one (L34). The app's own states stay as they are: an app is in the foreground as long as one
/// of its scenes has a foreground slot. An app without a list has the scene `main` alone, which is what the app is.
extension LifecycleCore {
    /// More windows than a person tells apart. Each costs an entry here, and one in each answer about the app.
    package static let maximumScenes = 32

    private func scenes(_ index: AppIndex) -> [Scene]? { apps[index].sharedRunStorage?.run.scenes }

    /// The list of an app that runs, with its first scene if it had none.
    func listedScenes(_ index: AppIndex) -> [Scene] {
        if let scenes = scenes(index) { return scenes }
        return [Scene(id: .main, role: .window, state: apps[index].execution?.sceneState ?? .background)]
    }

    private func hasForegroundSlot(_ index: AppIndex, _ scene: SceneID) -> Bool {
        foregroundSlots.contains { $0.app == index && $0.scene == scene }
    }

    /// The scene that an app is activated with, if the request names none: the window activated last, of those in the foreground if
    /// there is one. `wanted`: the one that it names.
    func mostActiveScene(_ index: AppIndex, unless wanted: SceneID? = nil) -> (id: SceneID, role: SceneRole) {
        // Most apps have no list.
        guard let list = scenes(index)?.filter({ !$0.isClosed }) else { return (.main, .window) }
        if let wanted, let scene = list.first(where: { $0.id == wanted }) { return (scene.id, scene.role) }
        let windows = list.filter { $0.role == .window }
        let scene =
            windows.last { hasForegroundSlot(index, $0.id) } ?? windows.last { $0.shown != .unattached } ?? windows.last
            ?? list.last
        return scene.map { ($0.id, $0.role) } ?? (.main, .window)
    }

    /// A scene that was disconnected comes to the foreground.
    mutating func reconnect(_ index: AppIndex, _ id: SceneID) {
        guard let scene = scenes(index)?.first(where: { $0.id == id }), !scene.isConnected else { return }
        connect(index, id, scene.role, state: .unattached)
    }

    // MARK: What the app says

    /// Whether the app may begin and end scenes: with it they end, too.
    func mayChangeScenes(_ index: AppIndex) -> Bool {
        switch apps[index].phase {
        case .notRunning, .terminating, .ending: false
        case .launching, .foreground, .enteringBackground, .background, .suspending, .suspended, .waking: true
        }
    }

    /// A scene that an app in the foreground shows is there too. It counts as activated when the app was: an app does not get ahead of
    /// others by that.
    mutating func sceneBegan(_ index: AppIndex, _ id: SceneID, _ role: SceneRole, _ now: Instant) {
        let list = listedScenes(index)
        let isKnown = list.contains { $0.id == id }
        guard apps[index].policy.role != .worker, isKnown || list.count < Self.maximumScenes else {
            return effects.append(.run(self[run: index].id, .warn(.sceneRefused(id))))
        }
        let scene = connect(index, id, role, state: .background)
        guard let last = foregroundSlots.lastIndex(where: { $0.app == index }), !hasForegroundSlot(index, id) else {
            return
        }
        let slot = ForegroundSlot(
            app: index, scene: id, role: scene.role, isDeferred: foregroundSlots[last].isDeferred)
        foregroundSlots.insert(slot, at: last + 1)
        evictOverLimit(now)
    }

    /// The scene becomes the one of its app activated last. `state`: that of a scene which the app does not have; it is notified of the rest.
    @discardableResult
    mutating func connect(_ index: AppIndex, _ id: SceneID, _ role: SceneRole, state: SceneState) -> Scene {
        var list = listedScenes(index)
        var scene = Scene(id: id, role: takeKept(index, id)?.role ?? role, state: .unattached)
        if let position = list.firstIndex(where: { $0.id == id }) { scene = list.remove(at: position) }
        let before = scene.shown
        scene.isConnected = true
        scene.isClosed = false
        takeBackDiscarded(index, id)
        scene.state = max(scene.state, state)
        if scene.shown != before { report(.sceneChanged(apps[index].id, id, from: before, to: scene.shown)) }
        list.append(scene)
        self[run: index].scenes = list
        return scene
    }

    mutating func sceneEnded(_ index: AppIndex, _ id: SceneID, _ now: Instant) {
        if takeKept(index, id) != nil { return effects.append(.dropRestorationState(apps[index].id, .scene(id))) }
        guard var list = scenes(index), let position = list.firstIndex(where: { $0.id == id }),
            !list[position].isMainWindow || list.contains(where: { $0.id != id && !$0.isClosed })
        else {
            return effects.append(.run(self[run: index].id, .warn(.sceneNotOpen(id))))
        }
        let scene = list.remove(at: position)
        if scene.shown != .unattached {
            report(.sceneChanged(apps[index].id, id, from: scene.shown, to: .unattached))
        }
        if !list.contains(where: { !$0.isClosed }) {
            appendMain(index, &list)
            report(.sceneChanged(apps[index].id, .main, from: .unattached, to: .background))
        }
        self[run: index].scenes = list
        sceneSnapshotTaken(index, id)
        effects.append(.dropRestorationState(apps[index].id, .scene(id)))
        leaveSlot(index, of: scene, now)
    }

    /// It is a scene of the app no more. If no other one is in the foreground, the one of the same role that was activated last gets its
    /// slot.
    private mutating func leaveSlot(_ index: AppIndex, of scene: Scene, _ now: Instant) {
        guard let slot = foregroundSlots.firstIndex(where: { $0.app == index && $0.scene == scene.id }) else { return }
        let isOnly = foregroundSlots.count { $0.app == index } == 1
        if isOnly, let heir = listedScenes(index).last(where: { $0.role == scene.role && !$0.isClosed }) {
            connect(index, heir.id, heir.role, state: .unattached)
            foregroundSlots[slot].scene = heir.id
        } else {
            displace(foregroundSlots.remove(at: slot), .requested, now)
        }
    }

    // MARK: Requests

    /// Whether the app has a scene, or is asked to create it.
    private func refusal(of id: SceneID, _ index: AppIndex, isNewAllowed: Bool) -> Refusal? {
        switch apps[index].phase {
        case .notRunning: return .notRunning
        case .terminating, .ending: return .ending
        case .launching, .foreground, .enteringBackground, .background, .suspending, .suspended, .waking: break
        }
        let list = listedScenes(index)
        if apps[index].policy.role != .worker, list.contains(where: { $0.id == id && !$0.isClosed }) { return nil }
        guard isNewAllowed, apps[index].policy.role != .worker, self[run: index].handled.contains(.scenes) else {
            return .noScene(id)
        }
        return list.count < Self.maximumScenes ? nil : .tooMany("an app has at most \(Self.maximumScenes) scenes")
    }

    mutating func sceneRequested(
        _ request: RequestID, _ index: AppIndex, _ id: SceneID, _ what: SceneRequest, isUnrequested: Bool,
        _ now: Instant
    ) {
        if what == .close { return closeRequested(request, index, id, now) }
        if let refusal = refusal(of: id, index, isNewAllowed: what == .activate) {
            return answer(request, .refused(refusal))
        }
        switch what {
        case .close: break
        case .activate:
            connect(index, id, .window, state: .unattached)
            chooseKept(index, nil)
            let launch = Launch(state: .foreground, reason: .user, isUnrequested: isUnrequested)
            activateRequested(request, index, launch, scene: id, now)
        case .background:
            let own = foregroundSlots.filter { $0.app == index }
            guard own.contains(where: { $0.scene == id }) else { return answer(request, .done(apps[index].state)) }
            if own.count == 1 { return backgroundRequested(request, index, now) }
            leaveForegroundSlot(index, id)
            sendBehind(index, id)
            answer(request, .done(apps[index].state))
        }
    }

    /// The user closes a scene. It goes with its state and its snapshot; a process that has it is notified, when it runs.
    private mutating func closeRequested(_ request: RequestID, _ index: AppIndex, _ id: SceneID, _ now: Instant) {
        if takeKept(index, id) != nil {
            discard(index, id)
            return answer(request, .done(apps[index].state))
        }
        switch apps[index].phase {
        case .notRunning: return answer(request, .refused(.noSuchScene(id)))
        case .terminating, .ending: return answer(request, .refused(.ending))
        case .launching, .foreground, .enteringBackground, .background, .suspending, .suspended, .waking: break
        }
        var list = listedScenes(index)
        guard apps[index].policy.role != .worker,
            let position = list.firstIndex(where: { $0.id == id && !$0.isClosed })
        else { return answer(request, .refused(.noSuchScene(id))) }
        let scene = list[position]
        let isLast = !list.contains { $0.id != id && !$0.isClosed }
        if isLast, scene.isMainWindow { return answer(request, .refused(.lastScene)) }
        (list[position].isConnected, list[position].isClosed) = (false, true)
        if isLast { appendMain(index, &list) }
        self[run: index].scenes = list
        touch(index)
        if scene.shown != .unattached {
            report(.sceneChanged(apps[index].id, id, from: scene.shown, to: .unattached))
        }
        sceneSnapshotTaken(index, id)
        leaveSlot(index, of: scene, now)
        followScenes(index)
        discard(index, id)
        answer(request, .done(apps[index].state))
    }

    /// All others are closed: the app has `main`, as without its last scene.
    private mutating func appendMain(_ index: AppIndex, _ list: inout [Scene]) {
        takeBackDiscarded(index, .main)
        list.removeAll { $0.id == .main }
        if list.count == Self.maximumScenes { list.removeFirst() }
        list.append(Scene(id: .main, role: .window, state: .background))
    }

    /// The app returns with another scene.
    private mutating func sendBehind(_ index: AppIndex, _ id: SceneID) {
        guard var list = scenes(index), let position = list.firstIndex(where: { $0.id == id }) else { return }
        list.insert(list.remove(at: position), at: 0)
        self[run: index].scenes = list
    }

    // MARK: What the app is notified of

    /// Called when an event is carried out that may have changed a scene. A frozen app is notified when it runs again.
    mutating func followScenes(_ index: AppIndex) {
        guard apps[index].sharedRunStorage?.run.hasScenes ?? false else { return }
        switch apps[index].phase {
        case .foreground, .enteringBackground, .background: notifyScenes(index)
        case .notRunning, .launching, .suspending, .suspended, .waking, .terminating, .ending: break
        }
    }

    /// Notifies the app of each step of its scenes to the state that they have now.
    mutating func notifyScenes(_ index: AppIndex) {
        guard let before = scenes(index) else { return }
        var list = before
        let isHandled = self[run: index].handled.contains(.scenes)
        for position in list.indices {
            let (scene, state) = (list[position], currentState(index, list[position]))
            while list[position].state != state {
                let step = list[position].state.step(towards: state)
                list[position].state = step.state
                let isEnd = scene.isClosed && step.notice == .didDisconnect
                if isHandled { notify(index, isEnd ? .sceneClosed(scene.id) : .scene(scene.id, step.notice)) }
                if step.notice == .didEnterBackground, !scene.isClosed { askForSnapshot(index, of: scene.id) }
            }
            // That it is disconnected was reported when it was decided.
            if scene.shown != list[position].shown {
                report(.sceneChanged(apps[index].id, scene.id, from: scene.shown, to: state))
            }
        }
        list.removeAll { $0.isClosed && $0.state == .unattached }
        let isAsApp = list.count == 1 && list[0].isMainWindow && list[0].shown == apps[index].execution?.sceneState
        if isAsApp {
            self[run: index].scenes = nil
        } else if list != before {
            self[run: index].scenes = list
        }
    }

    private func currentState(_ index: AppIndex, _ scene: Scene) -> SceneState {
        guard scene.isConnected else { return .unattached }
        if case .foreground(let foreground)? = apps[index].execution, isInFront(index),
            hasForegroundSlot(index, scene.id)
        {
            return foreground.isActive ? .foregroundActive : .foregroundInactive
        }
        // One that a user has asked for is created when it comes to the foreground.
        return min(scene.state, .background)
    }

    // MARK: Memory

    /// Disconnects the scenes in the background (L35). If none is in the foreground, the one activated last stays: the app returns
    /// with it.
    mutating func disconnectScenes(_ index: AppIndex) {
        guard var list = scenes(index) else { return }
        touch(index)
        let kept = hasForegroundSlot(index) ? nil : list.last { $0.shown == .background }?.id
        for position in list.indices {
            let scene = list[position]
            guard scene.shown == .background, scene.id != kept, !hasForegroundSlot(index, scene.id) else { continue }
            list[position].isConnected = false
            report(.sceneChanged(apps[index].id, scene.id, from: .background, to: .unattached))
        }
        self[run: index].scenes = list
        followScenes(index)
    }

    // MARK: Views

    /// The scenes of an app, those that outlived a process first; empty: it has the scene `main` alone, or does not run.
    func sceneViews(_ app: App) -> [AppView.Scene] {
        let kept = app.keptScenes ?? []
        var scenes = app.sharedRunStorage?.run.scenes?.filter { !$0.isClosed } ?? []
        if !kept.isEmpty, scenes.isEmpty, let state = app.execution?.sceneState {
            scenes = [Scene(id: .main, role: .window, state: state)]
        }
        return (kept + scenes).map { AppView.Scene(id: $0.id, role: $0.role, state: $0.shown) }
    }
}

extension Execution {
    /// The state of the only scene of an app.
    var sceneState: SceneState? {
        switch self {
        case .launching, .terminating: nil
        case .foreground(let foreground): foreground.isActive ? .foregroundActive : .foregroundInactive
        case .enteringBackground, .background, .suspending, .suspended, .waking: .background
        }
    }
}
