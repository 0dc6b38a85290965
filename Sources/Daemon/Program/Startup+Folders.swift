import Glibc
import LifecycleCore
import Linux
import Posix
import Systemd

/// What the daemon needs before it can serve apps: folders, the lock, stores and the core.
extension Startup {
    /// Creates the folders and acquires the lock that keeps a second daemon out of them.
    /// - Throws: a `Problem` that says what to do.
    static func prepare(_ folders: Folders, _ descriptors: RecoveredDescriptors) throws -> LockFile {
        if let reason = reasonToDistrust(folder: folders.runtime) {
            throw Problem("the runtime folder \(folders.runtime) is not safe: \(reason); choose another with --runtime")
        }
        do {
            try createDirectories(at: folders.runtime)
        } catch {
            throw Problem("the runtime folder cannot be created: \(error)")
        }
        try createDirectories(at: folders.notifySockets, mode: 0o711)
        try createDirectories(at: folders.inboxes, mode: 0o711)
        try createDirectories(at: folders.lastReceipts, mode: 0o711)
        if let lock = descriptors.take(RecoveredDescriptors.lock) {
            return LockFile(adopting: lock, path: folders.lock)
        }
        return try acquireLock(folders)
    }

    /// How long the daemon waits for a lock whose owner has ended. A process that a killed daemon was starting has a
    /// copy of all its descriptors until it executes its program.
    private static let lockTimeout = Duration.seconds(2)

    private static func acquireLock(_ folders: Folders) throws -> LockFile {
        let limit = EventLoop.now() + lockTimeout
        while true {
            switch try LockFile.acquire(at: folders.lock) {
            case .acquired(let lock): return lock
            case .held(let pid):
                let isAlive = try pid.flatMap { try ProcFS().stat(of: $0) }.map { !$0.isZombie } ?? false
                guard !isAlive else {
                    let owner = pid.map { " (pid \($0))" } ?? ""
                    throw Problem(
                        "another greenroomd\(owner) is running on \(folders.runtime); choose another with --runtime"
                    )
                }
                // No daemon holds the lock. A new file is a new lock.
                if EventLoop.now() >= limit { _ = try removeFile(at: folders.lock) }
                poll(nil, 0, 2)
            }
        }
    }

    static func openStores(_ folders: Folders) throws -> (ReceiptStore, LaunchStore) {
        do {
            return (try ReceiptStore(folders: folders, clock: WallClock()), try LaunchStore(folders: folders))
        } catch {
            throw Problem(
                "the state folder \(folders.state) cannot be used: \(error); choose another with --state")
        }
    }

    /// The core, recovered or new. Apps that it does not contain are terminated first.
    static func core(
        _ recovered: inout RecoveredState?, _ orphans: OrphanedApps, _ receipts: ReceiptStore, _ loop: EventLoop
    ) -> LifecycleCore {
        // Greater than every number that a previous daemon used: a launch takes more than one microsecond.
        let firstRun = UInt64(loop.now().microseconds)
        guard var core = recovered?.core else {
            orphans.end()
            return LifecycleCore(firstRun: firstRun, firstReceipt: receipts.nextID)
        }
        if recovered?.lacksEvents == true {
            orphans.end(except: Set(core.runIDs))
            core.skipNumbers(beforeRun: firstRun, beforeReceipt: receipts.nextID)
            recovered?.core = core
        }
        return core
    }

    /// The name of the group that contains all apps' groups. A daemon with another runtime folder has another.
    static func groupName(_ folders: Folders) -> String {
        if folders.runtime == "/run/greenroom" { return "greenroom" }
        // FNV-1a: the same folder always has the same name.
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in folders.runtime.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        return "greenroom-" + String(hash, radix: 16)
    }
}
