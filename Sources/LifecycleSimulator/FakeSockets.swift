import LifecycleCore

/// What the manifest of an app says about held sockets, unloading and instances (L29). It is drawn once for each app; a manifest
/// that is read again may add or remove the sockets.
struct SocketSettings {
    var holds = false
    var connectionWait: Duration? = .seconds(60)
    var unloadAfter: Duration?
    var isTransient = false
    /// It does not accept for a while when it runs.
    var isSlow = false
}

/// A client that waits at a held socket.
struct FakeClient {
    let number: Int
    let isDatagram: Bool
}

/// The sockets that the daemon holds, and their clients. They have a random stream of their own.
struct FakeSockets {
    struct App {
        /// The daemon has the sockets: it read the manifest.
        var isHeld = false
        /// Clients whose connections no process has accepted, and datagrams that none has read.
        var clients: [FakeClient] = []
        /// The number of the watch that has not reported anything; `nil`: there is none.
        var watch: Int?
        /// The run that is about to accept.
        var accepting: Int?
    }

    var random: Random
    /// By app; empty: no app has sockets in this seed.
    var settings: [SocketSettings] = []
    var apps: [App]
    /// The last number of a client or a watch.
    private var last = 0

    private static let waits: [Duration?] = [
        .seconds(60), .seconds(60), .seconds(20), .seconds(3), .milliseconds(1), nil,
    ]
    private static let unloadTimes: [Duration?] = [
        nil, nil, .seconds(300), .seconds(20), .seconds(2), .milliseconds(100),
    ]

    init(_ scenario: Scenario) {
        random = Random(seed: scenario.seed ^ 0x736f_636b_6574)
        apps = Array(repeating: App(), count: scenario.apps.count)
        guard scenario.hasSockets else { return }
        let hasInstances = random.chance(600)
        for index in scenario.apps.indices {
            var drawn = SocketSettings()
            drawn.holds = random.chance(700)
            drawn.connectionWait = random.pick(Self.waits)
            drawn.unloadAfter = random.pick(Self.unloadTimes)
            drawn.isTransient = random.chance(350) && hasInstances
            drawn.isSlow = random.chance(250)
            let isHome = index < scenario.homeApps
            settings.append(isHome ? SocketSettings() : drawn)
        }
    }

    mutating func nextNumber() -> Int {
        last += 1
        return last
    }
}

/// What happens at the held sockets of an app.
enum SocketAction {
    /// The daemon sees that something waits.
    case report(watch: Int)
    /// A client does not wait any longer.
    case leave(client: Int)
}
