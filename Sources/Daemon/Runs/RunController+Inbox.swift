import LifecycleCore
import Posix

/// The files in the app's inbox.
extension RunController {
    /// Writes files. One that cannot be written now is kept, and written later. Its wake may then be over, so the app need not
    /// complete it.
    ///
    /// What a connection has reported is not announced by a signal as well. Its file is there all the same.
    func deliver(_ notifications: [Notification], _ effect: EffectID) {
        limitEventFiles(adding: notifications.filter { $0.id > 0 }.map(Inbox.fileName))
        var isWritten = false
        let isRepeated = effect <= connections.record.lastEffect
        defer { connections.endEffect(effect) }
        for notification in notifications {
            let hasFile = writeToInbox(Inbox.fileName(notification), notification.payload)
            let isReported = isRepeated || connections.tell(notification, effect)
            if hasFile {
                if !isReported { isWritten = true }
            } else if notification.id > 0, !isReported {
                send(.wake(.notificationDelayed(wake: notification.id)))
            }
            if notification.kind == "memory", !isReported { transport.send(.memoryWarning(.warning), effect) }
        }
        if isWritten { transport.announceFiles() }
    }

    /// - Returns: false if the file is kept and written later.
    func writeToInbox(_ name: String, _ payload: String) -> Bool {
        // In the order in which they came.
        guard writePendingFiles() else {
            writeLater(name, payload)
            return false
        }
        do {
            try writeNow(name, payload)
            return true
        } catch {
            pendingFiles.problem = "\(error)"
            socket.warn("its inbox cannot be written: \(error); the file is kept, and written when that is possible")
            writeLater(name, payload)
            return false
        }
    }

    private func writeNow(_ name: String, _ payload: String) throws(SystemError) {
        if let warning = try inbox.write(name, payload) { socket.warn(warning) }
    }

    /// The app owns the inbox and can make each operation in it fail, so these warnings are limited.
    private func attemptInInbox(_ body: () throws -> Void) {
        do { try body() } catch { socket.warn("\(error)") }
    }

    /// An app that does not remove the files of events loses the oldest ones.
    private func limitEventFiles(adding names: [String]) {
        for oldest in eventFiles.add(names, in: inbox) {
            attemptInInbox {
                guard try inbox.remove(oldest) else { return }
                socket.warn(
                    "the app left \(Inbox.maximumEvents) events in its inbox; the oldest one, \(oldest), was removed")
            }
        }
    }

    /// Removes the file of an event that the app has handled.
    func removeEventFile(kind: String, payload: String, id: UInt64) {
        guard id > 0 else { return }
        attemptInInbox { _ = try inbox.remove(Inbox.fileName(kind: kind, id: id)) }
    }

    /// Finds the files of events that previous daemons wrote: they count against the limit too.
    func findEventFiles() {
        attemptInInbox { eventFiles = try inbox.eventFiles() }
    }

    // MARK: Files that could not be written

    private func writeLater(_ name: String, _ payload: String) {
        pendingFiles.add(name, payload)
        context.logbook.persist(Array(payload.utf8), as: PendingFiles.recordName(id, name))
        retryLater()
    }

    private func retryLater() {
        context.storage.retries.add("inbox/\(id)") { [weak self] in
            guard let self, !self.pendingFiles.isEmpty else { return true }
            let count = self.pendingFiles.files.count
            let isDone = self.writePendingFiles()
            if self.pendingFiles.files.count < count { self.transport.announceFiles() }
            return isDone
        }
    }

    /// Writes the files that could not be written before, up to the first that is refused again.
    /// - Returns: whether none is left.
    private func writePendingFiles() -> Bool {
        while let file = pendingFiles.files.first {
            if Inbox.eventNumber(ofFile: file.name) != nil { limitEventFiles(adding: [file.name]) }
            do {
                try writeNow(file.name, file.payload)
            } catch {
                pendingFiles.problem = "\(error)"
                return false
            }
            pendingFiles.removeFirst()
            context.logbook.removeRecord(PendingFiles.recordName(id, file.name))
        }
        return true
    }

    /// Takes over what the previous daemon could not write.
    func restorePending(_ files: PendingFiles) {
        pendingFiles = files
        retryLater()
    }

    /// The run is over, and what was meant for its process.
    func removePendingFiles() {
        for file in pendingFiles.files { context.logbook.removeRecord(PendingFiles.recordName(id, file.name)) }
        pendingFiles.removeAll()
        context.storage.retries.remove("inbox/\(id)")
    }

    /// Why a notification cannot be written now, as the end of a sentence; `nil`: it can. Files that wait are written first.
    var inboxProblem: String? {
        if pendingFiles.isEmpty { return nil }
        let count = pendingFiles.files.count
        let isDone = writePendingFiles()
        if pendingFiles.files.count < count { transport.announceFiles() }
        return isDone ? nil : pendingFiles.problem
    }
}

extension ControlService {
    /// Why a notification for an app is refused: those before it could not be written to its inbox. As the end of a sentence;
    /// `nil`: it is not.
    func inboxProblem(of app: AppID, _ request: Request) -> String? {
        switch request {
        case .push, .send: break
        case .launch, .activate, .background, .interrupt, .interruptWhileConnected, .endInterruption, .terminate,
            .remove, .open, .cancelTask, .scene:
            return nil
        }
        guard let run = driver.core.run(of: app).flatMap({ context.runs[$0] }), let problem = run.inboxProblem else {
            return nil
        }
        return "its inbox cannot be written: \(problem)"
    }
}
