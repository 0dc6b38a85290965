import Glibc
import Greenroom

/// The app of ContractChaosTests: it writes a line to the file CHAOS_LOG for each event that it has handled.
final class ChaosApp: AppDelegate {
    private let app = App.shared
    private let file: Int32
    private var count = 0

    init() {
        let path = getenv("CHAOS_LOG").map { String(cString: $0) } ?? ""
        file = Glibc.open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0o644)
        say("launch")
    }

    private func say(_ text: String) {
        let line = Array((text + "\n").utf8)
        guard write(file, line, line.count) == line.count else { fatalError("CHAOS_LOG: error \(errno)") }
    }

    func didBecomeActive(cause: ActivationCause) { say("active \(cause)") }
    func willResignActive(cause: ResignationCause) { say("inactive \(cause)") }
    func willEnterForeground() { say("foreground") }
    func open(url: String) { say("url \(url)") }

    func didEnterBackground() throws {
        count += 1
        defer { say("background") }
        try app.withBackgroundTask(named: "save") { _ in try app.save("\(count)") }
    }

    func didReceivePush(_ push: Wake) throws -> WakeResult {
        try app.withBackgroundTask(named: "push") { _ in say("push \(push.payload)") }
        return .newData
    }
}
