/// What apps with a connection of their own get and say beyond signals and notify messages: URLs (L8), what a suspension
/// was like for them, and the early answer to `willTerminate`.
extension LifecycleCore {
    /// The connections of a run handle other notices now. An app that handles `didEnterBackground` has to answer it (L17).
    mutating func attached(_ index: AppIndex, _ handled: HandledNotices, _ now: Instant) {
        guard apps[index].ending == nil else { return }
        self[run: index].handled = handled
        if handled.contains(.didEnterBackground) { setTakesPart(index, now) }
        notifyOfDiscardedScenes(index)
        if apps[index].phase == .foreground {
            restoreScene(index)
            openURLs(index)
        }
        guard !handled.isEmpty, self[run: index].sleptSince == nil else { return }
        // It has connected while its freeze was under way.
        switch apps[index].phase {
        case .suspending: self[run: index].sleptSince = now
        case .suspended: self[run: index].sleptSince = apps[index].since
        case .notRunning, .launching, .foreground, .enteringBackground, .background, .waking, .terminating, .ending:
            break
        }
    }

    // MARK: URLs (L8)

    /// Why an app is not given a URL now; `nil`: it is.
    func urlRefusal(_ index: AppIndex, _ url: String, _ launch: Launch, _ now: Instant) -> Refusal? {
        guard url.utf8.count <= Launch.maximumURLBytes else {
            return .tooMany("a URL has at most \(Launch.maximumURLBytes) bytes")
        }
        let urls = apps[index].urls
        switch apps[index].phase {
        case .notRunning: if let refusal = refusal(of: launch, index, now) { return refusal }
        // Whether it handles URLs is known when it is ready.
        case .launching: if apps[index].policy.role == .worker { return .opensNoURLs }
        case .foreground, .enteringBackground, .background, .suspending, .suspended, .waking:
            if launch.state == .background { return apps[index].policy.role == .worker ? .opensNoURLs : .running }
            guard self[run: index].handled.contains(.openURL) else { return .opensNoURLs }
        case .terminating, .ending:
            guard urls.afterEnd.count < URLQueue.maximum else { break }
            return nil
        }
        guard urls.pending.count < URLQueue.maximum else {
            return .tooMany("\(URLQueue.maximum) URLs are pending")
        }
        return nil
    }

    /// Keeps a URL for the process that runs, or for the one that comes.
    mutating func fileURL(_ index: AppIndex, _ url: String, _ request: RequestID) {
        let entry = URLQueue.Entry(url: url, request: request)
        switch apps[index].phase {
        case .terminating, .ending: apps[index].urls.afterEnd.append(entry)
        case .notRunning, .launching, .foreground, .enteringBackground, .background, .suspending, .suspended, .waking:
            apps[index].urls.pending.append(entry)
        }
    }

    /// The request is refused after all.
    mutating func withdrawURL(_ index: AppIndex, of request: RequestID) {
        apps[index].urls.pending.removeAll { $0.request == request }
        apps[index].urls.afterEnd.removeAll { $0.request == request }
    }

    /// The clients of the dead daemon are gone.
    mutating func discardURLRequesters(_ index: AppIndex) {
        for position in apps[index].urls.pending.indices { apps[index].urls.pending[position].request = nil }
        for position in apps[index].urls.afterEnd.indices { apps[index].urls.afterEnd[position].request = nil }
    }

    /// The app is in the foreground: sends it the URLs that wait. One that handles none has got that of its launch in its
    /// environment, and the others are refused. Those whose requests were answered before wait on: the app may yet say that it
    /// handles URLs.
    mutating func openURLs(_ index: AppIndex) {
        if apps[index].urls.pending.isEmpty { return }
        let waiting = apps[index].urls.pending
        guard self[run: index].handled.contains(.openURL) else {
            apps[index].urls.pending = []
            for entry in waiting where entry.isOfLaunch || !refuseURL(index, entry) {
                apps[index].urls.pending.append(entry)
            }
            return
        }
        apps[index].urls.pending = []
        for entry in waiting { notify(index, .openURL(entry.url)) }
    }

