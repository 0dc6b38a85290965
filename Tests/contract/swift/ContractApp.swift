import Greenroom

/// Does what contract_app.py does. Each action is visible in the transcript, as a summary.
final class ContractApp: AppDelegate {
    private let app = App.shared
    private var count = 0
    private var later: [Wake] = []
    private var tasks: [BackgroundTask] = []

    /// Reports an action.
    func say(_ text: String) {
        do { try app.setSummary(text) } catch { try? app.setSummary("refused: \(error)") }
    }

    func shouldRestoreState(_ state: RestorationState) -> Bool { state.text != "unwanted" }

    func restoreState(_ state: RestorationState) {
        count = state.text.flatMap { Int($0) } ?? 0
        say("restored \(count)")
    }

    func didBecomeActive(cause: ActivationCause) { say("active \(cause)") }
    func willResignActive(cause: ResignationCause) { say("inactive \(cause)") }
    func willEnterForeground() { say("foreground") }

    func didEnterBackground() {
        count += 1
        do { try app.save("\(count)") } catch { say("not saved: \(error)") }
    }

    func willTerminate(reason: String) { say("terminate \(reason)") }
    func didReceiveMemoryWarning(level: MemoryLevel) { say("memory \(level)") }
    func tasksWillExpire(names: [String], remaining: Duration) { say("expiring \(names.joined(separator: " "))") }

    func didReceivePush(_ push: Wake) throws -> WakeResult {
        switch push.payload {
        case "mode":
            do {
                try app.beginMode(.audio)
                say("mode")
                try app.endMode(.audio)
            } catch {
                say("no mode: \(error)")
                return .failed
            }
        case "scene":
            do {
                try app.beginScene("tools", role: .panel)
                say("scene")
                try app.endScene("tools")
            } catch {
                say("no scene: \(error)")
                return .failed
            }
        case "task":
            do {
                try app.withBackgroundTask(named: "push") { _ in say("task") }
            } catch {
                say("no task: \(error)")
                return .failed
            }
        case "progress":
            try app.withBackgroundTask(named: "push") { task in
                task.progress(0, of: 10, title: "Copying")
                say("half")
                task.progress(10, of: 10)
            }
        case "large": say(String(repeating: "x", count: 100_000))
        case "long":
            let isExpired = try app.withBackgroundTask(named: "long") { task in
                task.waitUntilExpiring(for: .seconds(30))
            }
            say(isExpired ? "expired long" : "not expired")
        case "later":
            later.append(push)
            return .later
        case "handler":
            tasks.append(
                try app.beginBackgroundTask(named: "handler") {
                    // On the thread of the library, which may call it.
                    try? App.shared.setSummary("handler expired")
                    push.complete(.newData)
                })
            return .later
        case "now":
            for wake in later {
                wake.complete(.later)
                wake.complete(.newData)
                wake.complete(.failed)
            }
            later = []
            tasks = []
        case "drop": return .later
        case "throw": throw GreenroomError.ended
        default: break
        }
        return push.payload == "none" ? .noData : .newData
    }

    func didWake(_ wake: Wake) -> WakeResult {
        say("wake \(wake.reason)")
        return wake.reason == "fetch" ? .failed : .newData
    }

    func open(url: String) { say("url \(url)") }
    func didReceiveNotification(kind: String, payload: String) { say("notification \(kind) \(payload)") }
    func withdraw() { say("withdraw") }
    func willSuspend() { say("suspend") }
    func sceneDidChange(_ scene: String, _ notice: SceneNotice) { say("scene \(scene) \(notice.rawValue)") }
    func didDiscardScenes(_ scenes: [String]) { say("discarded \(scenes.joined(separator: " "))") }
    func takeSnapshot() -> Snapshot? { Snapshot(text: "page \(count)") }
    func takeSnapshot(scene: String) -> Snapshot? { Snapshot(text: scene) }

    func didResume(after time: Duration, changed: [String]) {
        let tenths = (time / .milliseconds(100)).rounded()
        say((["resume", "\(tenths / 10)"] + changed).joined(separator: " "))
    }
}
