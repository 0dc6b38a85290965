import Control
import LifecycleCore
import Linux
import Systemd

/// Answers `List` in pieces: the records of 1,000 apps take some 50 ms. Each record is consistent; an app may change before the
/// next record is made.
final class StatusList {
    private unowned let service: ControlService
    private var waiting: [MethodCall] = []
    private var isRunning = false
    private var sort: StepwiseSort<String>?
    private var names: ArraySlice<String> = []
    /// The last app of the answer.
    private var last: String?
    private var reply: ArrayReply?
    /// In process-group mode: one search of /proc for all apps.
    private var scan: ProcessScan?
    private var isScanned = true

    /// The most calls that wait for their answer. A client can send calls without waiting.
    static let maximumWaiting = 1024

    init(_ service: ControlService) { self.service = service }

    /// Answers a call after those before it.
    func answer(_ call: MethodCall) {
        guard waiting.count < Self.maximumWaiting else {
            return call.fail(
                ControlNames.Failure.tooMany.error("\(Self.maximumWaiting) calls of List wait for their answers."))
        }
        waiting.append(call)
        if isRunning { return }
        isRunning = true
        service.loop.controlWork.add { [weak self] in self?.step() ?? false }
    }

    /// - Returns: whether there is more to do.
    private func step() -> Bool {
        if !isScanned {
            do { isScanned = try scan?.advance() != true } catch { (scan, isScanned) = (nil, true) }
        } else if reply == nil {
            guard !waiting.isEmpty else {
                isRunning = false
                return false
            }
            begin(waiting.removeFirst())
        } else if sort?.advance() == false {
            names = sort?.elements[...] ?? []
            sort = nil
        } else if sort != nil {
            // It is not sorted yet.
        } else if let name = names.popFirst() {
            // An app that an error disables while it runs is there twice.
            if name == last { return true }
            last = name
            if let status = service.appStatus(name, in: scan) { reply?.append(status.variant) }
        } else {
            reply?.send()
            (reply, scan, last) = (nil, nil, nil)
        }
        return true
    }

    private func begin(_ call: MethodCall) {
        guard !call.peer.isGone else { return }
        reply = call.beginArrayReply()
        sort = StepwiseSort(service.appNames)
        scan = service.containment.makeScan()
        isScanned = scan == nil
    }
}
