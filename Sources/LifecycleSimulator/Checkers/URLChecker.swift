import LifecycleCore

/// Checks that each URL that is accepted is given once, in order and before the app becomes active, to an app that handles URLs
/// (L8).
struct URLChecker {
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
    }

    private var apps: [App]

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
        case .run(let run, .connection(.attached(let handled)))
        where model.apps[app].run == run && model.apps[app].phase != .ending:
            apps[app].handled = handled
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
        case .run(_, .notify(.openURL(let url))): open(url, app, model, &findings)
        case .run(_, .notify(.didBecomeActive)):
            let left = apps[app].urls.first { !$0.isOptional && !$0.isAfterEnd }
            findings.check(
                !apps[app].handled.contains(.openURL) || left == nil, .urlsAreOpened,
                "\(model.apps[app].id) becomes active before it was given \(left?.url ?? "")")
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
        // It may have been given for an optional request before, so those after that one can follow, and the one that must get it is
        // still to come, or was this one.
        let first = apps[app].urls[...index].firstIndex { $0.url == url } ?? index
        var left = Array(apps[app].urls[first...index].dropFirst())
        if first < index { left[left.count - 1].isOptional = true }
        apps[app].urls.replaceSubrange(...index, with: left)
    }
}
