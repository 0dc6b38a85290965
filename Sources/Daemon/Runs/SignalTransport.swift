import LifecycleCore
import Linux
import Manifest
import Systemd

/// The run that a transport belongs to.
protocol SignalTransportDelegate: AnyObject {
    /// As the manifest names them.
    var signals: LifecycleSignals { get }
    /// The main process as /proc/PID/status shows it; `nil` if there is none.
    var mainProcessStatus: ProcessStatus? { get }
    /// Whether the main process receives a signal that it does not catch, as this status shows it.
    func reception(of number: Int32, _ status: ProcessStatus) -> SignalReception
    /// Logs a warning about the app's signals, unless there were too many warnings about the app.
    func warn(aboutSignal sentence: String)
    /// Sends a signal to the main process.
    /// - Returns: whether it was sent.
    func sendSignal(_ number: Int32) -> Bool
    /// Sends the signal of `willTerminate` to all processes that are to end by it.
    /// - Returns: whether it was sent to any.
    func sendTerminate(_ number: Int32) -> Bool
    /// The queue has changed. It must be recorded before this returns.
    func queueChanged()
    /// The first notice was removed from the queue. The change of the queue and what follows from it must be recorded
    /// together before this returns. `delivered`: whether a signal was sent that the app receives.
    func notified(_ notice: Notice, delivered: Bool)
    /// The previous daemon died while it sent this notice, and the signal is not pending. It is sent again.
    func sendsAgain(_ notice: Notice)
}

/// Sends lifecycle notices to an app: each as the signal that its manifest names, in order.
///
/// The kernel delivers pending signals in an order of its own (signal(7)). So a notice is sent when the signal of the
/// previous one is no longer pending (L3), but no later than after 1 s: for an app that blocks its signals for longer,
/// a timely notice matters more than the order.
///
/// A signal is sent only to a main process that catches it, or that blocks it in all threads and so may receive it with sigwait(3)
/// or signalfd(2). Any other process would be ended by most signals.
final class SignalTransport {
    /// How often the transport checks whether the signal of the previous notice is pending, or whether the app receives the
    /// next one; with the intervals of
    /// `Retry` this takes 1 s.
    private static let maximumChecks = 12

    private let loop: EventLoop
    private(set) var queue: NoticeQueue
    /// The signal of the previous notice.
    private var lastSignal: Int32?
    /// Whether this daemon has sent a notice, or has one to send.
    private(set) var isUsed: Bool
    /// Waits until that signal is no longer pending.
    private var retry: Retry?
    /// Waits until it is known whether the app receives the signal of `Notification=`.
    private var announcement: Retry?
    /// The settings about which the app was warned, each once in a run.
    private var warned: Set<String> = []
    weak var delegate: (any SignalTransportDelegate)?

    /// - Parameter queue: as the previous daemon recorded it; empty for a new run.
    init(loop: EventLoop, queue: NoticeQueue = NoticeQueue()) {
        self.loop = loop
        self.queue = queue
        isUsed = !queue.isEmpty
    }

    // MARK: Sending

    /// Sends a notice after the waiting ones. `willTerminate` does not wait: all are sent at once.
    func send(_ notice: Notice, _ effect: EffectID) {
        guard queue.accept(notice, of: effect) else { return }
        isUsed = true
        delegate?.queueChanged()
        if notice == .willTerminate || queue.waiting.count > NoticeQueue.capacity {
            sendAll()
        } else {
            sendInOrder()
        }
    }

    /// Sends all waiting notices at once: before the app is frozen or terminates.
    func sendAll() {
        retry = nil
        while let notice = queue.first {
            let status = delegate?.mainProcessStatus
            sendFirst(status, reception(of: notice, status))
        }
    }

    /// Drops all waiting notices: the app is about to be killed, or its main process has ended.
    func discard() {
        retry = nil
        announcement = nil
        guard !queue.isEmpty else { return }
        queue.removeAll()
        delegate?.queueChanged()
    }

    /// Announces new files in the inbox with the signal of `Notification=`, if the app receives it. One that is pending announces
    /// them as well. It is no notice and has no order among them: a frozen app handles it once it is thawed.
    func announceFiles() {
        guard let number = delegate?.signals.notification, announcement == nil else { return }
        var checks = 0
        announcement = Retry.until(loop) { [unowned self] in
            checks += 1
            return announce(number, isLast: checks >= Self.maximumChecks)
        }
    }

    /// - Returns: whether nothing is left to do.
    private func announce(_ number: Int32, isLast: Bool) -> Bool {
        guard let status = delegate?.mainProcessStatus, !status.hasPending(number) else {
            announcement = nil
            return true
        }
        let reception = self.reception(of: number, status)
        if reception == .undecided, !isLast { return false }
        announcement = nil
        if reception == .received {
            _ = delegate?.sendSignal(number)
        } else {
            warnNotSent("Notification", number, status)
        }
        return true
    }

