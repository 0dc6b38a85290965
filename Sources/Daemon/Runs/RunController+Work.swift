import LifecycleCore
import Linux
import Posix

/// What a run in the background has to do, and the file locks that it holds.
extension RunController {
    /// Measures what the run has to do (L51). `workMeasured` follows.
    func measureWork(isFirst: Bool) { context.work.measure(self, isFirst: isFirst) }

    /// Returns the file locks that processes of the run hold (L43), after the freeze and before it is reported; `nil`: none. What
    /// cannot be read counts as none.
    func fileLocks() -> FileLocks? {
        do {
            guard let held = try enclosure.heldLocks() else { return nil }
            return FileLocks(count: held.count, file: held.file.printable(upTo: FileLocks.maximumFile))
        } catch {
            logWarning("file locks cannot be read: \(error)")
            return nil
        }
    }
}
