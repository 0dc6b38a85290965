import LifecycleCore
import Linux
import LoopPolicy
import Posix
import Systemd

/// Asks the kernel what looks want to know about sockets, on helper threads: an answer can take as long as another process
/// likes. Each question has a thread of its own, and an app has one question at a time. So an app whose question is not
/// answered delays no other.
///
/// A thread that has not answered in time is left alone: it ends when the lock for which it waits is released. Until then its
/// app is not asked about.
final class SocketAsker {
    enum Answer {
        /// The size of the answers, for `WorkLook.answered`.
        case answered(bytes: UInt64)
        /// There was none for `SocketAsker.timeout`.
        case late
        /// There is nothing left for a thread, or the kernel cannot be asked.
        case failed
    }

    private final class Helper {
        let thread: HelperThread
        var source: EventSource?
        /// What it is doing.
        var app: AppID?

        init(_ thread: HelperThread) { self.thread = thread }
    }
    private struct Question {
        let due: Duration
        let completion: (Answer) -> Void
    }

    /// An answer takes some µs for each socket, 3 ms at most.
    static let timeout = Duration.seconds(2)
    /// How many helpers without a question keep their descriptors. Few questions are open at the same time.
    private static let mostIdle = 2

    private let loop: EventLoop
    /// Whether one request that waits delays all others (before Linux 6.9): then there is no second thread.
    private let isSerialized: Bool
    /// Those that may still be answered in time.
    private var questions: [AppID: Question] = [:]
    /// Those that have not answered in time.
    private var lateApps: Set<AppID> = []
    private var idle: [Helper] = []
    /// All with a question, by number: the loop's sources refer to them.
    private var busy: [UInt64: Helper] = [:]
    private var lastNumber: UInt64 = 0
    private var timer: Systemd.Timer?

    init(_ loop: EventLoop, isSerialized: Bool) {
        self.loop = loop
        self.isSerialized = isSerialized
    }

    /// Whether no question is open that a look at the app would have to wait for.
    func isFree(for app: AppID) -> Bool { isSerialized ? questions.isEmpty : questions[app] == nil }

    /// Whether a question about the app can be asked now.
    func mayAsk(about app: AppID) -> Bool {
        isFree(for: app) && (isSerialized ? lateApps.isEmpty : !lateApps.contains(app))
    }

    /// - Parameter completion: called in a later turn of the loop, or in this one if the question cannot be asked.
    func ask(_ question: SocketQuestion, about app: AppID, completion: @escaping (Answer) -> Void) {
        guard mayAsk(about: app), let helper = makeHelper() else { return completion(.failed) }
        helper.thread.setOwner(app.name)
        lastNumber += 1
        guard (try? question.submit(to: helper.thread, token: lastNumber)) ?? false else {
            return completion(.failed)
        }
        helper.app = app
        busy[lastNumber] = helper
        questions[app] = Question(due: loop.now() + Self.timeout, completion: completion)
        if questions.count == 1 { armTimer() }
    }

    private func makeHelper() -> Helper? {
        if let helper = idle.popLast() { return helper }
        guard let thread = try? HelperThread(name: "sockets", .examines), let completions = thread.completions else {
            return nil
        }
        let helper = Helper(thread)
        helper.source = try? loop.addDescriptor(completions, events: .readable, kind: .helperAnswer) {
            [weak self, weak helper] _ in
            guard let self, let helper else { return .nothing }
            return TurnResult(collect(helper))
        }
        return helper.source == nil ? nil : helper
    }

    /// - Returns: whether the helper has answered.
    private func collect(_ helper: Helper) -> Bool {
        let all = (try? helper.thread.collect()) ?? []
        for done in all {
            busy[done.token] = nil
            guard let app = helper.app else { continue }
            helper.app = nil
            if idle.count < Self.mostIdle { idle.append(helper) }
            if lateApps.remove(app) != nil { continue }
            guard let question = questions.removeValue(forKey: app) else { continue }
            if questions.isEmpty { armTimer() }
            question.completion(done.errno == 0 ? .answered(bytes: done.bytes) : .failed)
        }
        return !all.isEmpty
    }

    // MARK: Time

    /// Without an open question the daemon is not woken.
    private func armTimer() {
        if timer == nil { timer = try? loop.makeTimer(kind: .appTimer) { [weak self] _ in self?.endQuestions() } }
        timer?.arm(at: questions.values.map(\.due).min())
    }

    private func endQuestions() {
        let now = loop.now()
        let due = questions.filter { $0.value.due <= now }.keys.sorted()
        for app in due {
            guard let question = questions.removeValue(forKey: app) else { continue }
            lateApps.insert(app)
            question.completion(.late)
        }
        armTimer()
    }
}
