import Linux
import Systemd

/// Removes the groups of runs that are over. A group can be busy for a moment longer: a process that failed to execute
/// its program is still exiting.
final class GroupRemover {
    private let loop: EventLoop
    private let journal: Journal
    private var retries: [UInt64: Retry] = [:]
    private var lastNumber: UInt64 = 0

    init(loop: EventLoop, journal: Journal) {
        self.loop = loop
        self.journal = journal
    }

    /// Removes a group as soon as no process is left in it.
    func remove(_ enclosure: Enclosure) {
        // In process-group mode there is nothing to remove.
        guard enclosure.path != nil else { return }
        lastNumber += 1
        let number = lastNumber
        retries[number] = Retry.until(loop) { [weak self] in
            guard let self else { return true }
            do {
                guard try enclosure.remove() == .removed else { return false }
            } catch {
                self.journal.logWarning("\(enclosure.app): \(error)")
                return false
            }
            self.retries[number] = nil
            return true
        }
    }
}