    /// Waits for the signal that the previous daemon sent last, if it is still pending. Otherwise the next notice could
    /// be delivered before it.
    func findPendingSignal() {
        guard let delegate, let status = delegate.mainProcessStatus else { return }
        let signals = delegate.signals
        let all = [
            signals.resignActive, signals.enterBackground, signals.enterForeground, signals.becomeActive,
            signals.memoryWarning, signals.taskExpiring,
        ]
        lastSignal = all.compactMap(\.self).first { status.hasPending($0) }
    }

    /// Sends the notices that the previous daemon recorded but did not send.
    func resume() { sendInOrder() }

    private func sendInOrder() {
        guard retry == nil else { return }
        var checks = 0
        retry = Retry.until(loop) { [unowned self] in sendWaiting(&checks) }
    }

    /// - Parameter checks: of the first notice.
    /// - Returns: whether none is left.
    private func sendWaiting(_ checks: inout Int) -> Bool {
        while let notice = queue.first {
            let status = delegate?.mainProcessStatus
            checks += 1
            let mayWait = checks < Self.maximumChecks
            if mayWait, mustWait(notice, status) { return false }
            let reception = reception(of: notice, status)
            if mayWait, reception == .undecided { return false }
            checks = 0
            sendFirst(status, reception)
        }
        retry = nil
        return true
    }

    private func mustWait(_ notice: Notice, _ status: ProcessStatus?) -> Bool {
        guard let lastSignal, let status, let number = signal(for: notice) else { return false }
        // The previous daemon has sent this notice.
        if queue.isSending, status.hasPending(number) { return false }
        return status.hasPending(lastSignal)
    }

    private func reception(of notice: Notice, _ status: ProcessStatus?) -> SignalReception {
        if notice == .willTerminate { return .received }
        guard let number = signal(for: notice), let status else { return .notReceived }
        return reception(of: number, status)
    }

    private func reception(of number: Int32, _ status: ProcessStatus) -> SignalReception {
        if status.catches(number) { return .received }
        return delegate?.reception(of: number, status) ?? .notReceived
    }

    /// Warns once in a run that the app misses a signal that its manifest names.
    private func warnNotSent(_ setting: String, _ number: Int32, _ status: ProcessStatus?) {
        // Without a main process there is nothing to correct.
        guard let status, status.state != UInt8(ascii: "Z"), warned.insert(setting).inserted else { return }
        delegate?.warn(
            aboutSignal: "\(setting)=\(signalName(number)) was not sent: the main process does not catch it")
    }

    /// Sends the first notice, unless the app does not receive its signal: most programs would be ended by it. SIGTERM,
    /// or what `Terminate=` names, is sent in any case.
    private func sendFirst(_ status: ProcessStatus?, _ reception: SignalReception) {
        guard let notice = queue.first else { return }
        guard let number = signal(for: notice) else { return finish(notice, delivered: false) }
        guard reception == .received else {
            warnNotSent(setting(for: notice), number, status)
            return finish(notice, delivered: false)
        }
        if queue.isSending {
            if status?.hasPending(number) ?? false {
                lastSignal = number
                return finish(notice, delivered: true)
            }
            delegate?.sendsAgain(notice)
        }
        queue.beginSending()
        delegate?.queueChanged()
        let isTermination = notice == .willTerminate
        let isSent = (isTermination ? delegate?.sendTerminate(number) : delegate?.sendSignal(number)) ?? false
        if isSent { lastSignal = number }
        finish(notice, delivered: isSent)
    }

    private func finish(_ notice: Notice, delivered: Bool) {
        queue.removeFirst()
        delegate?.notified(notice, delivered: delivered)
    }

    /// The key in `[Signals]`.
    private func setting(for notice: Notice) -> String {
        switch notice {
        case .willResignActive: "ResignActive"
        case .didEnterBackground: "EnterBackground"
        case .willEnterForeground: "EnterForeground"
        case .didBecomeActive: "BecomeActive"
        case .willTerminate: "Terminate"
        case .memoryWarning: "MemoryWarning"
        case .tasksExpiring: "TaskExpiring"
        case .openURL, .withdraw, .willSuspend, .didResume, .scene, .sceneClosed, .didDiscardScenes, .takeSnapshot,
            .takeSceneSnapshot:
            ""
        }
    }

    private func signal(for notice: Notice) -> Int32? {
        guard let signals = delegate?.signals else { return nil }
        return switch notice {
        case .willResignActive: signals.resignActive
        case .didEnterBackground: signals.enterBackground
        case .willEnterForeground: signals.enterForeground
        case .didBecomeActive: signals.becomeActive
        case .willTerminate: signals.terminate
        case .memoryWarning: signals.memoryWarning
        case .tasksExpiring: signals.taskExpiring
        case .openURL, .withdraw, .willSuspend, .didResume, .scene, .sceneClosed, .didDiscardScenes, .takeSnapshot,
            .takeSceneSnapshot:
            nil
        }
    }
}
