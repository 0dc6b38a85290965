import LifecycleCore

/// Checks what apps with a connection get: URLs, what a suspension was like, the causes of notices, and the end that they ask for.
struct ConnectionChecker {
    private struct URL {
        let url: String
        let request: RequestID
        /// It is unknown whether the app still gets it: its request was answered otherwise, or no request waits for it.
        var isOptional = false
        /// For the process after the end that is under way.
        var isAfterEnd = false
    }

    private struct App {
        var handled: HandledNotices = []
        var urls: [URL] = []
        var isNotified = false
        var isAsleep = false
        var owesResumption = false
        var before = Before.launch
        var awaitsKill = false
        /// It handles `takeSnapshot`, and was not asked since it was notified of the background.
        var owesSnapshot = false
    }

    /// What came last of the notices that lead to an active app.
    private enum Before { case launch, active, interrupted, background, returning }

    private var apps: [App]
    /// The app that resigned in this event, and why.
    private var resigned: (app: Int, cause: ResignCause)?

    init(apps count: Int) { apps = Array(repeating: App(), count: count) }

    // MARK: Events

    /// Records an event. Called before the core handles it.
    mutating func record(_ event: Event, of app: Int?, _ model: CoreModel) {
        switch event {
        case .requestAbandoned(let request): settle(request) { $0.isOptional = true }
        case .recovered:
            for app in apps.indices { for index in apps[app].urls.indices { apps[app].urls[index].isOptional = true } }
        default: break
        }
        guard let app else { return }
        switch event {
        case .requested(let request, _, .open(let url), by: _),
            .requested(let request, _, .launch(_, _, url: let url?, _), by: _):
            let phase = model.apps[app].phase
            let isAfterEnd = phase == .terminating || phase == .ending
            apps[app].urls.append(URL(url: url, request: request, isAfterEnd: isAfterEnd))
        case .requested(_, _, .remove, by: _):
            for index in apps[app].urls.indices { apps[app].urls[index].isOptional = true }
        case .run(let run, .attached(let handled)) where model.apps[app].run == run && model.apps[app].phase != .ending:
            apps[app].handled = handled
            if !handled.contains(.takeSnapshot) { apps[app].owesSnapshot = false }
        case .run(let run, .terminationAnswered) where model.apps[app].run == run:
            apps[app].awaitsKill = model.apps[app].phase == .terminating && model.apps[app].isNotifiedToTerminate
        default: break
        }
    }

    private mutating func settle(_ request: RequestID, _ change: (inout URL) -> Void) {
        for app in apps.indices {
            for index in apps[app].urls.indices where apps[app].urls[index].request == request {
                change(&apps[app].urls[index])
            }
        }
    }

    // MARK: Effects

    mutating func record(_ effect: Effect, of app: Int?, _ model: CoreModel, _ findings: inout Findings) {
        switch effect {
        case .answer(let request, .refused):
            for app in apps.indices { apps[app].urls.removeAll { $0.request == request } }
        case .answer(let request, .superseded), .answer(let request, .ended):
            settle(request) { $0.isOptional = true }
        default: break
        }
        guard let app else { return }
        switch effect {
        case .spawn(_, _, let launch):
            apps[app] = App(urls: apps[app].urls)
            findings.check(
                launch.url.map { url in apps[app].urls.contains { $0.url == url } } ?? true, .urlsAreOpened,
                "\(model.apps[app].id) is launched with \(launch.url ?? "")")
            // It has got the one of its launch by that, if it handles none.
            if let index = apps[app].urls.firstIndex(where: { $0.url == launch.url }) { markLaunched(app, index) }
        case .report(.stateChanged(_, _, .notRunning, _)): endRun(app)
        case .freeze: freeze(app, model, &findings)
        case .thaw:
            if apps[app].isAsleep { apps[app].owesResumption = apps[app].handled.contains(.didResume) }
            apps[app].isAsleep = false
        case .kill: apps[app].awaitsKill = false
        case .notify(_, let notice): record(notice, of: app, model, &findings)
        default: break
        }
    }

    private mutating func markLaunched(_ app: Int, _ index: Int) {
        // Those before it are gone.
        apps[app].urls.removeSubrange(..<index)
    }

    private mutating func endRun(_ app: Int) {
        apps[app].urls.removeAll { !$0.isAfterEnd }
        for index in apps[app].urls.indices { apps[app].urls[index].isAfterEnd = false }
    }

