import LifecycleCore

/// A wake that a request asked for, or a launch without one.
struct ModelWake {
    var reason: LaunchReason
    /// It came from outside every app, for something that is not the app's own work.
    var isForOthers: Bool
    /// Its number; 0: it has none yet.
    var number: UInt64 = 0
    /// Its time counts.
    var hasBegun = false
    /// It may have been completed while there was no daemon.
    var isDoubtful = false
    /// It is an error not to complete it (L30).
    var mustComplete = false
    /// Input woke the app: nothing but its beginning, or its completion, says the number.
    var isByInput = false
    /// The app cannot read what it is woken for.
    var isExcused = false
    /// Of a launch that waited and was then asked for by a user: the spawn does not say the reason that it had before.
    var isOfUnknownReason = false

    /// A completion without a number is for the open wake with the lowest order, and of several for the oldest.
    var order: Int { (mustComplete ? 0 : 2) + (isDoubtful ? 1 : 0) }

    /// `policy`: of the app.
    mutating func begin(_ number: UInt64, _ policy: AppPolicy) {
        self.number = number
        hasBegun = true
        mustComplete =
            !isExcused
            && (reason == .push && policy.backgroundModes.contains(.push)
                || reason == .fetch && policy.backgroundModes.contains(.fetch))
    }
}

/// The wakes of an app that have not ended, derived from requests, and from the reports of when they begin and end.
struct ModelWakes {
    /// Open, or to begin when the launch or the thaw is complete. Oldest first.
    private(set) var list: [ModelWake] = []
    /// For the process that follows the end which is under way.
    private var afterEnd: [ModelWake] = []
    /// Why the process was launched.
    private var launchReason = LaunchReason.user
    /// Messages of the process were lost while it was launching or in the background.
    private var isLaunchDoubtful = false

    /// The app must run freely while such a wake is open.
    var isForOthers: Bool { list.contains { $0.hasBegun && $0.isForOthers } }

    mutating func add(_ wake: ModelWake) { list.append(wake) }
    mutating func addForNext(_ wake: ModelWake) { afterEnd.append(wake) }

    /// Whether the app has completed all wakes if it completes one now.
    func isComplete(with number: UInt64?) -> Bool {
        list.isEmpty || (list.count == 1 && (number == nil || list[0].number == number))
    }

    /// The open wake that the app completes.
    func completed(with number: UInt64?) -> UInt64? {
        if number == nil, hasUnknownReason { return nil }
        let named = list.filter { $0.hasBegun && (number == nil || $0.number == number) }
        return named.min { $0.order < $1.order }?.number
    }

    /// Which wake a completion without a number is for is not known.
    var hasUnknownReason: Bool { list.contains { $0.hasBegun && $0.isOfUnknownReason } }

    mutating func addByInput(isForOthers: Bool) {
        list.append(ModelWake(reason: .socket, isForOthers: isForOthers, isByInput: true))
    }

    mutating func excuse(_ number: UInt64) {
        for index in list.indices where list[index].number == number {
            list[index].isExcused = true
            list[index].mustComplete = false
        }
    }

    mutating func doubt() {
        isLaunchDoubtful = true
        for index in list.indices { list[index].isDoubtful = true }
    }

    /// Whether the wake that begins with this number may have been completed before.
    func isDoubtful(_ number: UInt64, isLaunching: Bool) -> Bool {
        next(number).map { list[$0].isDoubtful } ?? (isLaunching && isLaunchDoubtful)
    }

    /// The wake that begins, or is completed before it begins.
    private func next(_ number: UInt64) -> Int? {
        list.firstIndex { $0.number == number && !$0.hasBegun } ?? list.firstIndex { $0.isByInput && !$0.hasBegun }
    }

    // MARK: Reports

    /// The time of a wake counts from now. `policy`: of the app.
    mutating func began(_ number: UInt64, _ policy: AppPolicy) {
        let index = next(number)
        // Nothing but the launch asked for one that is not known.
        var wake =
            index.map { list[$0] } ?? ModelWake(reason: launchReason, isForOthers: false, isDoubtful: isLaunchDoubtful)
        wake.begin(number, policy)
        wake.isOfUnknownReason = index == nil && [.user, .url, .relaunch].contains(launchReason)
        if let index {
            list[index] = wake
        } else {
            // Clients of held sockets launch an app without a request. Requests may have come since.
            list.insert(wake, at: list.firstIndex { $0.number > number } ?? list.count)
        }
    }

    mutating func ended(_ number: UInt64) { list.removeAll { $0.hasBegun && $0.number == number } }

    /// The app has completed a wake, perhaps before it began.
    mutating func completed(_ number: UInt64) { if let index = next(number) { list.remove(at: index) } }

    /// No wake is open and none is to begin in this process.
    mutating func clear() { list = [] }

    // MARK: With the process

    /// A process is launched.
    mutating func begin(_ launch: Launch) {
        launchReason = launch.reason
        isLaunchDoubtful = false
        // The launch may have waited, and further requests may have come meanwhile. Numbers follow the order of requests.
        list = (list + afterEnd).sorted { $0.number < $1.number }
        afterEnd = []
    }

    /// The app is to end, or is not to be launched.
    mutating func discard(hasRun: Bool) {
        dropNext()
        if !hasRun { clear() }
    }

    mutating func dropNext() { afterEnd = [] }
}

extension Request {
    /// What it asks of an app with this manifest: a worker is never in the foreground (L49).
    func reached(by policy: AppPolicy) -> Request {
        guard policy.role == .worker, case .launch(.foreground, let reason, let url, let environment) = self else {
            return self
        }
        return .launch(.background, reason: reason, url: url, environment: environment)
    }
}
