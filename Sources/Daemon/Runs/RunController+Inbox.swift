import LifecycleCore
import Posix

/// The files in the app's inbox.
extension RunController {
    func deliver(_ notifications: [Notification], _ effect: EffectID) {
        limitEventFiles(adding: notifications.filter { $0.id > 0 }.map(Inbox.fileName))
        for notification in notifications {
            writeToInbox(Inbox.fileName(notification), notification.payload)
            if notification.kind == "memory" { transport.send(.memoryWarning(.warning), effect) }
        }
        transport.announceFiles()
    }

    func writeToInbox(_ name: String, _ payload: String) {
        attemptInInbox { try inbox.write(name, payload) }
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

    /// Finds the files of events that previous daemons wrote: they count against the limit too.
    func findEventFiles() {
        attemptInInbox { eventFiles = try inbox.eventFiles() }
    }
}