    /// - Returns: whether its request was still to be answered.
    private mutating func refuseURL(_ index: AppIndex, _ entry: URLQueue.Entry) -> Bool {
        guard let request = entry.request, apps[index].waiters.contains(where: { $0.request == request }) else {
            return false
        }
        apps[index].waiters.removeAll { $0.request == request }
        answer(request, .refused(.opensNoURLs))
        return true
    }

    /// A process is created for the launch: the oldest URL is in its environment.
    mutating func takeLaunchURL(_ index: AppIndex, _ launch: inout Launch) {
        // A launch that an earlier release has planned names its URL itself.
        if apps[index].urls.pending.isEmpty, let url = launch.url { apps[index].urls.pending = [.init(url: url)] }
        guard !apps[index].urls.pending.isEmpty else { return launch.url = nil }
        apps[index].urls.pending[0].isOfLaunch = true
        launch.url = apps[index].urls.pending[0].url
        if launch.reason == .user { launch.reason = .url }
    }

    // MARK: Suspension

    /// The app is to be frozen. What it advertises (a service, a name on a bus, a lease) would mislead others meanwhile (L43). Workers are
    /// not asked: they are resumed for those who reach them.
    /// - Returns: whether its answer is waited for.
    mutating func asksToWithdraw(_ index: AppIndex, _ now: Instant) -> Bool {
        guard self[run: index].handled.contains(.withdraw), apps[index].policy.role != .worker, shutdown == nil else {
            return false
        }
        guard let withdrawal = self[run: index].withdrawal else {
            let time = apps[index].policy.backgroundDeadline ?? Self.longestHook
            self[run: index].withdrawal = Withdrawal(due: now + time)
            // It has connected while a hook ran (L57).
            if self[run: index].hasHooks { self[run: index].hooks?.freezeAt = nil }
            notify(index, .withdraw)
            return true
        }
        if let due = withdrawal.due, now < due { return true }
        self[run: index].withdrawal?.due = nil
        return false
    }

    /// The suspension does not come: the app may advertise again.
    mutating func endWithdrawal(_ index: AppIndex) {
        guard self[run: index].withdrawal != nil else { return }
        self[run: index].withdrawal = nil
        guard self[run: index].handled.contains(.didResume) else { return }
        notify(index, .didResume(after: .zero, changed: []))
    }

    /// Sent before the freeze.
    mutating func notifyOfSuspension(_ index: AppIndex, _ now: Instant) {
        if !self[run: index].handled.isEmpty { self[run: index].sleptSince = now }
        guard self[run: index].handled.contains(.willSuspend) else { return }
        notify(index, .willSuspend)
    }

    /// Sent after the thaw. `delivered`: what was delivered with it.
    mutating func notifyOfResumption(_ index: AppIndex, _ delivered: [Notification], _ now: Instant) {
        self[run: index].withdrawal = nil
        guard let since = self[run: index].sleptSince else { return }
        self[run: index].sleptSince = nil
        guard self[run: index].handled.contains(.didResume) else { return }
        var changed: [String] = []
        for notification in delivered where !changed.contains(notification.kind) { changed.append(notification.kind) }
        notify(index, .didResume(after: now - since, changed: changed))
    }

    // MARK: The end

    /// The app has finished: nothing of it need be waited for.
    mutating func terminationAnswered(_ index: AppIndex, _ now: Instant) {
        guard case .terminating(let terminating)? = apps[index].execution, terminating.cause != .selfInitiated else {
            return
        }
        let use = terminating.deadline.map { deadlineUse(index, $0, cpu: nil, now) }
        metTransitionDeadline(index, now)
        kill(index, .terminationAnswered(terminating.cause, use), terminating.cause.reason, now)
    }
}

/// The app was asked to take back what it advertises, before its suspension.
struct Withdrawal: Hashable, Sendable {
    /// Until when its answer is waited for; `nil`: it has answered, or has not in time.
    var due: Instant?
}
