import LifecycleCore
import Linux
import Manifest
import Posix
import Systemd

/// What a run in the background has to do, and the file locks that it holds.
extension RunController {
    /// Measures what the run has to do (L51). `workMeasured` follows.
    func measureWork(_ kind: WorkLookKind) { context.background.work.measure(self, kind) }

    /// Finds the file locks that processes of the run hold (L43), and whether they have an accessory open (L28), after the freeze
    /// and before it is reported. What cannot be read counts as none. The search of many descriptors takes turns of the loop, and ends
    /// without `completion` if the run is thawed or killed meanwhile.
    func findFileLocks(attempt: Int, completion: @escaping (LockSearch?) -> Void) {
        let search: LockSearch
        do throws(SystemError) {
            search = try enclosure.lockSearch(
                SharedResources(manifest.releases),
                findsAccessories: context.background.accessories.areDeclared(by: self)
            ) { [work = context.background.work] in work.mayFindWaiters() }
        } catch {
            logWarning("file locks cannot be found: \(error)")
            return completion(nil)
        }
        while advance(search) {
            if context.loop.isTurnOver { return findFileLocksLater(search, attempt, completion) }
        }
        completion(search)
    }

    private func findFileLocksLater(_ search: LockSearch, _ attempt: Int, _ completion: @escaping (LockSearch?) -> Void)
    {
        context.loop.work.add { [weak self] in
            guard let self, self.isFrozen, self.freezeAttempt == attempt else { return false }
            if self.advance(search) { return true }
            completion(search)
            return false
        }
    }

    /// - Returns: whether there is more.
    private func advance(_ search: LockSearch) -> Bool {
        do {
            return try search.advance()
        } catch {
            logWarning("file locks cannot be read: \(error)")
            return false
        }
    }

}

extension FileLocks {
    init(_ held: HeldLocks) {
        self.init(
            count: held.count, file: held.file.printable(upTo: Self.maximumFile), isShared: held.isShared,
            isResource: held.isResource)
    }
}

extension SharedResources {
    /// - Parameter entries: of `Releases=`.
    init(_ entries: [String]) {
        self.init()
        for entry in entries {
            if entry.hasPrefix(Release.lockPrefix) {
                locks.append(String(entry.dropFirst(Release.lockPrefix.count)))
            } else {
                paths.append(entry)
            }
        }
    }
}