    private mutating func freeze(_ app: Int, _ model: CoreModel, _ findings: inout Findings) {
        findings.check(
            apps[app].isAsleep || apps[app].isNotified == apps[app].handled.contains(.willSuspend),
            .suspensionsAreNotified,
            "\(model.apps[app].id) is frozen and was \(apps[app].isNotified ? "" : "not ")notified before")
        (apps[app].isAsleep, apps[app].isNotified) = (true, false)
        findings.check(
            !apps[app].owesSnapshot || model.apps[app].policy.role == .worker || model.isShuttingDown,
            .snapshotsAreAskedFor,
            "\(model.apps[app].id) is frozen and was not asked for a snapshot")
    }

    private mutating func record(_ notice: Notice, of app: Int, _ model: CoreModel, _ findings: inout Findings) {
        let id = model.apps[app].id
        let before = apps[app].before
        switch notice {
        case .openURL(let url): open(url, app, model, &findings)
        case .willSuspend: apps[app].isNotified = true
        case .didResume:
            findings.check(apps[app].owesResumption, .suspensionsAreNotified, "\(id) was not asleep, and resumes")
            apps[app].owesResumption = false
        case .willEnterForeground: apps[app].before = .returning
        case .didBecomeActive(let cause):
            let isTrue =
                switch cause {
                case .launch: before == .launch
                case .return: before == .returning
                case .interruptionEnded: before != .active && before != .background
                }
            findings.check(isTrue, .causesAreTrue, "\(id) becomes active (\(cause)) after \(before)")
            apps[app].before = .active
            let isLeft = apps[app].urls.contains { !$0.isOptional && !$0.isAfterEnd }
            findings.check(
                !apps[app].handled.contains(.openURL) || !isLeft, .urlsAreOpened,
                "\(id) becomes active before it was given \(apps[app].urls.first { !$0.isOptional }?.url ?? "")")
        case .willResignActive(let cause):
            resigned = (app, cause)
            apps[app].before = cause == .interruption ? .interrupted : .background
        case .didEnterBackground:
            if let resigned, resigned.app == app {
                findings.check(
                    resigned.cause == .background, .causesAreTrue, "\(id) was interrupted, and enters the background")
            }
            resigned = nil
            apps[app].before = .background
            apps[app].owesSnapshot =
                apps[app].handled.contains(.takeSnapshot) && model.apps[app].policy.role != .worker
        case .willTerminate: resigned = nil
        case .takeSnapshot:
            findings.check(
                apps[app].handled.contains(.takeSnapshot), .snapshotsAreAskedFor,
                "\(id) is asked for a snapshot and handles none")
            apps[app].owesSnapshot = false
        case .memoryWarning, .tasksExpiring, .scene: break
        }
    }

    private mutating func open(_ url: String, _ app: Int, _ model: CoreModel, _ findings: inout Findings) {
        let id = model.apps[app].id
        findings.check(
            apps[app].handled.contains(.openURL) && model.apps[app].state != .background
                && model.apps[app].state != .suspended, .urlsAreOpened,
            "\(id) is given \(url) while it is \(model.apps[app].state) and handles \(apps[app].handled.rawValue)")
        // If several requests have this URL, it is given for the one that must get it, unless that one is preceded by another.
        let isOwed = apps[app].urls.first { !$0.isOptional }?.url == url
        guard let index = apps[app].urls.firstIndex(where: { $0.url == url && !(isOwed && $0.isOptional) }) else {
            return findings.check(false, .urlsAreOpened, "\(id) is given \(url), which no request has, or again")
        }
        findings.check(
            apps[app].urls[..<index].allSatisfy(\.isOptional), .urlsAreOpened,
            "\(id) is given \(url) before \(apps[app].urls[0].url)")
        // It may have been given for an optional request before, so those after that one can follow, and the one that must get it is still
        // to come, or was this one.
        let first = apps[app].urls[...index].firstIndex { $0.url == url } ?? index
        var left = Array(apps[app].urls[first...index].dropFirst())
        if first < index { left[left.count - 1].isOptional = true }
        apps[app].urls.replaceSubrange(...index, with: left)
    }

    /// After all effects of an event.
    mutating func verify(_ model: CoreModel, concerning concerned: [Int], _ findings: inout Findings) {
        if let resigned {
            findings.check(
                resigned.cause == .interruption, .causesAreTrue,
                "\(model.apps[resigned.app].id) resigned for the background, and does not enter it")
        }
        resigned = nil
        for app in concerned {
            let id = model.apps[app].id
            findings.check(!apps[app].owesResumption, .suspensionsAreNotified, "\(id) is thawed and not notified")
            findings.check(!apps[app].awaitsKill, .answeredEndsAreImmediate, "\(id) has finished, and is not killed")
            (apps[app].owesResumption, apps[app].awaitsKill) = (false, false)
        }
    }
}
