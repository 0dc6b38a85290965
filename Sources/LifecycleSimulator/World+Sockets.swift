import LifecycleCore

/// Simulates the sockets that the daemon holds for apps: clients, the watch, and how apps accept (L29). The kernel keeps what waits,
/// whatever happens to the app and the daemon.
extension World {
    /// `ListenStream=`, `ConnectionWaitSec=`, `UnloadAfterSec=`, and instances of templates.
    mutating func addSockets(to index: Int) {
        guard index < sockets.settings.count else { return }
        if now > 0, !isQuiet, index >= scenario.homeApps, sockets.random.chance(300) {
            sockets.settings[index].holds.toggle()
        }
        let settings = sockets.settings[index]
        apps[index].policy.holdsSockets = settings.holds
        apps[index].policy.connectionWait = settings.connectionWait
        apps[index].policy.unloadAfter = settings.unloadAfter
        apps[index].policy.isTransient = settings.isTransient
    }

    /// Whether clients wait at the held sockets of an app.
    func hasClients(_ app: Int) -> Bool { !sockets.apps[app].clients.isEmpty }

    // MARK: The daemon

    /// The core receives a manifest: the daemon has created or closed the sockets before.
    mutating func registeredSockets(_ app: Int, _ policy: AppPolicy) {
        sockets.apps[app].isHeld = policy.holdsSockets
        if !policy.holdsSockets { removeClients(of: app) { _ in true } }
    }

    mutating func unregisteredSockets(_ id: AppID) {
        guard let app = indexes[id] else { return }
        sockets.apps[app].isHeld = false
        removeClients(of: app) { _ in true }
    }

    /// They were something to do for the app until now.
    private mutating func removeClients(of app: Int, where isMeant: (FakeClient) -> Bool) {
        if let run = apps[app].run, hasClients(app) { traffic.runs[run].lastWork = now }
        sockets.apps[app].clients.removeAll(where: isMeant)
    }

    /// - Returns: why the effect is invalid, as a sentence; `nil`: it was performed.
    mutating func performSockets(_ effect: Effect) -> String? {
        switch effect {
        case .sockets(let id, .watch):
            guard let app = indexes[id], sockets.apps[app].isHeld else { return "\(id) has no sockets to watch" }
            sockets.apps[app].watch = sockets.nextNumber()
            planReport(app)
        case .sockets(let id, .stopWatching): if let app = indexes[id] { sockets.apps[app].watch = nil }
        case .sockets(let id, .reject):
            guard let app = indexes[id] else { return "\(id) is unknown" }
            if let run = apps[app].run, !runs[run].delivered.isOver {
                return "connections of \(id) are reset while it runs"
            }
            sockets.apps[app].clients.removeAll { !$0.isDatagram }
        case .removeInstance(let id):
            guard let app = indexes[id] else { return "\(id) is unknown" }
            apps[app].isRegistered = false
            apps[app].launches = 0
            sockets.apps[app] = FakeSockets.App()
        default: break
        }
        return nil
    }

    /// What waits is reported once for each watch, also if it came before.
    private mutating func planReport(_ app: Int) {
        guard let watch = sockets.apps[app].watch, hasClients(app) else { return }
        queue.push(.socket(app, .report(watch: watch)), at: now + sockets.random.within(5...2000))
    }

    /// The daemon has died. Its sockets are kept, or, if the app does not run, sometimes lost with their clients.
    mutating func loseSocketWatches() {
        for app in sockets.apps.indices {
            sockets.apps[app].watch = nil
            let isRunning = apps[app].run.map { !runs[$0].isEmpty } ?? false
            if !isRunning, hasClients(app), sockets.random.chance(200) { sockets.apps[app].clients = [] }
        }
    }

    mutating func act(_ action: SocketAction, at app: Int) {
        switch action {
        case .report(let watch):
            guard sockets.apps[app].watch == watch, let client = sockets.apps[app].clients.first else { return }
            sockets.apps[app].watch = nil
            let kind: InputKind = client.isDatagram ? .datagram : .listener
            let input = Input(kind: kind, pid: 0, descriptor: 3, bytes: client.isDatagram ? 20 : 0, peer: "[::]:80")
            deliver(.socketsReady(apps[app].id, input), after: sockets.random.within(5...500))
        case .leave(let client): removeClients(of: app) { $0.number == client }
        }
    }

    // MARK: Clients

    /// A client comes to an app, at random intervals. Some ask for an instance that does not exist.
    mutating func actAsClient() {
        if isQuiet { return }
        queue.push(.client, at: now + 1 + sockets.random.within(0...2 * scenario.pace))
        let candidates = sockets.random.chance(500) ? min(2, apps.count) : apps.count
        let app = sockets.random.below(candidates)
        if !apps[app].isRegistered, app < sockets.settings.count, sockets.settings[app].isTransient {
            return createInstance(app)
        }
        connect(app)
        if sockets.random.chance(200) { for _ in 0..<sockets.random.below(6) { connect(app) } }
    }

    /// A launch of an instance without a file creates it.
    private mutating func createInstance(_ app: Int) {
        register(app)
        lastRequest += 1
        let environment = sockets.random.chance(300) ? ["NUMBER=\(lastRequest)"] : []
        let request: Request =
            sockets.random.chance(300)
            ? .activate : .launch(.background, reason: .user, url: nil, environment: environment)
        deliver(.requested(RequestID(lastRequest), apps[app].id, request), after: 0)
    }

    private mutating func connect(_ app: Int) {
        guard sockets.apps[app].isHeld, sockets.apps[app].clients.count < 20 else { return }
        let number = sockets.nextNumber()
        sockets.apps[app].clients.append(FakeClient(number: number, isDatagram: sockets.random.chance(150)))
        if sockets.random.chance(300) {
            let timeout: Microseconds = sockets.random.pick([
                2 * .millisecond, 300 * .millisecond, 5 * .second, 90 * .second,
            ])
            queue.push(.socket(app, .leave(client: number)), at: now + timeout)
        }
        planReport(app)
        planAccept(app)
    }

    /// A process that runs accepts soon; one that is frozen, when it is thawed.
    mutating func planAccept(_ app: Int) {
        guard hasClients(app), let run = apps[app].run, runs[run].program == .running,
            sockets.apps[app].accepting != run
        else { return }
        sockets.apps[app].accepting = run
        let isSlow = sockets.settings[app].isSlow && allows(.acceptsLate)
        let time =
            isSlow ? sockets.random.within(1 * .second...20 * .second) : sockets.random.within(50...20 * .millisecond)
        plan(.accept, by: run, after: time)
    }

    mutating func acceptClients(_ run: Int) {
        let app = runs[run].app
        sockets.apps[app].accepting = nil
        for client in sockets.apps[app].clients {
            traffic.runs[run].lastWork = now
            if !client.isDatagram { beginRequest(run) }
        }
        sockets.apps[app].clients = []
    }

    /// From now on each app accepts at once.
    mutating func acceptAll() {
        for app in sockets.apps.indices {
            sockets.apps[app].accepting = nil
            if app < sockets.settings.count { planAccept(app) }
        }
    }
}
